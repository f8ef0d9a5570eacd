"""`rollout`: many steps as one function of state, parameters and inputs, with gradients."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hotgrid.errors import ArgumentError, near
from hotgrid.grid.forms import Phase, Setting, compile_step, whole_step
from hotgrid.grid.forms.check._step_check import check_step
from hotgrid.grid.model import (
    Field,
    Input,
    Model,
    State,
    Whole,
    checked_model,
    checked_size,
    expect_whole,
    given_tensors,
    is_local,
    named_tensors,
    whole_number,
)
from hotgrid.tensors._torch_private import is_transformed_tensor

from ._pace import goal_of

if TYPE_CHECKING:
    from hotgrid.cluster import HaloExchange

Step = Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]], list[Tensor]]
"""One step: fields, inputs and parameters in the order of the model, new fields out."""


def rollout(
    model: Model,
    state: Mapping[str, Tensor],
    steps: int,
    params: Mapping[str, float | Tensor] | None = None,
    inputs: Mapping[str, Tensor] | None = None,
    *,
    remat: int | None = None,
    compiled: bool = False,
    halo: "HaloExchange | None" = None,
    batch: int | None = None,
) -> State:
    """Advance a state by a number of steps; a pure function that torch can differentiate.

    Gradients reach the state, the inputs and the parameters as `step` reads them.
    A backward pass needs what every step computed. With `remat=k` only every k-th state
    is kept and the steps between are made again, which costs one more forward pass;
    a `k` near the square root of `steps` needs the least memory.

    Args:
        model: Whose steps are made.
        state: Every field, `[*space]` or `[components, *space]`; their floating type
            is that of arithmetic, their device the place.
        steps: How many steps.
        params: Values that replace the model's own: numbers, or 0-d tensors, which
            are not held to the bounds.
        inputs: Static inputs that replace the model's own, shaped as the state is.
        remat: Keep one state in this many steps for the backward pass; None keeps all
            that was computed.
        compiled: Compile a step, once for a model and a grid.
        halo: How the grid is cut over ranks: `state` then holds the cells of this rank
            only, and `inputs` still the whole grid. Every rank calls with its own cells,
            calls `backward` on its own loss, and gets the gradient of the sum of all
            losses; that of parameters and inputs is this rank's share of it, to be
            summed over ranks with `all_reduce`.
        batch: How many independent runs the state has along a first dim; None for one run
            without that dim.

    Returns:
        Every field after the last step, shaped as the state was.

    Raises:
        ArgumentError: An argument does not match the model; the message names it.

    Example:
        >>> from hotgrid.grid.pde import Heat
        >>> u = torch.rand(16, 16)
        >>> rate = torch.tensor(0.1, requires_grad=True)
        >>> later = rollout(Heat(), {"u": u}, steps=20, params={"rate": rate}, remat=5)
        >>> later["u"].square().sum().backward()
        >>> bool(rate.grad < 0)
        True
    """
    model = checked_model(model)
    steps = goal_of(steps, None, int, False) or 0
    if remat is not None:
        remat = whole_number("remat", remat, 1)
    runs = () if batch is None else (whole_number("batch", batch, 1),)
    state = given_tensors("state", state)
    cells = _size_of(model, state, runs)
    size = checked_size(model, cells if halo is None else halo.block.whole)
    dtype, device = _kind_of(model, state)
    fields = _ordered("state", model, model.fields, state, cells, dtype, device, runs)
    known = {
        **given_tensors(f"{type(model).__name__}.static", model.static(size)),
        **given_tensors("inputs", {} if inputs is None else inputs),
    }
    fixed = _ordered("inputs", model, model.inputs, known, size, dtype, device)
    values = _parameters(model, {} if params is None else params, dtype, device)
    filled = replace(
        _setting(model, size, device, dtype, runs, compiled=False),
        inputs=dict(zip([known.name for known in model.inputs], fixed, strict=True)),
        params=dict(zip(model.parameters, values, strict=True)),
    )
    _check(model, filled, fields)
    if halo is not None:
        model, fixed = _cut().with_far_inputs(model, filled)
        fixed = _cut().cut_inputs(model, halo, fixed)
    step = (_compiled_step if compiled else _plain_step)(model, size, device, dtype, runs)
    phase = None
    if filled.phased:
        own, whole = _cut().phase_on(filled, halo) if halo else (filled, Whole(size, device))
        parts = [own.inputs[known.name] for known in model.inputs]
        phase = _after(Phase(own, whole), parts, values)

    def advance(count: int, *fields: Tensor) -> tuple[Tensor, ...]:
        for _ in range(count):
            if is_local(model):
                fields = tuple(step(fields, fixed, values))
            if phase is not None and halo is None:
                fields = phase(fields)
        return fields

    if halo is not None:
        advance = _cut().exchanging(model, halo, advance, phase)
    if remat is None:
        fields = advance(steps, *fields)
    else:
        for begin in range(0, steps, remat):
            count = min(remat, steps - begin)
            # A step is a pure function: no random state has to be restored.
            fields = checkpoint(
                advance, count, *fields, use_reentrant=False, preserve_rng_state=False
            )
    return {
        field.name: x.squeeze(-len(size) - 1) if field.components == 1 else x
        for field, x in zip(model.fields, fields, strict=True)
    }


def _after(
    phase: Phase, fixed: Sequence[Tensor], params: Sequence[Tensor]
) -> Callable[[Sequence[Tensor]], tuple[Tensor, ...]]:
    return lambda fields: tuple(phase(fields, fixed, params))


def _cut() -> Any:
    """The part for several ranks; the cluster is imported only if it is used."""
    from . import _cut_rollout

    return _cut_rollout


def _size_of(
    model: Model, state: Mapping[str, Tensor], runs: tuple[int, ...]
) -> tuple[int, ...]:
    for field in model.fields:
        if field.name not in state:
            raise ArgumentError(
                f"`state` lacks the field `{field.name}` of {type(model).__name__}"
                f"{near(field.name, state)} (it has {', '.join(state) or 'none'})"
            )
    first = model.fields[0]
    shape = tuple(state[first.name].shape)[len(runs) :]
    return shape[1:] if first.components > 1 else shape


def _kind_of(model: Model, state: Mapping[str, Tensor]) -> tuple[torch.dtype, torch.device]:
    """The floating type of arithmetic and the device, as the state has them."""
    given = [state[field.name] for field in model.fields if field.dtype is None]
    floats = [x.dtype for x in given if x.is_floating_point()]
    device = state[model.fields[0].name].device
    return (floats[0] if floats else torch.get_default_dtype()), device


def _ordered(
    what: str,
    model: Model,
    kinds: Sequence[Field | Input],
    given: Mapping[str, Tensor],
    size: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
    runs: tuple[int, ...] = (),
) -> tuple[Tensor, ...]:
    """Tensors as `[*runs, components, *space]` in the order in which the model names them."""
    named = named_tensors(what, model, kinds, given, size, runs, whole=True)
    for kind in kinds:
        expect_whole(what, kind.name, named[kind.name], kind.dtype or dtype)
    found = tuple(named[kind.name].to(device, kind.dtype or dtype) for kind in kinds)
    # Only for a batch: a leaf of the graph stays one.
    return tuple(x.expand(*runs, *x.shape[-len(size) - 1 :]) for x in found) if runs else found


def _parameters(
    model: Model,
    given: Mapping[str, float | Tensor],
    dtype: torch.dtype,
    device: torch.device,
) -> list[Tensor]:
    own = model.parameters
    if not isinstance(given, Mapping):
        raise ArgumentError(f"`params` must be a dict from names to numbers, got {given!r}")
    for name, value in given.items():
        if name not in own:
            raise ArgumentError(
                f"`{name}` is not a parameter of {type(model).__name__}{near(name, own)} "
                f"(its parameters are {', '.join(own) or 'none'})"
            )
        if not isinstance(value, Tensor):
            model._parameters[name].checked(name, value)
        elif value.ndim:
            raise ArgumentError(
                f"`{name}` in `params` must be a 0-d tensor, got the shape {tuple(value.shape)}"
            )
    values = {**own, **given}
    return [torch.as_tensor(value, dtype=dtype, device=device) for value in values.values()]


def _check(model: Model, setting: Setting, fields: Sequence[Tensor]) -> None:
    """Check the step, unless torch is only tracing or transforming this call."""
    given = (*fields, *setting.inputs.values(), *setting.params.values())
    wrapped = map(is_transformed_tensor, given)
    if not torch.compiler.is_compiling() and not any(wrapped):
        check_step(
            model, setting, dict(zip([f.name for f in model.fields], fields, strict=True))
        )


def _plain_step(
    model: Model,
    size: tuple[int, ...],
    device: torch.device,
    dtype: torch.dtype,
    runs: tuple[int, ...],
) -> Step:
    setting = _setting(model, size, device, dtype, runs, compiled=False)

    def step(
        fields: Sequence[Tensor], fixed: Sequence[Tensor], params: Sequence[Tensor]
    ) -> list[Tensor]:
        return whole_step(setting, fields, fixed, params)

    return step


# Compiling takes seconds, and an optimization rolls out the same model again and again.
@lru_cache(maxsize=16)
def _compiled_step(
    model: Model,
    size: tuple[int, ...],
    device: torch.device,
    dtype: torch.dtype,
    runs: tuple[int, ...],
) -> Step:
    setting = _setting(model, size, device, dtype, runs, compiled=True)
    return compile_step(_plain_step(model, size, device, dtype, runs), setting)  # pyright: ignore[reportReturnType]


def _setting(
    model: Model,
    size: tuple[int, ...],
    device: torch.device,
    dtype: torch.dtype,
    runs: tuple[int, ...],
    *,
    compiled: bool,
) -> Setting:
    # The model fitted to this grid, unless it stores its fields differently.
    twin = model.fitted(size)
    return Setting(
        model=twin if twin.stored_size(size) == size else model,
        size=size,
        batch=runs,
        device=device,
        dtype=dtype,
        storage=dtype,
        inputs={},  # A step is given its inputs and parameters; only the names count here.
        params={name: torch.empty(()) for name in model.parameters},
        compiled=compiled,
    )
