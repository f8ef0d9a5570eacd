"""`Stepper`: one forward pass for the next tokens of several sequences over a paged cache."""

import itertools
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hotgrid.chat._model._gpt import GPT, Memory
from hotgrid.nn import PagedCache, Pages

from ._fused._batch import FusedBatch
from ._fused._step import MOST, fusible
from ._row import Row

# More would let a new request wait, and compute more that comes after the end of a reply. Fewer
# would leave too little time to the host, which works for one burst while the next is computed.
_STEPS = 8
# Tokens of the shortest table; a longer one than needed costs nothing where bursts are.
_SHORT = 256


class Stepper:
    """Feeds tokens to a model.

    Args:
        model: The model.
        blocks: Blocks of the cache.
        block: The tokens of a block.
        rows: The most sequences at once.
        length: The most tokens of a sequence.
        static: Whether single tokens are fed in a few shapes only (powers of two), each
            captured as a CUDA graph where there is CUDA. Models that are `fusible` are then
            decoded by fused kernels.
        compiled: Whether single tokens go through `torch.compile`, too; needs `static`.
    """

    def __init__(
        self,
        model: GPT,
        blocks: int,
        block: int,
        *,
        rows: int,
        length: int,
        static: bool,
        compiled: bool,
    ) -> None:
        self._model, self._block, self._static = model, block, static
        # A burst continues beyond the end of a sequence while others need it.
        longest = max(_SHORT, length + _STEPS - 1)
        self._counts = _doubled(1, 1 << (rows - 1).bit_length())
        self._tables = _doubled(_SHORT // block, -(-longest // _SHORT) * _SHORT // block)
        if compiled:
            # PyTorch compiles a function for 8 shapes at most, and takes long for each.
            self._counts = sorted({1, self._counts[-1]})
            middle = self._tables[len(self._tables) // 2]
            self._tables = sorted({self._tables[0], middle, self._tables[-1]})
        self._length = length
        config, weight = model.config, model.embed.weight
        self.device = weight.device
        # Compressed models keep their embedding in floating point, as attention is.
        kind = {"device": weight.device, "dtype": weight.dtype}
        self._caches = [
            PagedCache(blocks, config.groups, block, config.head, **kind)
            for _ in range(config.layers)
        ]
        self._one: Callable[..., Tensor] = self.forward
        if compiled:
            self._one = torch.compile(self.forward, dynamic=False, fullgraph=True)
        self._graphs: dict[tuple[int, int], _Graph] = {}
        self._fused: dict[tuple[int, int], FusedBatch] = {}
        self._bursts = static and not compiled and fusible(model)
        self._ahead = self._bursts or compiled or (static and self.device.type == "cuda")

    def most_steps(self, rows: int) -> int:
        """Return the most steps of a burst of `rows` rows; 1 if they have no bursts."""
        return _STEPS if self._bursts and rows <= MOST else 1

    def burst(self, rows: Sequence[Row], steps: int) -> FusedBatch:
        """Return a decoder for some rows and steps; there must be bursts for them."""
        return self._batch(self._shape(rows, steps))

    def prepare(self) -> None:
        """Compile and capture everything, so later calls do not wait.

        The shapes of later calls are among those of these, for as many rows and tokens as the
        stepper was made for.
        """
        shapes = itertools.product(self._counts, self._tables) if self._ahead else ()
        for count, table in shapes:
            if self.most_steps(count) > 1:
                self._batch((count, table)).prepare()
                continue
            # The row has no blocks, so it changes nothing but that of padding.
            last = min(table * self._block, self._length) - 1
            self.feed([Row([0], last, 0, array("q"))] * count)

    def _batch(self, shape: tuple[int, int]) -> FusedBatch:
        if shape not in self._fused:
            caches = [(cache.keys, cache.values) for cache in self._caches]
            self._fused[shape] = FusedBatch(self._model, caches, self._block, *shape, _STEPS)
        return self._fused[shape]

    def _shape(self, rows: Sequence[Row], more: int) -> tuple[int, int]:
        """Return the sequences and blocks that rows and their next tokens are padded to."""
        longest = -(-(max(row.position for row in rows) + more) // self._block)
        return (
            self._counts[bisect_left(self._counts, len(rows))],
            self._tables[bisect_left(self._tables, longest)],
        )

    @torch.inference_mode()
    def feed(self, rows: Sequence[Row]) -> Tensor:
        """Feed the tokens of each row, and return the logits after its last."""
        width = max(len(row.tokens) for row in rows)
        if width == 1 and self.most_steps(len(rows)) > 1:
            return self.burst(rows, 1).feed(rows)
        longest = max(-(-(row.position + len(row.tokens)) // self._block) for row in rows)
        count = len(rows)
        if self._static and width == 1:
            count, longest = self._shape(rows, 1)
        inputs = self._inputs(rows, count, width, longest)
        if not self._static or width > 1:
            return self.forward(*inputs)[: len(rows)]
        if self.device.type != "cuda":
            return self._one(*inputs)[: len(rows)]
        shape = (count, longest)
        if shape not in self._graphs:
            self._graphs[shape] = _Graph(self._one, inputs)
        return self._graphs[shape](inputs)[: len(rows)]

    def _inputs(
        self, rows: Sequence[Row], count: int, width: int, longest: int
    ) -> tuple[Tensor, ...]:
        """Return tokens, table, positions, counts and tokens before, padded."""
        # One array and one transfer for all of them; lists of lists would take longer than
        # the step of a GPU.
        numbers = np.zeros((count, width + longest + 3), np.int64)
        numbers[len(rows) :, -1] = -1
        for place, row in enumerate(rows):
            blocks = np.frombuffer(row.blocks, np.int64)[:longest]
            numbers[place, : len(row.tokens)] = row.tokens
            numbers[place, width : width + len(blocks)] = blocks
            numbers[place, -3:] = row.position, len(row.tokens), row.before
        all_of_them = torch.from_numpy(numbers)
        if self.device.type == "cuda":
            all_of_them = all_of_them.pin_memory().to(self.device, non_blocking=True)
        tokens, table, rest = all_of_them.split((width, longest, 3), 1)
        position, real, before = rest.unbind(1)
        return tokens, table, position, real, before

    def forward(
        self, tokens: Tensor, table: Tensor, position: Tensor, count: Tensor, before: Tensor
    ) -> Tensor:
        """Return the logits after the last real token of each row."""
        pages = Pages(table, position, count, tokens.shape[1], self._block)
        for cache in self._caches:
            cache.pages = pages
        memory: Any = Memory(caches=self._caches)  # type: ignore[arg-type]
        if self._model.config.mixing:
            memory.last = self._last(before)
        features = self._model.features(tokens, memory=memory)
        last = (count - 1).clamp(min=0)[:, None, None].expand(-1, 1, features.shape[2])
        return self._model.head(features.gather(1, last)[:, 0])

    def _last(self, before: Tensor) -> Tensor:
        """Return the value of `Memory.last` after a token; zeros where there is none."""
        x = self._model.embed(before.clamp(min=0))
        if self._model.config.embed_norm:
            x = F.rms_norm(x, x.shape[-1:])
        return (x * (before >= 0)[:, None].to(x.dtype))[:, None]


class _Graph:
    """A function of tensors as a CUDA graph."""

    def __init__(self, function: Callable[..., Tensor], inputs: Sequence[Tensor]) -> None:
        self._inputs = [each.clone() for each in inputs]
        # Rows without tokens change nothing but the block of padding.
        self._inputs[3].zero_()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                function(*self._inputs)
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._out = function(*self._inputs)

    def __call__(self, inputs: Sequence[Tensor]) -> Tensor:
        for mine, given in zip(self._inputs, inputs, strict=True):
            mine.copy_(given)
        self._graph.replay()
        return self._out


def _doubled(first: int, last: int) -> list[int]:
    """Return a number, its doubles that are well below the last, and that."""
    found = [first]
    while found[-1] * 3 <= last:
        found.append(found[-1] * 2)
    return found if first >= last else [*found, last]
