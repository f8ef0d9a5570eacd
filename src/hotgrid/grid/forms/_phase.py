"""Running the phase of a model, and holding it to what it promises."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, near
from hotgrid.grid.model import Field, Input, State, Whole, parameters_read

from ._form import Setting, compile_step

# Fewer cells are transformed before their elementwise work would be compiled.
_CELLS_WORTH_FUSING = 1 << 17


def fusing(setting: Setting) -> Callable[[Callable[..., Any]], Callable[..., Any]] | None:
    """A compiler for the elementwise work of a phase; None where it does not pay."""
    if not setting.compiled or setting.cells < _CELLS_WORTH_FUSING:
        return None
    return lambda function: compile_step(function, setting)


class Phase:
    """The phase of a model on its own cells.

    Arguments:
        setting: What is run.
        whole: The grid that the phase sees.
    """

    def __init__(self, setting: Setting, whole: Whole) -> None:
        self._setting = setting
        self._whole = whole
        self._name = f"`{type(setting.model).__name__}.phase`"
        # Half precision is for keeping fields: few devices transform it.
        self._dtype = torch.promote_types(setting.dtype, torch.float32)
        self._tried = False

    def __call__(
        self, fields: Sequence[Tensor], fixed: Sequence[Tensor], params: Sequence[Tensor]
    ) -> list[Tensor]:
        """New fields, `[*batch, components, *space]` in and out."""
        model = self._setting.model
        state = self._seen(model.fields, fields)
        inputs = self._seen(model.inputs, fixed)
        named = dict(zip(self._setting.params, params, strict=True))
        given = {**state, **inputs, **named}
        # Tensors of inference mode do not count what is written into them.
        given = {name: x for name, x in given.items() if not x.is_inference()}
        versions = {name: x._version for name, x in given.items()}
        result = self._made(state, inputs, named)
        for name, x in given.items():
            if x._version != versions[name]:
                raise ArgumentError(
                    f"{self._name} writes into `{name}`, which it was given; compute a new "
                    "tensor, such as `x = x + 1` instead of `x += 1`"
                )
        self._expect_fields(result)
        return [
            self._kept(field, result[field.name], state[field.name])
            if field.name in result
            else x
            for field, x in zip(model.fields, fields, strict=True)
        ]

    def _made(
        self, state: State, inputs: State, params: Mapping[str, Tensor]
    ) -> Mapping[str, Tensor]:
        model = self._setting.model
        if self._tried:
            return model.phase(self._whole, state, inputs, params)
        with parameters_read(model) as read:
            result = model.phase(self._whole, state, inputs, params)
        if read:
            name = min(read)
            raise ArgumentError(
                f"{self._name} reads `self.{name}`, which does not change during a run; "
                f"read `params[{name!r}]`, and make tables of it with `whole.table`"
            )
        self._tried = True
        return result

    def _seen(self, kinds: Sequence[Field | Input], tensors: Sequence[Tensor]) -> State:
        """As a phase sees them: without the dim of one component, in the type of arithmetic."""
        found: State = {}
        for kind, x in zip(kinds, tensors, strict=True):
            plain = x.squeeze(-self._setting.rank - 1) if kind.components == 1 else x
            found[kind.name] = plain.to(self._dtype) if kind.dtype is None else plain
        return found

    def _expect_fields(self, result: object) -> None:
        names = [field.name for field in self._setting.model.fields]
        if not isinstance(result, Mapping):
            raise ArgumentError(
                f"{self._name} must return a dict from names of fields to tensors, got "
                f"{type(result).__name__}"
            )
        for name in result:
            if name not in names:
                raise ArgumentError(
                    f"{self._name} returned `{name}`, which is not one of its fields"
                    f"{near(name, names)} (they are {', '.join(names)})"
                )

    def _kept(self, field: Field, new: object, old: Tensor) -> Tensor:
        """A new field as it is stored."""
        kept_as = self._setting.kept_as(field)
        wanted = f"real numbers of the shape {tuple(old.shape)}"
        if not isinstance(new, Tensor) or new.is_complex() or new.shape != old.shape:
            got = f"{new.dtype} {tuple(new.shape)}" if isinstance(new, Tensor) else repr(new)
            raise ArgumentError(
                f"{self._name} must return {wanted} for the field `{field.name}`, got {got}"
            )
        if new.is_floating_point() and not kept_as.is_floating_point:
            raise ArgumentError(
                f"{self._name} returned {new.dtype} for the field `{field.name}`, which is "
                f"{kept_as}; round explicitly, such as `x.round().to({kept_as})`"
            )
        new = new.to(kept_as)
        return new.unsqueeze(-self._setting.rank - 1) if field.components == 1 else new
