"""Two buffers, read and written in turn: what the padded form and the strips share.

Results go into views made once and passed in, because torch turns several writes into
one tensor inside a graph into many masked copies.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from ._form import Form, Setting, compile_step, stepped
from ._model import State
from ._neighbours import Look

Looks = Mapping[str, Look]
"""How to look at every field and input, by name."""


class TwoBufferForm(Form):
    """Every step reads one buffer and writes the other.

    Arguments:
        setting: What is run.
        margin: Cells beyond the grid along each axis, at both ends.
    """

    def __init__(self, setting: Setting, margin: Sequence[int]) -> None:
        super().__init__(setting)
        self.margin = tuple(margin)
        model = setting.model
        kept = [n + 2 * m for n, m in zip(setting.size, margin, strict=True)]
        self._buffers = [
            [
                torch.zeros(
                    (*setting.batch, field.components, *kept),
                    dtype=setting.kept_as(field),
                    device=setting.device,
                )
                for field in model.fields
            ]
            for _ in range(2)
        ]
        self._outs = [self._views(buffers) for buffers in self._buffers]
        self._fixed = [self._extended(setting.inputs[known.name]) for known in model.inputs]
        self._params = list(setting.params.values())
        self._step = compile_step(self._traced(), setting)
        self._now = 0

    def load(self, state: State) -> None:
        """Copy a state into the buffers."""
        self._now = 0
        for field, buffer in zip(self.setting.model.fields, self._buffers[0], strict=True):
            self._inside(buffer).copy_(state[field.name])

    def read(self) -> State:
        """The present state: the grid inside the present buffers."""
        buffers = self._buffers[self._now]
        return {
            field.name: self._inside(buffer)
            for field, buffer in zip(self.setting.model.fields, buffers, strict=True)
        }

    def run(self, steps: int) -> None:
        """Advance by a number of steps."""
        with torch.no_grad():
            for _ in range(steps):
                old, new = self._now, 1 - self._now
                self._step(self._buffers[old], self._outs[new], self._fixed, self._params)
                self._now = new

    @abstractmethod
    def _views(self, buffers: Sequence[Tensor]) -> list[list[list[Tensor]]]:
        """Where a step writes: for every part of the grid, every field, every component."""

    @abstractmethod
    def _looks(self) -> list[Looks]:
        """How a step looks, for every part of the grid."""

    def _extended(self, x: Tensor) -> Tensor:
        """An input as the buffers are laid out."""
        return x

    def _inside(self, buffer: Tensor) -> Tensor:
        for dim, m in enumerate(self.margin, start=-self.setting.rank):
            buffer = buffer.narrow(dim, m, buffer.shape[dim] - 2 * m)
        return buffer

    def _traced(self) -> Callable[..., None]:
        setting, parts = self.setting, self._looks()
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
