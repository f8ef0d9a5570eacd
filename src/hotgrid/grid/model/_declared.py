"""The declarations of a model, checked once before it runs."""

import inspect
from collections.abc import Sequence
from numbers import Integral, Real

from hotgrid.errors import ArgumentError, near

from ._model import Field, Input, Model

# The methods that users write, and what each is called with.
_METHODS = {
    "step": ("state", "inputs", "params"),
    "vector_step": ("state", "inputs", "params"),
    "phase": ("whole", "state", "inputs", "params"),
    "initial": ("size", "generator"),
    "static": ("size",),
}


def checked_model(model: object) -> Model:
    """A model whose declarations are valid.

    Raises:
        ArgumentError: It is not a model, or a declaration is wrong.
    """
    if isinstance(model, type) and issubclass(model, Model):
        raise ArgumentError(
            f"`model` is the class {model.__name__}; make one: `{model.__name__}()`"
        )
    if not isinstance(model, Model):
        raise ArgumentError(
            f"`model` must be a hotgrid.grid.Model, such as `pde.Heat()`, got {model!r}"
        )
    _check_kinds(model, "fields", model.fields, Field)
    _check_kinds(model, "inputs", model.inputs, Input)
    if not model.fields:
        raise _wrong(model, "fields", 'one `Field` or more, such as (Field("u"),)', ())
    names = [kind.name for kind in (*model.fields, *model.inputs)]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(
                f"{type(model).__name__} declares `{name}` twice; every field and input has a "
                "name of its own"
            )
    _check_numbers(model)
    _check_methods(model)
    for name in model.conserved:
        if name not in model.observables():
            raise ArgumentError(
                f"`{type(model).__name__}.conserved` names `{name}`, which is not one of its "
                f"observables{near(name, model.observables())} (they are "
                f"{', '.join(model.observables()) or 'none'})"
            )
    return model


def _check_kinds(model: Model, what: str, kinds: object, kind: type[Field | Input]) -> None:
    if not isinstance(kinds, Sequence) or not all(isinstance(each, kind) for each in kinds):
        example = f'a tuple of `{kind.__name__}`, such as ({kind.__name__}("u"),)'
        raise _wrong(model, what, example, kinds)


def _check_numbers(model: Model) -> None:
    if not _whole(model.radius) or model.radius < 0:
        raise _wrong(model, "radius", "a whole number of cells", model.radius)
    ranks: object = model.ranks
    if not isinstance(ranks, Sequence) or not ranks or not all(map(_whole, ranks)):
        raise _wrong(model, "ranks", "a tuple of numbers of dims, such as (2,)", ranks)
    step: object = model.time_step
    if isinstance(step, bool) or not isinstance(step, Real) or not step > 0:
        raise _wrong(model, "time_step", "a number above 0", step)


def _check_methods(model: Model) -> None:
    for name, arguments in _METHODS.items():
        method = getattr(model, name, None)
        if method is None:
            continue
        try:
            inspect.signature(method).bind(*arguments)
        except TypeError:
            raise ArgumentError(
                f"`{type(model).__name__}.{name}` is called with ({', '.join(arguments)}) "
                f"after `self`, but takes {inspect.signature(method)}"
            ) from None


def _whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _wrong(model: Model, what: str, expected: str, value: object) -> ArgumentError:
    return ArgumentError(f"`{type(model).__name__}.{what}` must be {expected}, got {value!r}")
