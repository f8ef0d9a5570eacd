"""Padded buffers: the form of the CPU.

A shift along the last dim of a whole array is not vectorised on a CPU, a slice of
a padded one is. The slice is taken of the plane laid out flat, so that a step is one
long loop without rows; at the ends of a row it reads the next one, inside the margin,
where it does no harm. Steps spoil the margin from the outside, and it is refreshed
every `depth` steps. Compiled steps are launched by the native core where it is there.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from hotgrid import _native

from ._form import FirstCall, Setting, compile_step, planes_of
from ._model import State
from ._neighbours import Look
from ._sweep import sweep_of
from ._two_buffers import Looks, TwoBufferForm, Views, writing_step

_PIECE = 256
_DEPTHS = (1, 2, 4, 8)
# What a step costs when that many are made while the cells are in the cache; measured
# with D2Q9 on 1024 x 1024.
_GAIN = {1: 1.0, 2: 0.88, 4: 0.76, 8: 0.7}
# Bytes that the steps of a sweep may hold in a core's own cache.
_CACHE = 3 << 18
# What a refresh costs beside its copies, in numbers computed.
_REFRESH = 10_000


class PaddedForm(TwoBufferForm):
    """Grids with a margin that repeats the far end, or holds what lies outside."""

    name = "padded"

    def __init__(self, setting: Setting, depth: int | None = None) -> None:
        model = setting.model
        self.depth = _fitting(setting, depth) if depth else _best_depth(setting)
        margin = _margin(setting, self.depth)
        self._by_hand = setting.device.type == "cpu" and _native.available()
        swept = setting.compiled and self._by_hand
        self._piece = _piece(setting, margin) if swept else 0
        super().__init__(setting, margin, tail=self._piece)
        self._lines = [[self._line(flat) for flat in flats] for flats in self._flats]
        self._fixed = [self._extended(setting.inputs[known.name]) for known in model.inputs]
        self._clean = 0
        self._sweep: Any = None
        self._outs: list[Views] = []
        self._step: Any = None
        if not swept:
            self._prepare(self._cells)

    @staticmethod
    def obstacle(setting: Setting) -> str:
        """The grid must be large enough to be its own margin."""
        if _inside_of(setting, 1):
            return ""
        return (
            f"it needs at least {setting.model.radius} cells, the radius of "
            f"{type(setting.model).__name__}, in every dim of `size` {setting.size}"
        )

    @staticmethod
    def wins(setting: Setting) -> bool:
        """On every CPU, once compiled."""
        return setting.compiled and setting.device.type == "cpu"

    def load(self, state: State) -> None:
        """Copy a state into the interior."""
        super().load(state)
        self._clean = 0

    def touched(self) -> None:
        """The margin no longer repeats the grid."""
        self._clean = 0

    def run(self, steps: int) -> None:
        """Advance by a number of steps, refreshing the margin when it is used up."""
        while steps > 0:
            if self._clean == 0:
                self._refresh()
                self._clean = self.depth
            now = min(steps, self._clean)
            self._advance(now)
            self._clean -= now
            steps -= now

    @property
    def _cells(self) -> int:
        """How many cells lie between the ends that a step leaves out."""
        return _computed(self._padded_size, self.setting.model.radius)

    def _advance(self, steps: int) -> None:
        if self._piece and self._step is None:
            self._sweep = self._swept()
            if self._sweep is None:
                self._piece = 0
                tried = isinstance(self._step, FirstCall) and self._step.is_plain
                self._prepare(self._cells, again=not tried)
        if self._sweep is not None:
            self._sweep.run(self._now, steps)
            self._now = (self._now + steps) % 2
            return
        for _ in range(steps):
            self._call(self._now)
            self._now = 1 - self._now

    def _call(self, old: int) -> None:
        with torch.no_grad():
            self._step(self._lines[old], self._outs[1 - old], self._fixed, self._params)

    def _prepare(self, cells: int, again: bool = True) -> None:
        """Make ready a step of the first so many cells, compiled unless that was in vain."""
        setting = replace(self.setting, compiled=self.setting.compiled and again)
        kinds = (*setting.model.fields, *setting.model.inputs)
        look = _slicing(self._padded_size, setting.model.radius, cells)
        here, rank = (0,) * setting.rank, setting.rank
        self._outs = [
            [[[look(x, here) for x in planes_of(buffer, rank)] for buffer in buffers]]
            for buffers in self._lines
        ]
        looks: list[Looks] = [{kind.name: look for kind in kinds}]
        threads = 1 if self._piece else None
        self._step = compile_step(writing_step(setting, looks), setting, threads)

    def _swept(self) -> Any:
        """The core's sweep over a step that is compiled for one piece."""
        self._prepare(self._piece)
        outs = [[x for views in self._outs[1 - old][0] for x in views] for old in (0, 1)]
        kept = [[x.clone() for x in written] for written in outs]
        made = sweep_of(
            self._call,
            outs,
            [*self._flats[0], *self._flats[1], *self._fixed],
            cells=self._cells,
            piece=self._piece,
            reach=_ends(self._padded_size, self.setting.model.radius),
        )
        for written, saved in zip(outs, kept, strict=True):
            for out, x in zip(written, saved, strict=True):
                out.copy_(x)
        return made

    def _extended(self, x: Tensor) -> Tensor:
        """An input with its periodic margin, laid out flat."""
        flat = self._room(x.shape[: -self.setting.rank], x.dtype)
        out = self._shaped(flat)
        self._inside(out).copy_(x)
        _wrap(out, self.margin)
        return self._line(flat)

    def _line(self, flat: Tensor) -> Tensor:
        """Flat planes as `[*leading, *1, cells]`: they keep the rank of the grid."""
        return flat.unflatten(-1, (*[1] * (self.setting.rank - 1), -1))

    def _refresh(self) -> None:
        for k, field in enumerate(self.setting.model.fields):
            buffer = self._buffers[self._now][k]
            if field.outside is not None:
                _fill(buffer, self.margin, field.outside)
            elif self._by_hand:
                flat = self._flats[self._now][k]
                _native.core().join_ends(flat, self._padded_size, self.margin)
            else:
                _wrap(buffer, self.margin)


def _ends(size: Sequence[int], radius: int) -> int:
    """Cells at either end of a flat plane from which a step would look beyond it."""
    return radius * sum(math.prod(size[k + 1 :]) for k in range(len(size)))


def _computed(size: Sequence[int], radius: int) -> int:
    """How many cells of a flat plane a step computes."""
    return math.prod(size) - 2 * _ends(size, radius)


def _piece(setting: Setting, margin: Sequence[int]) -> int:
    """Cells of one call: about a thousand numbers, so that the call itself is nothing."""
    size = [n + 2 * m for n, m in zip(setting.size, margin, strict=True)]
    numbers = sum(field.components for field in setting.model.fields)
    wanted = max(_PIECE, 1024 // numbers // 64 * 64)
    return min(wanted, _computed(size, setting.model.radius))


def _fitting(setting: Setting, depth: int) -> int:
    """The depth, or the largest below it that the grid allows."""
    # A constant margin would come alive if steps were let into it.
    if any(field.outside is not None for field in setting.model.fields):
        return 1
    # A periodic margin repeats cells of the grid, so it cannot be wider than that.
    return next((d for d in range(depth, 1, -1) if _inside_of(setting, d)), 1)


def _best_depth(setting: Setting) -> int:
    """The depth that costs least: cells computed twice against refreshes and the cache."""
    model = setting.model
    numbers = sum(field.components for field in model.fields)
    cells = math.prod(setting.size)
    width = 2 * sum(f.components * setting.kept_as(f).itemsize for f in model.fields)
    width += sum(known.components * setting.kept_as(known).itemsize for known in model.inputs)

    def cost(depth: int) -> float:
        """Time of a step in units of a number computed; about a nanosecond."""
        margin = _margin(setting, depth)
        shares = [2 * m / n for n, m in zip(setting.size, margin, strict=True)]
        padded = [n + 2 * m for n, m in zip(setting.size, margin, strict=True)]
        held = width * (depth + 1) * _ends(padded, model.radius)
        gain = _GAIN[depth] if held <= _CACHE < width * cells else 1.0
        work = numbers * cells * math.prod(1 + share for share in shares) * gain
        return work + (_REFRESH + numbers * cells * sum(shares) / 2) / depth

    return min((d for d in _DEPTHS if _fitting(setting, d) == d), key=cost)


def _inside_of(setting: Setting, depth: int) -> bool:
    margin = _margin(setting, depth)
    return all(m <= n for n, m in zip(setting.size, margin, strict=True))


def _margin(setting: Setting, depth: int) -> tuple[int, ...]:
    """Cells beyond the grid along each axis, for so many steps between two refreshes."""
    radius = setting.model.radius
    *before, last = setting.model.reach(depth, setting.rank)
    # A step leaves out the outermost cells of the first and the last row it writes. Where
    # news travels slower than the radius, they would be missed.
    return (*before, min(depth * radius, last + radius))


def _slicing(size: Sequence[int], radius: int, cells: int) -> Look:
    """Look by slicing planes of that padded size, laid out flat."""
    strides = [math.prod(size[k + 1 :]) for k in range(len(size))]
    ends = _ends(size, radius)

    def look(plane: Tensor, offset: tuple[int, ...]) -> Tensor:
        there = ends
        for o, stride in zip(offset, strides, strict=True):
            there += o * stride
        return plane.narrow(-1, there, cells)

    return look


def _wrap(buffer: Tensor, margin: Sequence[int]) -> None:
    """Copy the far ends into the margin, one dim after the other: corners come right."""
    for dim, m in enumerate(margin, start=-len(margin)):
        n = buffer.shape[dim]
        buffer.narrow(dim, 0, m).copy_(buffer.narrow(dim, n - 2 * m, m))
        buffer.narrow(dim, n - m, m).copy_(buffer.narrow(dim, m, m))


def _fill(buffer: Tensor, margin: Sequence[int], value: float) -> None:
    for dim, m in enumerate(margin, start=-len(margin)):
        buffer.narrow(dim, 0, m).fill_(value)
        buffer.narrow(dim, buffer.shape[dim] - m, m).fill_(value)
