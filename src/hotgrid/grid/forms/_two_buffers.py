"""Two buffers, read and written in turn: what the padded form and the strips share.

Results go into views made once and passed in, because torch turns several writes into
one tensor inside a graph into many masked copies.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from hotgrid.grid.model import Look, State

from ._form import Form, Setting, stepped

Looks = Mapping[str, Look]
"""How to read neighbours of every field and input, by name."""
Views = list[list[list[Tensor]]]
"""Where a step writes: for every part of the grid, every field, every component."""


class TwoBufferForm(Form):
    """Every step reads one buffer and writes the other.

    Arguments:
        setting: What is run.
        margin: Cells beyond the grid along each axis, at both ends.
        tail: Unused cells beyond the end of every plane.
    """

    def __init__(self, setting: Setting, margin: Sequence[int], tail: int = 0) -> None:
        super().__init__(setting)
        self.margin = tuple(margin)
        self._tail = tail
        self._flats = [
            [
                self._room((*setting.batch, field.components), setting.kept_as(field))
                for field in setting.model.fields
            ]
            for _ in range(2)
        ]
        self._buffers = [[self._shaped(flat) for flat in flats] for flats in self._flats]
        # Made once: a view costs microseconds, which callbacks after every step would feel.
        self._states = [self._state_in(buffers) for buffers in self._buffers]
        self._params = list(setting.params.values())
        self._now = 0

    def load(self, state: State) -> None:
        """Copy a state into the buffers."""
        self._now = 0
        for name, inside in self._states[0].items():
            inside.copy_(state[name])

    def read(self) -> State:
        """The present state: the grid inside the present buffers."""
        return dict(self._states[self._now])

    def _state_in(self, buffers: Sequence[Tensor]) -> State:
        fields = self.setting.model.fields
        return {f.name: self._inside(x) for f, x in zip(fields, buffers, strict=True)}

    @property
    def _padded_size(self) -> list[int]:
        return [n + 2 * m for n, m in zip(self.setting.size, self.margin, strict=True)]

    def _room(self, leading: Sequence[int], dtype: torch.dtype) -> Tensor:
        """Zeros for planes laid out flat, `[*leading, cells and tail]`."""
        cells = math.prod(self._padded_size) + self._tail
        return torch.zeros((*leading, cells), dtype=dtype, device=self.setting.device)

    def _shaped(self, flat: Tensor) -> Tensor:
        """The cells of flat planes, `[*leading, *padded]`."""
        size = self._padded_size
        return flat.narrow(-1, 0, math.prod(size)).unflatten(-1, size)

    def _inside(self, buffer: Tensor) -> Tensor:
        for dim, m in enumerate(self.margin, start=-self.setting.rank):
            buffer = buffer.narrow(dim, m, buffer.shape[dim] - 2 * m)
        return buffer


def writing_step(setting: Setting, parts: Sequence[Looks]) -> Callable[..., None]:
    """A step from one buffer to the other, to be compiled.

    Arguments:
        setting: What is run.
        parts: How to look, for every part of the grid.

    Returns:
        A function of fields, `Views` of the other buffer, inputs and parameters.
    """
    model = setting.model

    def step(
        fields: Sequence[Tensor],
        outs: Sequence[Sequence[Sequence[Tensor]]],
        fixed: Sequence[Tensor],
        params: Sequence[Tensor],
    ) -> None:
        for looks, part in zip(parts, outs, strict=True):
            planes = stepped(
                setting,
                dict(zip([field.name for field in model.fields], fields, strict=True)),
                dict(zip([known.name for known in model.inputs], fixed, strict=True)),
                dict(zip(setting.params, params, strict=True)),
                looks,
            )
            for views, components in zip(part, planes, strict=True):
                for out, plane in zip(views, components, strict=True):
                    out.copy_(plane)

    return step
