"""Candidates made of torch's own operations."""

import torch
from torch import Tensor

from hotgrid.kernels.tune import Call, Candidate

from ._reference import reference

# What torch.topk and torch.max do not compute; sorting does.
_UNSELECTED = ("bool", "uint16", "uint32", "uint64")


def _select(x: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Tensor, Tensor]:
    """`torch.topk`, with the lowest indices where values are equal.

    Of equal values torch takes any, in any order. Its values are right all the same: so
    one more is computed, and only if the k-th equals the one after it, some index may be
    wrong, and those lines are sorted as a whole. Equals among the k are put in order.
    """
    size = x.shape[dim]
    values, indices = torch.topk(x, min(k + 1, size), dim, largest, sorted=True)
    following = values.narrow(dim, 1, values.shape[dim] - 1)
    equal = _same(values.narrow(dim, 0, values.shape[dim] - 1), following)
    values, indices = values.narrow(dim, 0, k), indices.narrow(dim, 0, k)
    if not bool(equal.any()):
        return values.contiguous(), indices.contiguous()
    # By index first; a stable sort by value then leaves equals in that order.
    indices, order = torch.sort(indices, dim=dim)
    values, order = torch.sort(
        values.gather(dim, order), dim=dim, descending=largest, stable=True
    )
    indices = indices.gather(dim, order)
    if k < size:
        values, indices = values.movedim(dim, -1), indices.movedim(dim, -1)
        tied = equal.select(dim, k - 1)
        lines = x.movedim(dim, -1)[tied]
        values[tied], indices[tied] = reference(lines, k, -1, largest, True)
        values, indices = values.movedim(-1, dim), indices.movedim(-1, dim)
    return values.contiguous(), indices.contiguous()


def _same(a: Tensor, b: Tensor) -> Tensor:
    same = a == b
    return same | (a.isnan() & b.isnan()) if a.is_floating_point() else same


def _select_last(
    x: Tensor, k: int, dim: int, largest: bool, sorted: bool
) -> tuple[Tensor, Tensor]:
    """The same along the last dimension, of a copy that has the lines in one piece."""
    lines = x.movedim(dim, -1).contiguous()
    values, indices = _select(lines, k, lines.ndim - 1, largest, sorted)
    return values.movedim(-1, dim).contiguous(), indices.movedim(-1, dim).contiguous()


def _sort_last(
    x: Tensor, k: int, dim: int, largest: bool, sorted: bool
) -> tuple[Tensor, Tensor]:
    """A sort of lines in one piece."""
    lines = x.movedim(dim, -1).contiguous()
    values, indices = reference(lines, k, -1, largest, sorted)
    return values.movedim(-1, dim).contiguous(), indices.movedim(-1, dim).contiguous()


def _extremum(
    x: Tensor, k: int, dim: int, largest: bool, sorted: bool
) -> tuple[Tensor, Tensor]:
    """For k = 1: torch promises the first of equal maxima or minima, but NaN always wins."""
    found = torch.max(x, dim, keepdim=True) if largest else torch.min(x, dim, keepdim=True)
    return found.values, found.indices


def _on_cpu(call: Call) -> bool:
    # Whether there are ties is asked on the host, which a GPU would have to wait for.
    return call.device.type == "cpu" and call.dtype not in _UNSELECTED


def _across(call: Call) -> bool:
    return call.layout != "rows"


SELECT = Candidate(name="select", function=_select, applies=_on_cpu)
SELECT_LAST = Candidate(
    name="select_last",
    function=_select_last,
    applies=lambda call: _on_cpu(call) and _across(call),
)
SORT = Candidate(name="sort", function=reference)
SORT_LAST = Candidate(name="sort_last", function=_sort_last, applies=_across)
# torch.min gives NaN where there is one; the smallest of numbers and NaN is a number.
EXTREMUM = Candidate(
    name="extremum",
    function=_extremum,
    applies=lambda call: (
        # On CUDA it did not agree with the reference for all types (torch 2.11).
        call.device.type == "cpu"
        and call.sizes["k"] == 1
        and call.dtype not in _UNSELECTED
        and (bool(call.settings["largest"]) or not call.dtype.startswith(("float", "bfloat")))
    ),
)
