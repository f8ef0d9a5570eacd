"""`Burst`: several tokens of one sequence before the host looks at them, for GPUs.

The next token is chosen on the device and fed again there, and one step is one CUDA graph, or
many steps are one kernel. So
the device never waits for the host within a burst, nor between two of them if the second is
begun before the tokens of the first are read. Tokens after an end are discarded.
"""

import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from hotgrid.chat._model._gpt import GPT

from ._fused._persistent import PersistentStep, persistent_step
from ._fused._step import FusedStep, fusible
from ._sampling import Settings, choose

_CHUNK = 512
# Shorter prompts are fed faster by fused steps.
_SHORT = 64
# Graphs and caches of the last few kinds of calls are kept with their model.
_MOST = 2
_kept: "weakref.WeakKeyDictionary[GPT, dict[tuple[object, ...], Burst]]" = (
    weakref.WeakKeyDictionary()
)


class Burst:
    """Decodes one sequence in bursts, with shapes that never change.

    Args:
        model: The model.
        length: The most tokens of a sequence.
        count: The most tokens of a burst.
        settings: The kind of sampling; its numbers can change.
        compiled: Whether the model goes through `torch.compile`; otherwise one that is
            `fusible` is decoded by fused kernels.
    """

    def __init__(
        self, model: GPT, length: int, count: int, settings: Settings, *, compiled: bool
    ) -> None:
        self._model, self._settings = model, settings
        device, size = model.embed.weight.device, model.config.size
        self._memory = model.memory(1, length, static=True)
        self._last = torch.zeros(1, 1, size, device=device, dtype=model.embed.weight.dtype)
        self._token = torch.zeros(1, 1, dtype=torch.int64, device=device)
        self._uniforms = torch.zeros(count, dtype=torch.float64, device=device)
        self._place = torch.zeros(1, dtype=torch.int64, device=device)
        self._chosen = torch.zeros(count, dtype=torch.int64, device=device)
        shape = (1, model.config.vocabulary)
        self._seen = torch.zeros(shape, dtype=torch.bool, device=device)
        self._forced = torch.full((count,), -1, dtype=torch.int64, device=device)
        plain = not settings.cuts and not settings.repeats
        self._choice = (2 if settings.draws else 1) if plain else 0
        self._fused = None if compiled or not fusible(model) else self._fuse()
        self._logits: Callable[[Tensor], Tensor] = self._forward
        if compiled:
            self._logits = torch.compile(self._forward, dynamic=False)
        # One kernel chooses tokens itself, if it can, and then computes many.
        whole = self._fused if isinstance(self._fused, PersistentStep) else None
        self._all_at_once = whole if self._choice else None
        self._graph: torch.cuda.CUDAGraph | None = None
        if device.type == "cuda" and self._all_at_once is None:
            self._capture()

    @torch.inference_mode()
    def begin(self, prompt: Sequence[int], settings: Settings) -> None:
        """Take another sequence: feed all of its tokens but the last."""
        for mine, given in zip(_tensors(self._settings), _tensors(settings), strict=True):
            mine.copy_(given)
        for cache in self._memory.caches:
            cache.reset()
        self._memory.last = None
        self._seen.zero_()
        self._seen[0, list(prompt)] = True
        if self._fused is not None and self._choice and len(prompt) <= _SHORT:
            self._force(prompt)
            return
        for start in range(0, len(prompt) - 1, _CHUNK):
            part = prompt[start : min(start + _CHUNK, len(prompt) - 1)]
            tokens = torch.tensor([part], device=self._token.device)
            self._model.features(tokens, memory=self._memory)
        self._last.zero_()
        if self._memory.last is not None:
            self._last.copy_(self._memory.last)
        self._token.fill_(prompt[-1])
        self._begin_step()

    @torch.inference_mode()
    def run(self, uniforms: Sequence[float]) -> Callable[[], list[int]]:
        """Compute the next tokens, one for each number, and return what waits for them.

        It returns -1 where none can be chosen.
        """
        count = len(uniforms)
        self._copy(self._uniforms, torch.tensor(uniforms, dtype=torch.float64))
        self._repeat(count)
        if not self._chosen.is_cuda:
            found = self._chosen[:count].tolist()
            return lambda: found
        host = torch.empty(count, dtype=torch.int64, pin_memory=True)
        host.copy_(self._chosen[:count], non_blocking=True)
        done = torch.cuda.Event()
        done.record()

        def wait() -> list[int]:
            done.synchronize()
            return host.tolist()

        return wait

    def _force(self, prompt: Sequence[int]) -> None:
        """Feed all tokens of a prompt but the last, one after the other."""
        self._token.fill_(prompt[0])
        self._begin_step()
        count = len(self._forced)
        for start in range(1, len(prompt), count):
            part = torch.tensor(prompt[start : start + count])
            self._copy(self._forced, part)
            self._repeat(len(part))
        self._forced.fill_(-1)

    def _begin_step(self) -> None:
        if self._fused is not None:
            self._fused.embed()

    def _repeat(self, count: int) -> None:
        self._place.zero_()
        if self._all_at_once is not None:
            heat = self._settings.temperature[:, 0]
            self._all_at_once.run(count, heat, self._uniforms, self._forced, self._place,
                                  self._chosen, choice=self._choice)  # fmt: skip
            return
        for _ in range(count):
            if self._graph is None:
                self._step()
            else:
                self._graph.replay()

    def _copy(self, to: Tensor, numbers: Tensor) -> None:
        """Copy numbers without waiting for what the device is at."""
        given = numbers.pin_memory() if to.is_cuda else numbers
        to[: len(given)].copy_(given, non_blocking=True)

    def _fuse(self) -> FusedStep | PersistentStep:
        caches = [(c.keys[0].transpose(0, 1), c.values[0].transpose(0, 1))
                  for c in self._memory.caches]  # fmt: skip
        # All of the cache is one block.
        length, first = len(caches[0][0]), self._memory.caches[0].position
        if not isinstance(first, Tensor):
            raise AssertionError("the memory of a burst is static")
        table = torch.zeros(1, 1, dtype=torch.int64, device=self._token.device)
        given = (self._model, caches, length, self._token[0], table, first.view(1))
        return persistent_step(*given) or FusedStep(*given)

    def _step(self) -> None:
        heat = self._settings.temperature[:, 0]
        if self._fused is None:
            logits = self._logits(self._token)
        else:
            if not self._choice:
                self._fused.embed()
            if isinstance(self._fused, PersistentStep):
                self._fused.feed()
            else:
                self._fused.feed(heat, choice=self._choice)
            if self._choice and isinstance(self._fused, FusedStep):
                self._fused.choose(heat, self._uniforms, self._forced, self._place,
                                   self._chosen, choice=self._choice)  # fmt: skip
                return
            self._memory.caches[0].position += 1
            logits = self._fused.logits
        uniform = self._uniforms.index_select(0, self._place)
        seen = self._seen if self._settings.repeats else None
        chosen = choose(logits, self._settings, uniform, seen)
        self._chosen.index_copy_(0, self._place, chosen)
        self._token.copy_(chosen.clamp(min=0)[:, None])
        self._seen.scatter_(1, self._token, True)
        self._place.add_(1)

    def _forward(self, token: Tensor) -> Tensor:
        self._memory.last = self._last
        features = self._model.features(token, memory=self._memory)
        if self._model.config.mixing and self._memory.last is not None:
            self._last.copy_(self._memory.last)
        return self._model.head(features[:, -1])

    @torch.inference_mode()
    def _capture(self) -> None:
        # The caches must stay finite.
        self._begin_step()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._step()
                self._place.zero_()
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._step()


def burst_for(
    model: GPT, tokens: int, count: int, settings: Settings, *, compiled: bool
) -> Burst:
    """Return a burst for sequences of a length; an existing one if it fits."""
    # Powers of two, so that few lengths are captured.
    length = max(256, 1 << (tokens - 1).bit_length())
    kinds = (settings.draws, settings.cuts, settings.repeats)
    key = (length, count, kinds, compiled, model.embed.weight.dtype, model.embed.weight.device)
    found = _kept.setdefault(model, {})
    if key not in found:
        while len(found) >= _MOST:
            found.pop(next(iter(found)))
        own = replace(settings, **{n: getattr(settings, n).clone() for n in _NUMBERS})
        found[key] = Burst(model, length, count, own, compiled=compiled)
    return found[key]


_NUMBERS = ("temperature", "top_k", "top_p", "repetition")


def _tensors(settings: Settings) -> list[Tensor]:
    return [getattr(settings, name) for name in _NUMBERS]
