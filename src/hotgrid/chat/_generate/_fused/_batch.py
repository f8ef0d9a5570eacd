"""`FusedBatch`: several tokens of several sequences before the host looks at them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hotgrid.chat._generate._row import Row
from hotgrid.chat._model._gpt import GPT

from ._persistent import persistent_step
from ._step import FusedStep

# Steps that the host has for beginning the next burst.
_LAST = 3


@dataclass(frozen=True)
class Begun:
    """A burst that the device computes, or will compute.

    Attributes:
        last: The last token of each row, on the device; -1 where none could be chosen. It
            holds until the next burst begins, which can take its first tokens from it.
    """

    last: Tensor
    _host: Tensor
    _near: torch.cuda.Event | None
    _copied: torch.cuda.Event | None

    def near_end(self) -> None:
        """Wait until only the last few steps are left, in which the next burst can be begun."""
        if self._near is not None:
            self._near.synchronize()

    def chosen(self) -> list[list[int]]:
        """Wait for the steps, and return the chosen tokens of each row.

        Before the last token that was given come those that did not count.
        """
        if self._copied is not None:
            self._copied.synchronize()
        return self._host.T.tolist()


class FusedBatch:
    """Decodes over paged caches, with shapes that never change.

    A step is one CUDA graph where there is CUDA, and chooses the tokens of the next. Steps of
    one sequence are one kernel where that is possible. A burst
    can begin while the one before is under way: all that they share is on the device, and
    what they do there is in the order in which they began.

    Args:
        model: A model that is `understood`.
        caches: Keys and values of each layer; see `FusedStep`.
        page: The tokens of a block.
        batch: How many sequences.
        blocks: The most blocks of each.
        steps: The most steps without the host.
    """

    def __init__(
        self,
        model: GPT,
        caches: list[tuple[Tensor, Tensor]],
        page: int,
        batch: int,
        blocks: int,
        steps: int,
    ) -> None:
        device = model.embed.weight.device
        self._cuda, self._batch, self.steps = device.type == "cuda", batch, steps
        # All numbers of a call are in two tensors, so that there are two transfers.
        size, wide = batch * (4 + blocks + steps), batch * (1 + steps)
        self._whole = torch.zeros(size, dtype=torch.int64, device=device)
        self._real = torch.zeros(wide, dtype=torch.float64, device=device)
        self._chosen = torch.zeros(steps, batch, dtype=torch.int64, device=device)
        cuts = (batch, batch, batch, batch, batch * blocks, batch * steps)
        self._ends = np.cumsum(cuts[:-1])
        parts = self._whole.split(cuts)
        self._tokens, self._source, position, self._place, table, forced = parts
        self._temperature, uniforms = self._real.split((batch, batch * steps))
        self._uniforms, self._forced = uniforms.view(steps, batch), forced.view(steps, batch)
        table = table.view(batch, blocks)
        given = (model, caches, page, self._tokens, table, position)
        self._all_at_once = persistent_step(*given)
        self._step = self._all_at_once or FusedStep(*given)
        self._made: dict[int, Callable[[int], None]] = {}

    @torch.inference_mode()
    def prepare(self) -> None:
        """Compile and capture all kinds of steps, which their first calls would do."""
        for choice in (0, 1, 2):
            self._ready(choice)

    @torch.inference_mode()
    def feed(self, rows: Sequence[Row]) -> Tensor:
        """Feed one token of each row, and return the logits after it."""
        self._fill(rows, None)
        self._ready(0)(1)
        return self._step.logits[: len(rows)]

    @torch.inference_mode()
    def start(
        self,
        rows: Sequence[Row],
        temperatures: Sequence[float],
        uniforms: np.ndarray,
        before: Begun | None = None,
    ) -> Begun:
        """Begin to decode: feed the tokens of each row, then those that are chosen.

        Args:
            rows: The rows; they have at most as many tokens as there are steps.
            temperatures: One for each row; 0 takes the likeliest token.
            uniforms: The numbers to draw with, of shape `(steps, rows)`.
            before: The burst that rows follow, of this batch or of another one.
        """
        count, steps = len(rows), len(uniforms)
        self._fill(rows, before)
        real = self._host(self._real)
        given = real.numpy()
        given[:count] = temperatures
        given[self._batch :].reshape(-1, self._batch)[:steps, :count] = uniforms
        self._real.copy_(real, non_blocking=True)
        run = self._ready(2 if any(temperatures) else 1)
        self._step.embed()
        early = max(0, steps - _LAST)
        run(early)
        near = self._now()
        run(steps - early)
        # The next burst overwrites `_chosen`, but not before this copy, which is queued.
        found = self._host(self._chosen[:steps])
        found.copy_(self._chosen[:steps], non_blocking=True)
        return Begun(self._chosen[steps - 1], found, near, self._now())

    def _now(self) -> torch.cuda.Event | None:
        """Return what happens when the device has done all that it was given."""
        if not self._cuda:
            return None
        event = torch.cuda.Event()
        event.record()
        return event

    def _host(self, like: Tensor) -> Tensor:
        """Return zeros on the host.

        Transfers of pinned memory run on after `copy_` has returned. So each has memory of its
        own, which PyTorch's allocator does not reuse before they have ended.
        """
        return torch.zeros(like.shape, dtype=like.dtype, pin_memory=self._cuda)

    def _fill(self, rows: Sequence[Row], before: Begun | None) -> None:
        whole = self._host(self._whole)
        parts = np.split(whole.numpy(), self._ends)
        tokens, source, position, _, table, forced = parts
        count = len(rows)
        tokens[:count] = [row.tokens[0] if row.follows < 0 else 0 for row in rows]
        position[:count] = [row.position for row in rows]
        follows = np.array([row.follows for row in rows])
        source[:] = np.arange(self._batch)
        source[:count][follows >= 0] = self._batch + follows[follows >= 0]
        forced[:] = -1
        lines, columns = table.reshape(self._batch, -1), forced.reshape(-1, self._batch).T
        for row, blocks, column in zip(rows, lines, columns, strict=False):
            held = np.frombuffer(row.blocks, np.int64)[: len(blocks)]
            blocks[: len(held)] = held
            if len(row.tokens) > 1:
                column[: len(row.tokens) - 1] = row.tokens[1:]
        self._whole.copy_(whole, non_blocking=True)
        if before is not None:
            both = torch.cat((self._tokens, before.last)).clamp_(min=0)
            torch.index_select(both, 0, self._source, out=self._tokens)

    def _ready(self, choice: int) -> Callable[[int], None]:
        """Return what does a number of steps."""
        if choice not in self._made:
            self._made[choice] = self._at_once(choice) or self._one_by_one(choice)
        return self._made[choice]

    def _at_once(self, choice: int) -> Callable[[int], None] | None:
        """Return what does steps in one kernel, where that is possible."""
        whole = self._all_at_once
        if whole is None:
            return None
        numbers = (self._temperature, self._uniforms, self._forced, self._place, self._chosen)

        def run(count: int) -> None:
            if choice:
                whole.run(count, *numbers, choice=choice)
            else:
                whole.embed()
                whole.feed()

        return run

    def _one_by_one(self, choice: int) -> Callable[[int], None]:
        """Return what does one step after the other; where there is CUDA, as graphs."""
        given = self._step
        if not isinstance(given, FusedStep):
            raise TypeError(f"{type(given)} does its steps at once")

        def step() -> None:
            if not choice:
                given.embed()
            given.feed(self._temperature, choice=choice)
            if choice:
                given.choose(
                    self._temperature, self._uniforms, self._forced, self._place,
                    self._chosen, choice=choice,
                )  # fmt: skip

        if self._cuda:
            # The first block must stay finite.
            given.embed()
            step = captured(step, self._whole, self._real)

        def run(count: int) -> None:
            for _ in range(count):
                step()

        return run


def captured(step: Callable[[], None], *state: Tensor) -> Callable[[], None]:
    """Return a function without arguments as a CUDA graph.

    It is run a few times on zeros, before; `state` is what it changes, and is restored.
    """
    kept = [each.clone() for each in state]
    stream = torch.cuda.Stream()
    for each in state:
        each.zero_()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
        step()
    torch.cuda.current_stream().wait_stream(stream)
    for each in state:
        each.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for mine, old in zip(state, kept, strict=True):
        mine.copy_(old)
    return graph.replay
