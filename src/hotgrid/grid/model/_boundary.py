"""Boundaries: what cells see beyond the edges of the grid, by name or number, per face."""

from collections.abc import Sequence
from numbers import Real

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, near

FieldFace = str | float
"""One end of an axis: a name of `BOUNDARIES`, or the number beyond it."""
FieldBoundary = FieldFace | Sequence[FieldFace | tuple[FieldFace, FieldFace]]
"""One for all faces, or for each axis one or two (the low and the high end)."""

BOUNDARIES = ("periodic", "neumann", "mirror")
"""The named boundaries. `periodic` wraps around. `neumann` mirrors the grid at its outermost
face, which has no gradient then. `mirror` mirrors it at the centre of the outermost cell."""


def checked_boundary(name: str, boundary: object) -> FieldBoundary:
    """A boundary with tuples for sequences, so that it can be compared and hashed.

    Raises:
        ArgumentError: It is not one; the message names the field.
    """
    if isinstance(boundary, str) or not isinstance(boundary, Sequence):
        return _face(name, boundary)
    axes = [
        tuple(_face(name, face) for face in axis)
        if isinstance(axis, Sequence) and not isinstance(axis, str)
        else _face(name, axis)
        for axis in boundary
    ]
    for axis in axes:
        if isinstance(axis, tuple) and (len(axis) != 2 or axis.count("periodic") == 1):
            raise ArgumentError(
                f"`boundary` of the field `{name}` has {axis!r} for one axis; give one for "
                "both ends or two, such as (0.0, 'neumann'); both ends are periodic or none"
            )
    return tuple(axes)  # type: ignore[return-value]


def _face(name: str, face: object) -> FieldFace:
    if isinstance(face, Real) and not isinstance(face, bool):
        return face  # type: ignore[return-value]
    if isinstance(face, str) and face in BOUNDARIES:
        return face
    known = f"{', '.join(BOUNDARIES)} or a number"
    hint = near(face, BOUNDARIES) if isinstance(face, str) else ""
    raise ArgumentError(
        f"`boundary` of the field `{name}` must be {known}, one for all faces or for each axis "
        f"one or a pair, got {face!r}{hint}"
    )


def faces(
    name: str, boundary: FieldBoundary, rank: int
) -> tuple[tuple[FieldFace, FieldFace], ...]:
    """The low and the high face of every axis.

    Raises:
        ArgumentError: There are more or fewer axes.
    """
    if isinstance(boundary, str) or not isinstance(boundary, Sequence):
        return ((boundary, boundary),) * rank
    if len(boundary) != rank:
        raise ArgumentError(
            f"`boundary` of the field `{name}` is for {len(boundary)} axes, but the grid has "
            f"{rank}"
        )
    return tuple(axis if isinstance(axis, tuple) else (axis, axis) for axis in boundary)


def beyond(x: Tensor, dim: int, width: int, face: FieldFace, *, high: bool) -> Tensor:
    """A number of cells beyond one end of a dim, as the face there defines them."""
    count = x.shape[dim]
    if face == "periodic":
        return x.narrow(dim, 0 if high else count - width, width)
    if isinstance(face, str):
        skipped = face == "mirror"
        begin = count - width - skipped if high else int(skipped)
        return x.narrow(dim, begin, width).flip(dim)
    shape = list(x.shape)
    shape[dim] = width
    return torch.full(shape, face, dtype=x.dtype, device=x.device)


def seen_beyond(
    x: Tensor, offset: Sequence[int], sides: Sequence[tuple[FieldFace, FieldFace]]
) -> Tensor:
    """Cells `[..., *space]` as every cell sees them at an offset."""
    for dim, (o, (low, high)) in enumerate(zip(offset, sides, strict=True), -len(offset)):
        if o > 0:
            rest = x.narrow(dim, o, x.shape[dim] - o)
            x = torch.cat((rest, beyond(x, dim, o, high, high=True)), dim)
        elif o < 0:
            rest = x.narrow(dim, 0, x.shape[dim] + o)
            x = torch.cat((beyond(x, dim, -o, low, high=False), rest), dim)
    return x
