"""Two padded buffers, read and written in turn: the form of the CPU.

A shift along the last dim of a whole array is not vectorised on a CPU, a slice of
a padded one is. The margin is `depth` times the radius wide: steps spoil it from
the outside by one radius each, and it is refreshed, uncompiled, every `depth`
steps. Results go into views made once and passed in, because torch turns several
writes into one tensor inside a graph into many masked copies.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ._form import Form, Setting, compile_step, planes_of, stepped
from ._model import State
from ._neighbours import Look

# Fewer refreshes against more redundant cells; 4 measured best at 1024 x 1024.
_DEPTH = 4


class PaddedForm(Form):
    """Every step reads one buffer and writes the other."""

    name = "padded"

    def __init__(self, setting: Setting, depth: int | None = None) -> None:
        super().__init__(setting)
        radius = max(1, setting.model.radius)
        # A periodic margin repeats cells of the grid, so it cannot be wider than that;
        # a constant one would come alive if steps were let into it.
        constant = any(field.outside is not None for field in setting.model.fields)
        self.depth = (
            1 if constant else max(1, min(depth or _DEPTH, min(setting.size) // radius))
        )
        self.margin = self.depth * radius
        self._radius = radius
        padded = [n + 2 * self.margin for n in setting.size]
        self._buffers = [
            [
                torch.zeros(
                    (*setting.batch, field.components, *padded),
                    dtype=setting.kept_as(field),
                    device=setting.device,
                )
                for field in setting.model.fields
            ]
            for _ in range(2)
        ]
        self._outs = [self._views(buffers) for buffers in self._buffers]
        self._fixed = [self._extended(setting.inputs[k.name]) for k in setting.model.inputs]
        self._params = list(setting.params.values())
        self._step = compile_step(self._traced(), setting)
        self._now = 0
        self._clean = 0

    @staticmethod
    def fits(setting: Setting) -> bool:
        """Whether the grid is large enough to be its own margin."""
        return min(setting.size) >= max(1, setting.model.radius)

    def load(self, state: State) -> None:
        """Copy a state into the interior."""
        self._now = 0
        for field, buffer in zip(self.setting.model.fields, self._buffers[0], strict=True):
            self._inside(buffer).copy_(state[field.name])
        self._clean = 0

    def read(self) -> State:
        """The present state: the interior of the present buffers."""
        buffers = self._buffers[self._now]
        return {
            field.name: self._inside(buffer)
            for field, buffer in zip(self.setting.model.fields, buffers, strict=True)
        }

    def run(self, steps: int) -> None:
        """Advance by a number of steps, refreshing the margin when it is used up."""
        with torch.no_grad():
            for _ in range(steps):
                if self._clean == 0:
                    self._refresh()
                    self._clean = self.depth
                old, new = self._now, 1 - self._now
                self._step(self._buffers[old], self._outs[new], self._fixed, self._params)
                self._now = new
                self._clean -= 1

    def _traced(self):  # noqa: ANN202  a closure for the compiler
        setting, slicing = self.setting, _slicing(self._radius)
        model = setting.model

        def step(
            fields: Sequence[Tensor],
            outs: Sequence[Sequence[Tensor]],
            fixed: Sequence[Tensor],
            params: Sequence[Tensor],
        ) -> None:
            planes = stepped(
                setting,
                dict(zip([field.name for field in model.fields], fields, strict=True)),
                dict(zip([known.name for known in model.inputs], fixed, strict=True)),
                dict(zip(setting.params, params, strict=True)),
                {kind.name: slicing for kind in (*model.fields, *model.inputs)},
            )
            for views, components in zip(outs, planes, strict=True):
                for out, plane in zip(views, components, strict=True):
                    out.copy_(plane)

        return step

    def _views(self, buffers: Sequence[Tensor]) -> list[list[Tensor]]:
        """Where a step writes: all but the outermost radius, a view for each component."""
        rank, r = self.setting.rank, self._radius
        inner = (..., *[slice(r, -r)] * rank)
        return [[plane[inner] for plane in planes_of(buffer, rank)] for buffer in buffers]

    def _inside(self, buffer: Tensor) -> Tensor:
        m = self.margin
        return buffer[(..., *[slice(m, -m)] * self.setting.rank)]

    def _extended(self, x: Tensor) -> Tensor:
        """An input with its periodic margin."""
        padded = [n + 2 * self.margin for n in self.setting.size]
        out = torch.empty(
            (*x.shape[: -self.setting.rank], *padded), dtype=x.dtype, device=x.device
        )
        self._inside(out).copy_(x)
        _wrap(out, self.setting.rank, self.margin)
        return out

    def _refresh(self) -> None:
        rank, m = self.setting.rank, self.margin
        for field, buffer in zip(
            self.setting.model.fields, self._buffers[self._now], strict=True
        ):
            if field.outside is None:
                _wrap(buffer, rank, m)
            else:
                _fill(buffer, rank, m, field.outside)


def _slicing(radius: int) -> Look:
    """Look by slicing: the cells a step computes, moved by the offset."""

    def look(plane: Tensor, offset: tuple[int, ...]) -> Tensor:
        for dim, o in enumerate(offset, start=-len(offset)):
            plane = plane.narrow(dim, radius + o, plane.shape[dim] - 2 * radius)
        return plane

    return look


def _wrap(buffer: Tensor, rank: int, m: int) -> None:
    """Copy the far ends into the margin, one dim after the other: corners come right."""
    for dim in range(-rank, 0):
        n = buffer.shape[dim]
        buffer.narrow(dim, 0, m).copy_(buffer.narrow(dim, n - 2 * m, m))
        buffer.narrow(dim, n - m, m).copy_(buffer.narrow(dim, m, m))


def _fill(buffer: Tensor, rank: int, m: int, value: float) -> None:
    for dim in range(-rank, 0):
        buffer.narrow(dim, 0, m).fill_(value)
        buffer.narrow(dim, buffer.shape[dim] - m, m).fill_(value)
