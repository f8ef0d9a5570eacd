"""A step in planes: every component of every tensor becomes a tensor of its own.

A step may compute with whole fields, `[components, *space]`. Inductor makes several kernels
of that, and the native core can launch only one. So a step of one piece is traced, and its
operations are replayed for each component alone. Stacking, selecting and summing components
then cost nothing; what is left are pointwise operations over one shape, which Inductor fuses
into one kernel.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from hotgrid.tensors._torch_private import decompositions, fake_tensors, is_fake, tree_map

from ._replay import Replay
from ._tape import close

_STACKING = (torch.ops.aten.stack.default, torch.ops.aten.cat.default)


def in_planes(
    step: Callable[..., object],
    fields: Sequence[Tensor],
    outs: Sequence[Sequence[Sequence[Tensor]]],
    fixed: Sequence[Tensor],
    params: Sequence[Tensor],
) -> Callable[..., None] | None:
    """The same step plane by plane, or None where that cannot be.

    What a step reads beside its arguments, such as tensors that a model has as attributes,
    is read here once.

    Arguments:
        step: As `writing_step` makes it; it is called, and writes into `outs`.
        fields: What it is called with, as the rest.
        outs: Planes of one shape.
        fixed: The inputs.
        params: The parameters.
    """
    planes = [x for part in outs for views in part for x in views]
    try:
        with torch.no_grad():
            traced = _traced(step, fields, outs, fixed, params)
            wanted = [x.clone() for x in planes]
            found = _replayed(traced, fields, outs, fixed, params)
    # A step that cannot be traced here is compiled unchanged.
    except Exception:  # noqa: BLE001
        return None
    return found if all(map(close, planes, wanted)) else None


def without_stacks(
    step: Callable[..., object],
    fields: Sequence[Tensor],
    outs: Sequence[Sequence[Sequence[Tensor]]],
    fixed: Sequence[Tensor],
    params: Sequence[Tensor],
    batch: int = 0,
) -> Callable[..., None] | None:
    """The same step plane by plane; None where it stacks nothing, or that cannot be.

    Nothing is computed: the arguments may be of any size, and `fake_tensors` too.

    Arguments:
        step: What is called, as the rest: see `in_planes`.
        fields: See there.
        outs: See there.
        fixed: See there.
        params: See there.
        batch: How many of the first dims of planes are of a batch; a step sees them as one
            with the first dim of space.
    """
    given: Any = (list(fields), list(outs), list(fixed), list(params))
    if not is_fake(params[0] if params else fields[0]):
        given = tree_map(fake_tensors().from_tensor, given)
    try:
        with torch.no_grad():
            traced = _traced(step, *given)
            if not any(node.target in _STACKING for node in traced.graph.nodes):
                return None
            return _replayed(traced, *given, batch=batch)
    # A step that cannot be traced here is compiled unchanged.
    except Exception:  # noqa: BLE001
        return None


def _traced(
    step: Callable[..., object],
    fields: Sequence[Tensor],
    outs: Sequence[Sequence[Sequence[Tensor]]],
    fixed: Sequence[Tensor],
    params: Sequence[Tensor],
) -> torch.fx.GraphModule:
    """A step as a graph of aten operations."""
    # Importing this takes a second; a kept kernel does without.
    from torch.fx.experimental.proxy_tensor import make_fx

    planes = [x for part in outs for views in part for x in views]
    counts = [len(fields), len(planes), len(fixed), len(params)]

    def call(*args: Tensor) -> None:
        rest = iter(args)
        now, written, known, numbers = (list(islice(rest, n)) for n in counts)
        there = iter(written)
        step(
            now, [[list(islice(there, len(v))) for v in part] for part in outs], known, numbers
        )

    aten = torch.ops.aten
    table: Any = decompositions([aten._softmax, aten.linalg_vector_norm, aten.linalg_cross])
    return make_fx(call, decomposition_table=table)(*fields, *planes, *fixed, *params)


def _replayed(
    traced: torch.fx.GraphModule,
    fields: Sequence[Tensor],
    outs: Sequence[Sequence[Sequence[Tensor]]],
    fixed: Sequence[Tensor],
    params: Sequence[Tensor],
    batch: int = 0,
) -> Callable[..., None]:
    from torch.fx.experimental.proxy_tensor import make_fx

    planes = [x for part in outs for views in part for x in views]
    shape = planes[0].flatten(0, batch).shape
    replay = Replay(traced, shape, planes[0].device)
    graph = make_fx(replay.run)(*fields, *planes, *fixed, *params)

    def step_in_planes(fields: Any, outs: Any, fixed: Any, params: Any) -> None:
        written = [x for part in outs for views in part for x in views]
        graph(*fields, *written, *fixed, *params)

    return step_in_planes
