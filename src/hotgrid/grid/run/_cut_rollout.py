"""Steps with gradients on a grid that is cut over ranks."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import Tensor

from hotgrid.cluster import HaloExchange, halo_exchange, take
from hotgrid.errors import ArgumentError
from hotgrid.grid.forms import Setting
from hotgrid.grid.forms.cut import _far_inputs
from hotgrid.grid.forms.cut._cut_whole import CutWhole
from hotgrid.grid.forms.cut._layout import joined_ends
from hotgrid.grid.model import Model, is_local

Advance = Callable[..., tuple[Tensor, ...]]
"""So many steps of fields: `advance(count, *fields)`."""


def cut_inputs(model: Model, halo: HaloExchange, fixed: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The part of whole inputs that this rank's steps read, margins included.

    Raises:
        ArgumentError: The grid is periodic in `halo` and not in the model, or
            the other way round.
    """
    joined = joined_ends(model, len(halo.mesh.shape))
    for axis, parts in enumerate(halo.mesh.shape):
        if parts > 1 and halo.periodic[axis] != joined[axis]:
            wanted = joined[0] if len(set(joined)) == 1 else joined
            raise ArgumentError(
                f"{type(model).__name__} is {_said(joined[axis])} along axis {axis}, but "
                f"`halo` was made for an axis that is {_said(halo.periodic[axis])}: "
                f"give it `periodic={wanted}`"
            )
    return tuple(take(x, halo.padded) for x in fixed)


def with_far_inputs(model: Model, setting: Setting) -> tuple[Model, tuple[Tensor, ...]]:
    """The model and the whole inputs that a cut grid needs."""
    found = _far_inputs.with_far_inputs(setting)
    return (
        model if found is setting else found.model,
        tuple(found.inputs[known.name] for known in model.inputs),
    )


def phase_on(setting: Setting, halo: HaloExchange) -> tuple[Setting, CutWhole]:
    """The setting and grid of a phase on a cut grid: inputs of owned cells, all ranks."""
    own = {name: take(x, halo.block) for name, x in setting.inputs.items()}
    whole = CutWhole(halo.communicator, halo.mesh, halo.block.whole)
    return replace(setting, inputs=own), whole


def exchanging(
    model: Model,
    halo: HaloExchange,
    advance: Advance,
    phase: Callable[[Sequence[Tensor]], tuple[Tensor, ...]] | None = None,
) -> Advance:
    """The same steps on owned cells: margins are fetched, used up by steps, and dropped.

    With a phase, which follows every step, margins last for one.

    Raises:
        ArgumentError: The margins are too narrow for one step.
    """
    depth = _steps_of(model, halo) if is_local(model) else 1
    depth = depth if phase is None else 1

    def cut(count: int, *fields: Tensor) -> tuple[Tensor, ...]:
        for begin in range(0, count, depth):
            if is_local(model):
                padded = [halo_exchange(x, halo) for x in fields]
                padded = advance(min(depth, count - begin), *padded)
                fields = tuple(x[(..., *halo.inside)] for x in padded)
            if phase is not None:
                fields = phase(fields)
        return fields

    return cut


def _steps_of(model: Model, halo: HaloExchange) -> int:
    """How many steps the margins last."""
    rank = len(halo.block.whole)
    cut = [axis for axis, parts in enumerate(halo.mesh.shape) if parts > 1]
    depth = 0
    while cut and all(model.reach(depth + 1, rank)[a] <= halo.margin[a] for a in cut):
        depth += 1
    if cut and not depth:
        raise ArgumentError(
            f"steps of {type(model).__name__} read {model.reach(1, rank)[cut[0]]} cells away, "
            f"but the margins of `halo` are {halo.margin}"
        )
    return depth or 1


def _said(joined: bool) -> str:
    return "periodic" if joined else "bounded"
