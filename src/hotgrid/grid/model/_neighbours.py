"""The handle through which a step sees a field: any neighbour, as every cell sees it."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

Look = Callable[[Tensor, tuple[int, ...]], Tensor]
"""Gives a plane as seen from every cell at an offset; the form decides how."""


class Neighbours:
    """A field as every cell sees it.

    `u[0, 0]` is the cell itself, `u[-1, 0]` the cell one row up, for all cells at
    once: a tensor `[*space]`. With several components it is `[components, *space]`,
    and `f.part(3)[0, 1]` is one of them.

    Arguments:
        planes: One `[..., *space]` for each component.
        look: How to see a plane at an offset.
        rank: The number of space dims.
        radius: The largest offset the model declared.
    """

    __slots__ = ("_look", "_parts", "_planes", "_radius", "_rank")

    def __init__(self, planes: Sequence[Tensor], look: Look, rank: int, radius: int) -> None:
        self._planes = planes
        self._look = look
        self._rank = rank
        self._radius = radius
        self._parts: list[Neighbours] | None = None

    def __getitem__(self, offset: int | tuple[int, ...]) -> Tensor:
        where = (offset,) if isinstance(offset, int) else tuple(offset)
        if len(where) != self._rank:
            raise ArgumentError(
                f"the offset {where} has {len(where)} numbers, but the grid has "
                f"{self._rank} dims"
            )
        # Plain and short, because it is traced for every neighbour of a model.
        for o in where:
            if not hasattr(o, "__index__"):
                raise ArgumentError(
                    f"the offset {where} must be whole numbers, one for each dim, such as "
                    f"{(0,) * (self._rank - 1) + (1,)}"
                )
        if max(where) > self._radius or min(where) < -self._radius:
            raise ArgumentError(
                f"the offset {where} looks further than the model's radius of "
                f"{self._radius}; set `radius = {max(map(abs, where))}` in the model"
            )
        if len(self._planes) == 1:
            return self._look(self._planes[0], where)
        seen = [self._look(plane, where) for plane in self._planes]
        return torch.stack(seen, -self._rank - 1)

    @property
    def rank(self) -> int:
        """The number of space dims."""
        return self._rank

    @property
    def here(self) -> Tensor:
        """The cell itself, whatever the rank: `u[0, 0]` on a plane."""
        return self[(0,) * self._rank]

    def part(self, component: int) -> "Neighbours":
        """The handle of one component."""
        if self._parts is None:
            look, rank, radius = self._look, self._rank, self._radius
            self._parts = [Neighbours([plane], look, rank, radius) for plane in self._planes]
        if not -len(self._parts) <= component < len(self._parts):
            raise ArgumentError(
                f"there is no component {component}: the field has {len(self._parts)}, counted "
                "from 0"
            )
        return self._parts[component]

    def __len__(self) -> int:
        return len(self._planes)

    def windows(self) -> Tensor:
        """The whole neighbourhood as `[*space, *window]`, each window dim `2 * radius + 1`.

        For rules that are easier to write over a window; `u.windows()[..., 1 + dy, 1 + dx]`
        is `u[dy, dx]` for a radius of one.
        """
        if len(self._planes) > 1:
            raise ArgumentError("windows() is for one component: use `part(i).windows()`")
        reach = range(-self._radius, self._radius + 1)
        seen: list[Tensor] = []
        for flat in range(len(reach) ** self._rank):
            offset, rest = [], flat
            for _ in range(self._rank):
                offset.append(reach[rest % len(reach)])
                rest //= len(reach)
            seen.append(self._look(self._planes[0], tuple(reversed(offset))))
        stacked = torch.stack(seen, -1)
        return stacked.unflatten(-1, [len(reach)] * self._rank)
