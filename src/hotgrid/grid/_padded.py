"""Padded buffers: the form of the CPU.

A shift along the last dim of a whole array is not vectorised on a CPU, a slice of
a padded one is. The slice is taken of the plane laid out flat, so that a step is one
long loop without rows; at the ends of a row it reads the next one, inside the margin,
where it does no harm. Steps spoil the margin from the outside, and it is refreshed,
uncompiled, every `depth` steps.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from hotgrid import _native

from ._form import Setting, planes_of
from ._model import State
from ._neighbours import Look
from ._tape import Tape, taped
from ._two_buffers import Looks, TwoBufferForm

# Fewer refreshes against more redundant cells; 4 measured best at 1024 x 1024.
_DEPTH = 4
# Cells of a grid whose step is about as long as the call that makes it, and the steps
# from which on it pays to go round that call.
_SHORT = 1 << 17
_WORTH_TAPING = 32


class PaddedForm(TwoBufferForm):
    """Grids with a margin that repeats the far end, or holds what lies outside."""

    name = "padded"

    def __init__(self, setting: Setting, depth: int | None = None) -> None:
        model = setting.model
        # A constant margin would come alive if steps were let into it.
        constant = any(field.outside is not None for field in model.fields)
        self.depth = 1 if constant else max(1, depth or _DEPTH)
        # A periodic margin repeats cells of the grid, so it cannot be wider than that.
        while self.depth > 1 and not _inside_of(setting, self.depth):
            self.depth -= 1
        self._clean = 0
        self._tapes: list[Tape] | None = None
        self._by_hand = setting.device.type == "cpu" and _native.available()
        super().__init__(setting, _margin(setting, self.depth))

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

    def run(self, steps: int) -> None:
        """Advance by a number of steps, refreshing the margin when it is used up."""
        if self._tapes is None and steps >= _WORTH_TAPING and self._is_short():
            self._tapes = self._recorded(super().run)
        while steps > 0:
            if self._clean == 0:
                self._refresh()
                self._clean = self.depth
            now = min(steps, self._clean)
            if self._tapes:
                self._play(now)
            else:
                super().run(now)
            self._clean -= now
            steps -= now

    def _is_short(self) -> bool:
        """Whether a step takes less than the call that makes it."""
        setting = self.setting
        return setting.compiled and setting.device.type == "cpu" and setting.cells < _SHORT

    def _recorded(self, call: Callable[[int], None]) -> list[Tape]:
        """The kernels of a step out of either buffer; empty where they cannot be had."""
        kept = [[buffer.clone() for buffer in buffers] for buffers in self._buffers]
        now, tapes = self._now, []
        call(1)  # compiles
        for old in range(2):
            self._now = old
            outs = [x for part in self._outs[1 - old] for views in part for x in views]
            tapes.append(taped(lambda: call(1), outs))
        self._now = now
        for buffers, saved in zip(self._buffers, kept, strict=True):
            for buffer, x in zip(buffers, saved, strict=True):
                buffer.copy_(x)
        return tapes if all(tapes) else []

    def _play(self, steps: int) -> None:
        for _ in range(steps):
            for kernel, args in self._tapes[self._now]:  # pyright: ignore[reportOptionalSubscript]
                kernel(*args)
            self._now = 1 - self._now

    def _looks(self) -> list[Looks]:
        model = self.setting.model
        slicing = _slicing(model.radius)
        return [{kind.name: slicing for kind in (*model.fields, *model.inputs)}]

    def _views(self, buffers: Sequence[Tensor]) -> list[list[list[Tensor]]]:
        """All but the ends of every plane."""
        look, here = _slicing(self.setting.model.radius), (0,) * self.setting.rank
        return [
            [
                [look(plane, here) for plane in planes_of(buffer, self.setting.rank)]
                for buffer in buffers
            ]
        ]

    def _extended(self, x: Tensor) -> Tensor:
        """An input with its periodic margin."""
        padded = [n + 2 * m for n, m in zip(self.setting.size, self.margin, strict=True)]
        out = torch.empty(
            (*x.shape[: -self.setting.rank], *padded), dtype=x.dtype, device=x.device
        )
        self._inside(out).copy_(x)
        _wrap(out, self.margin)
        return out

    def _refresh(self) -> None:
        fields = self.setting.model.fields
        for field, buffer in zip(fields, self._buffers[self._now], strict=True):
            if field.outside is not None:
                _fill(buffer, self.margin, field.outside)
            elif self._by_hand:
                _native.core().join_ends(buffer, self.margin)
            else:
                _wrap(buffer, self.margin)


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


def _slicing(radius: int) -> Look:
    """Look by slicing a plane laid out flat, `[..., *1, cells]`: it keeps its rank."""

    def look(plane: Tensor, offset: tuple[int, ...]) -> Tensor:
        rank = len(offset)
        strides = [math.prod(plane.shape[plane.ndim - rank + k + 1 :]) for k in range(rank)]
        ends = radius * sum(strides)
        there = ends + sum(o * stride for o, stride in zip(offset, strides, strict=True))
        flat = plane.flatten(-rank)
        seen = flat.narrow(-1, there, flat.shape[-1] - 2 * ends)
        return seen.unflatten(-1, (*[1] * (rank - 1), -1))

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
