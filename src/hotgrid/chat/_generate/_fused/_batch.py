"""`FusedBatch`: several tokens of several sequences before the host looks at them."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from hotgrid.chat._generate._row import Row
from hotgrid.chat._model._gpt import GPT

from ._step import FusedStep


class FusedBatch:
    """Decodes over paged caches, with shapes that never change.

    A step is one CUDA graph where there is CUDA, and chooses the tokens of the next.

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
        size, wide = batch * (3 + blocks + steps), batch * (1 + steps)
        self._whole = torch.zeros(size, dtype=torch.int64, device=device)
        self._real = torch.zeros(wide, dtype=torch.float64, device=device)
        self._chosen = torch.zeros(steps, batch, dtype=torch.int64, device=device)
        self._host = [
            torch.zeros(each.shape, dtype=each.dtype, pin_memory=self._cuda)
            for each in (self._whole, self._real, self._chosen)
        ]
        cuts = (batch, batch, batch, batch * blocks, batch * steps)
        tokens, position, self._place, table, forced = self._whole.split(cuts)
        self._temperature, uniforms = self._real.split((batch, batch * steps))
        self._uniforms, self._forced = uniforms.view(steps, batch), forced.view(steps, batch)
        self._given = [each.numpy() for each in self._host[0].split(cuts)]
        self._step = FusedStep(model, caches, page, tokens, table.view(batch, blocks), position)
        self._graphs: dict[int, Callable[[], None]] = {}
        self._copied = torch.cuda.Event() if self._cuda else None

    @torch.inference_mode()
    def feed(self, rows: Sequence[Row]) -> Tensor:
        """Feed one token of each row, and return the logits after it."""
        self._fill(rows)
        self._ready(0)()
        return self._step.logits[: len(rows)]

    @torch.inference_mode()
    def start(
        self, rows: Sequence[Row], temperatures: Sequence[float], uniforms: np.ndarray
    ) -> None:
        """Begin to decode: feed the tokens of each row, then those that are chosen.

        Args:
            rows: The rows; they have at most as many tokens as there are steps.
            temperatures: Of each row; 0 takes the likeliest token.
            uniforms: The numbers to draw with, of shape `(steps, rows)`.
        """
        count = len(rows)
        given = self._host[1].numpy()
        self._fill(rows)
        given[:count] = temperatures
        given[self._batch :].reshape(-1, self._batch)[: len(uniforms), :count] = uniforms
        self._real.copy_(self._host[1], non_blocking=True)
        step = self._ready(2 if any(temperatures) else 1)
        self._step.embed()
        for _ in range(len(uniforms)):
            step()
        self._host[2].copy_(self._chosen, non_blocking=True)
        self._note()

    def chosen(self) -> list[list[int]]:
        """Wait for the steps, and return the chosen tokens of each row.

        Before the last token that was given come those that did not count.
        """
        self._wait()
        return self._host[2].T.tolist()

    def _fill(self, rows: Sequence[Row]) -> None:
        self._wait()
        tokens, position, place, table, forced = self._given
        count = len(rows)
        tokens[:count] = [row.tokens[0] for row in rows]
        position[:count] = [row.position for row in rows]
        position[count:] = place[:] = table[:] = 0
        forced[:] = -1
        lines, columns = table.reshape(self._batch, -1), forced.reshape(-1, self._batch).T
        for row, blocks, column in zip(rows, lines, columns, strict=False):
            held = np.frombuffer(row.blocks, np.int64)[: len(blocks)]
            blocks[: len(held)] = held
            if len(row.tokens) > 1:
                column[: len(row.tokens) - 1] = row.tokens[1:]
        self._whole.copy_(self._host[0], non_blocking=True)
        self._note()

    def _note(self) -> None:
        if self._copied is not None:
            self._copied.record()

    def _wait(self) -> None:
        """Wait until what was copied is there."""
        if self._copied is not None:
            self._copied.synchronize()

    def _ready(self, choice: int) -> Callable[[], None]:
        """Return a step; where there is CUDA, as a graph."""

        def step() -> None:
            if not choice:
                self._step.embed()
            self._step.feed(self._temperature, choice=choice)
            if choice:
                self._step.choose(
                    self._temperature, self._uniforms, self._forced, self._place,
                    self._chosen, choice=choice,
                )  # fmt: skip

        if not self._cuda:
            return step
        if choice not in self._graphs:
            # The first block must stay finite.
            self._step.embed()
            self._graphs[choice] = captured(step, self._whole, self._real)
        return self._graphs[choice]


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
