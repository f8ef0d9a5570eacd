"""`Engine`: many replies at once, by continuous batching over a paged cache."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Self

import torch

from hotgrid.chat._model._folder import LanguageModel
from hotgrid.errors import ArgumentError, UnstableError

from ._blocks import BlockPool
from ._reply import Reply, length_limit
from ._request import Request, UnavailableError
from ._row import Row
from ._sampling import Likelihood, Sampling, Settings, choose, likelihoods, uniforms
from ._stepper import Stepper
from ._under_way import UnderWay

_BLOCK = 16


class Engine:
    """Works on many requests together; each gets what `generate` alone would give it.

    Requests join and leave between steps. A step feeds a part of the prompts that are new,
    and one token for each reply under way. Memory is allocated once: if the cache is full,
    the youngest reply waits and is recomputed later, from the same tokens.

    Where several steps are done in a burst, the next burst begins before the tokens of the last
    are read. So it may have replies that have ended; what it computes for them is thrown away.

    Args:
        language: The model.
        slots: The most replies at once.
        limit: The most tokens of a sequence, prompt and reply together; by default and at
            most what the model's positions reach.
        queue: The most requests that wait; beyond that they are refused.
        cache: Tokens that the cache holds, at least `limit`; by default 1024 for each slot.
        chunk: The most tokens of a prompt that are fed in one step.
        static: Whether decoding keeps to a few shapes, as CUDA graphs need; by default on
            CUDA.
        compiled: Whether decoding is compiled; needs `static`.

    Raises:
        ArgumentError: A number is below 1, or `cache` is less than `limit`.

    Example:
        >>> with Engine(language) as engine:  # doctest: +SKIP
        ...     requests = [engine.submit(prompt) for prompt in prompts]
        ...     for request in requests:
        ...         print("".join(piece.text for piece in request))
    """

    def __init__(
        self,
        language: LanguageModel,
        *,
        slots: int = 8,
        limit: int | None = None,
        queue: int = 256,
        cache: int | None = None,
        chunk: int = 256,
        static: bool | None = None,
        compiled: bool = False,
    ) -> None:
        reach = length_limit(language.model)
        self.limit = reach if limit is None else min(limit, reach)
        given = {"slots": slots, "limit": self.limit, "queue": queue, "chunk": chunk}
        for name, number in given.items():
            if number < 1:
                raise ArgumentError(f"`{name}` must be at least 1, got {number}")
        if cache is None:
            cache = max(self.limit, slots * min(self.limit, 1024))
        if cache < self.limit:
            raise ArgumentError(
                f"`cache` {cache} does not hold one sequence of {self.limit} tokens; make it "
                "larger, or `limit` smaller"
            )
        self.language = language
        self._model = language.model
        self._slots, self._queue, self._chunk = slots, queue, chunk
        self._pool = BlockPool(-(-cache // _BLOCK) + 1, _BLOCK)
        device = self._model.embed.weight.device
        static = device.type == "cuda" if static is None else static
        self._stepper = Stepper(
            self._model,
            self._pool.blocks,
            _BLOCK,
            rows=slots,
            length=self.limit,
            static=static,
            compiled=compiled,
        )
        self._vacant = list(range(slots - 1, -1, -1))
        self._running: list[Request] = []
        self._waiting: deque[Request] = deque()
        self._numbers = 0
        self._seen: torch.Tensor | None = None
        self._settings: tuple[tuple[int, ...], Settings] | None = None
        # Replies whose last tokens were not delivered; with fixed shapes that is done later.
        self._later = static
        self._untold: list[Request] = []
        self._under_way: UnderWay | None = None
        # `_lock` guards the lists, `_work` one step at a time.
        self._lock = threading.Lock()
        self._work = threading.Lock()
        self._awake = threading.Event()
        self._closed = self._abandoned = False
        self._thread: threading.Thread | None = None
        self._prepared = threading.Event()
        self._problem: Exception | None = None

    @property
    def running(self) -> bool:
        """Whether it works in a thread of its own."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def load(self) -> dict[str, int]:
        """How many requests run and wait, and how many blocks are used and there."""
        with self._lock:
            blocks = self._pool.blocks - 1
            return {
                "running": len(self._running),
                "waiting": len(self._waiting),
                "used": blocks - self._pool.free,
                "blocks": blocks,
            }

    def submit(self, tokens: Sequence[int], sampling: Sampling | None = None) -> Request:
        """Add a request.

        Raises:
            ArgumentError: The prompt is empty, too long, or has what is not a token.
            UnavailableError: Too many wait, or the engine has been stopped.
        """
        reply = Reply(self.language, tokens, sampling or Sampling(), self.limit)
        with self._lock:
            if self._closed:
                raise UnavailableError("the engine has been stopped")
            # Requests that the thread admits next do not count as waiting.
            if len(self._waiting) >= self._queue + len(self._vacant):
                raise UnavailableError(
                    f"{len(self._waiting)} requests wait already; try again later"
                )
            self._numbers += 1
            request = Request(self, self._numbers, reply)
            self._waiting.append(request)
        self._awake.set()
        return request

    def wake(self) -> None:
        """Have the thread look at its requests again."""
        self._awake.set()

    def step(self) -> bool:
        """Do one step; return whether there was anything to do.

        Errors of the model go to the requests that were under way.
        """
        with self._work:
            if self._under_way is not None:
                # Requests that arrive before then join the next burst. Later, the device might
                # have to wait for it.
                self._under_way.begun.near_end()
            with self._lock:
                self._drop_cancelled()
                self._admit()
            if not self._running:
                return False
            try:
                steps = self._steps()
                if steps == 1:
                    self._finish_burst()
                self._feed_prompts(steps)
                self._feed_replies(steps)
            except Exception as problem:  # noqa: BLE001  the others must not wait forever
                self._under_way = None
                with self._lock:
                    failed = list(self._running)
                    for request in failed:
                        self._leave(request)
                _call([request.fail(problem) for request in failed])
            return True

    def start(self) -> Self:
        """Work in a thread until `stop`.

        It returns when everything is compiled and captured, so that no request waits for that.
        """
        self._thread = threading.Thread(target=self._run, name="hotgrid-chat", daemon=True)
        self._thread.start()
        self._prepared.wait()
        if self._problem is not None:
            raise self._problem
        return self

    def stop(self, wait: float = 0.0) -> None:
        """Take no more requests, and end.

        Args:
            wait: Seconds for the replies that are there; then they are cancelled.
        """
        with self._lock:
            self._closed = True
        self._awake.set()
        if self._thread is not None:
            self._thread.join(wait)
            self._abandoned = True
            self._awake.set()
            self._thread.join()
        self._abandon()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        if self._stepper.device.type == "cuda":
            torch.cuda.set_device(self._stepper.device)
        try:
            self._prepare()
        except Exception as problem:  # noqa: BLE001  `start` raises it
            self._problem, self._closed = problem, True
            return
        finally:
            self._prepared.set()
        while not self._abandoned:
            self._awake.clear()
            if self.step():
                continue
            if self._closed:
                return
            self._awake.wait()

    def _prepare(self) -> None:
        """Do everything once that takes longer the first time, in the thread that does it."""
        self._stepper.prepare()
        if not self._later or self.limit == 1:
            return
        prompt = [0] * min(self._chunk + 1, self.limit - 1)
        cuts = Sampling(top_k=2, top_p=0.5, repetition=1.1, logprobs=1, max_tokens=2)
        for way in (cuts, Sampling(max_tokens=2)):
            self.submit(prompt, way)
            while self.step():
                pass

    def _abandon(self) -> None:
        with self._work, self._lock:
            for request in [*self._running, *self._waiting]:
                request.cancelled = True
            self._drop_cancelled()

    def _drop_cancelled(self) -> None:
        dropped = [r for each in (self._running, self._waiting) for r in each if r.cancelled]
        for request in dropped:
            if request.slot >= 0:
                self._leave(request)
            else:
                self._waiting.remove(request)
        _call([request.deliver(request.reply.end("cancelled")) for request in dropped])

    def _admit(self) -> None:
        """Let requests in, in their order, while there are slots and blocks for them."""
        while self._waiting and self._vacant:
            request = self._waiting[0]
            # One token more, so that it is not evicted again at once.
            tokens = min(len(request.reply.tokens) + 1, self.limit)
            if self._pool.needed(tokens) > self._pool.free:
                return
            self._pool.grow(request.blocks, tokens)
            self._waiting.popleft()
            request.slot = self._vacant.pop()
            self._running.append(request)
            if request.reply.sampling.repetition != 1:
                self._mark(request)

    def _mark(self, request: Request) -> None:
        if self._seen is None:
            shape = (self._slots, self._model.config.vocabulary)
            self._seen = torch.zeros(shape, dtype=torch.bool, device=self._stepper.device)
        self._seen[request.slot] = False
        self._seen[request.slot, request.reply.tokens] = True

    def _leave(self, request: Request) -> None:
        """Take a request out of the batch, with its slot and blocks.

        A burst in flight may still write to the blocks. The next owner's writes are queued
        behind it on the same stream, so they come later.
        """
        self._running.remove(request)
        self._vacant.append(request.slot)
        self._pool.release(request.blocks)
        request.slot, request.cached, request.coming = -1, 0, 0

    def _reserve(self, request: Request, tokens: int) -> bool:
        """Reserve blocks for a number of tokens; False if the request has to wait for them."""
        while not self._pool.grow(request.blocks, tokens):
            if self._untold or self._under_way is not None:
                # A reply may have ended, and waiting ones must have delivered all their tokens.
                self._finish_burst()
                self._tell_untold()
                if request.slot < 0:
                    return False
                continue
            youngest = max(self._running, key=lambda each: each.number)
            with self._lock:
                self._leave(youngest)
                self._waiting.appendleft(youngest)
            if youngest is request:
                return False
        return True

    def _steps(self) -> int:
        """Return how many steps are done before the host looks at the tokens."""
        if not all(request.reply.sampling.plain for request in self._running):
            return 1
        most = self._stepper.most_steps(len(self._running))
        # With many replies a step takes longer, and the host has more to do.
        return max(1, most // 2) if len(self._vacant) > self._slots // 2 else most

    def _feed_prompts(self, steps: int) -> None:
        """Feed a part of each prompt that is not in the cache yet, those of like length.

        The burst takes what fits into its steps, and at least the last token, so this does not
        wait for logits.
        """
        chosen: list[tuple[Request, int]] = []
        new = sorted((r for r in self._running if r.pending > steps), key=lambda r: r.number)
        for request in new:
            count = min(request.pending - (steps > 1), self._chunk)
            width = max(count, *(n for _, n in chosen)) if chosen else count
            fits = width * (len(chosen) + 1) <= 2 * (count + sum(n for _, n in chosen))
            fits = fits and width * (len(chosen) + 1) <= 4 * self._chunk
            stays = fits and request in self._running
            if stays and self._reserve(request, request.cached + count):
                chosen.append((request, count))
        self._feed(chosen)

    def _feed_replies(self, steps: int) -> None:
        """Feed the last token of each reply under way."""
        chosen: list[tuple[Request, int]] = []
        for request in sorted(self._running, key=attrgetter("number")):
            stays = request.slot >= 0 and request.pending <= steps and request.left > 0
            tokens = min(request.cached + steps, self.limit)
            if stays and self._reserve(request, tokens):
                chosen.append((request, 1))
        if steps == 1:
            self._feed(chosen)
        else:
            self._burst([request for request, _ in chosen if request.slot >= 0], steps)

    def _burst(self, requests: list[Request], steps: int) -> None:
        """Begin a burst, and then take the tokens of the one before."""
        begun = self._begin(requests, steps) if requests else None
        self._tell_untold()
        self._finish_burst()
        self._under_way = begun

    @torch.inference_mode()
    def _begin(self, requests: list[Request], steps: int) -> UnderWay:
        """Begin several steps of some requests."""
        steps = min(steps, max(r.pending - 1 + r.left for r in requests))
        before = self._under_way
        places = {} if before is None else {r: n for n, r in enumerate(before.requests)}
        rows = [
            Row(r.reply.tokens[r.cached :], r.cached, -1, r.blocks, places.get(r, -1))
            for r in requests
        ]
        counts = [steps + 1 - request.pending for request in requests]
        numbers = uniforms(
            [r.reply.seed for r in requests],
            [len(r.reply) + r.coming + 1 - r.pending for r in requests],
            steps,
        )
        heats = [r.reply.sampling.temperature for r in requests]
        decoder = self._stepper.burst(rows, steps)
        begun = decoder.start(rows, heats, numbers, None if before is None else before.begun)
        for request, count in zip(requests, counts, strict=True):
            request.cached += steps
            request.coming += count
        return UnderWay(begun, requests, counts)

    def _finish_burst(self) -> None:
        """Take the tokens of the burst under way; tokens after an end are discarded."""
        burst, self._under_way = self._under_way, None
        if burst is None:
            return
        found = zip(burst.requests, burst.counts, burst.begun.chosen(), strict=False)
        stay = [each for each in found if each[0].slot >= 0]
        for request, count, _ in stay:
            request.coming -= count
        new = [row[-count:] for _, count, row in stay]
        self._accept([request for request, _, _ in stay], new, [None] * len(stay), later=False)

    def _feed(self, chosen: Sequence[tuple[Request, int]]) -> None:
        chosen = [each for each in chosen if each[0].slot >= 0]
        if not chosen:
            return
        rows = []
        for request, count in chosen:
            tokens, at = request.reply.tokens, request.cached
            before = tokens[at - 1] if at else -1
            rows.append(Row(tokens[at : at + count], at, before, request.blocks))
        logits = self._stepper.feed(rows)
        for request, count in chosen:
            request.cached += count
        done = [row for row, (request, _) in enumerate(chosen) if request.pending == 0]
        if done:
            if len(done) < len(chosen):
                logits = logits[done]
            self._advance([chosen[row][0] for row in done], logits)

    @torch.inference_mode()
    def _advance(self, requests: list[Request], logits: torch.Tensor) -> None:
        """Choose the next token of each request."""
        samplings = [request.reply.sampling for request in requests]
        key = tuple(request.number for request in requests)
        if self._settings is None or self._settings[0] != key:
            made = Settings.of(samplings, self._model.config.vocabulary, logits.device)
            self._settings = (key, made)
        settings = self._settings[1]
        numbers = [request.reply.uniform() for request in requests]
        uniforms = torch.tensor(numbers, dtype=torch.float64, device=logits.device)
        seen = slots = None
        if settings.repeats and self._seen is not None:
            slots = torch.tensor([request.slot for request in requests], device=logits.device)
            seen = self._seen[slots]
        chosen = choose(logits, settings, uniforms, seen)
        if slots is not None and self._seen is not None:
            self._seen[slots, chosen.clamp(min=0)] = True
        found = likelihoods(logits, chosen, samplings)
        self._tell_untold()
        new = [[token] for token in chosen.tolist()]
        self._accept(requests, new, found, later=self._later)

    def _accept(
        self,
        requests: Sequence[Request],
        new: Sequence[Sequence[int]],
        found: Sequence[Likelihood | None],
        *,
        later: bool,
    ) -> None:
        """Add the new tokens of each request, up to its end; `later` leaves text untold."""
        for request, tokens, likelihood in zip(requests, new, found, strict=True):
            if request.reply.finish is not None:
                continue
            try:
                request.reply.accept(tokens, likelihood)
            except UnstableError as problem:
                with self._lock:
                    self._leave(request)
                _call([request.fail(problem)])
                continue
            if request.reply.ended or not request.at_end:
                self._untold.append(request)
        now = [r for r in self._untold if r.reply.ended or not later]
        self._untold = [r for r in self._untold if not r.reply.ended and later]
        self._tell(now)

    def _tell_untold(self) -> None:
        """Tell the text of the step before, while a GPU is at work on this one."""
        untold, self._untold = self._untold, []
        self._tell(untold)

    def _tell(self, requests: Sequence[Request]) -> None:
        """Hand over the text of new tokens; it may hold the end of a reply."""
        calls = []
        for request in requests:
            if request.slot < 0:  # it has left meanwhile
                continue
            piece = request.reply.tell()
            if request.reply.finish is not None:
                with self._lock:
                    self._leave(request)
            if piece is not None:
                calls.append(request.deliver(piece))
        _call(calls)


def _call(functions: Iterable[Callable[[], None] | None]) -> None:
    """Call some functions, each once."""
    for function in dict.fromkeys(functions):
        if function is not None:
            function()
