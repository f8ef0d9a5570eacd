"""Surfaces other than the torus, run on a torus that covers them.

A Klein bottle is a torus of twice the size on which everything occurs twice, the second
time mirrored. A rule that treats all directions alike keeps it so, so the copies need no
care: a step on the torus is a step on the surface, in every form and on every mesh.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hotgrid.grid.model import Model, Neighbours, Planes, State

from ._rules import Topology

_COPIES: dict[Topology, tuple[int, int]] = {
    "klein": (2, 1),
    "klein_sideways": (1, 2),
    "cross_surface": (2, 2),
    "sphere": (2, 2),
}


def covering_size(topology: Topology, size: tuple[int, ...]) -> tuple[int, ...]:
    """The torus that covers a surface; other grids are their own."""
    copies = _COPIES.get(topology, (1,) * len(size))
    return tuple(n * times for n, times in zip(size, copies, strict=True))


def covered(x: Tensor, topology: Topology) -> Tensor:
    """Cells of a surface `[..., rows, columns]` as often as the torus has them.

    Crossing an end of the grid leads to the cell that the surface has there: mirrored, and
    on a sphere turned by a quarter.
    """
    up, left = x.flip(-1), x.flip(-2)
    if topology == "klein":
        return torch.cat([x, up], -2)
    if topology == "klein_sideways":
        return torch.cat([x, left], -1)
    right, below, across = left, up, x.flip(-1, -2)
    if topology == "sphere":
        right, below = x.rot90(-1, (-2, -1)), x.rot90(1, (-2, -1))
    return torch.cat([torch.cat([x, right], -1), torch.cat([below, across], -1)], -2)


class Covered(Model):
    """A model on a torus, seen as one on the surface that the torus covers.

    Arguments:
        inner: The model on the torus; its step must treat all directions alike.
        topology: The surface.
    """

    differentiable = False
    splits = False

    def __init__(self, inner: Model, topology: Topology) -> None:
        super().__init__()
        self.inner = inner
        self.topology: Topology = topology
        self.fields, self.radius = inner.fields, inner.radius
        # What the forms of packed Life read.
        self.rule: Any = getattr(inner, "rule", None)

    def own_forms(self) -> Sequence[type[Any]]:
        """The forms of the model on the torus."""
        return self.inner.own_forms()

    def reach(self, steps: int, rank: int) -> tuple[int, ...]:
        """The reach of the model on the torus."""
        return self.inner.reach(steps, rank)

    def stored_size(self, size: tuple[int, ...]) -> tuple[int, ...]:
        """The torus, as its model stores it."""
        return self.inner.stored_size(covering_size(self.topology, size))

    def stored(self, state: State) -> State:
        """Every field as often as the torus has it."""
        return self.inner.stored({k: covered(x, self.topology) for k, x in state.items()})

    def shown(self, state: State) -> State:
        """The first copy."""
        rows, columns = _COPIES[self.topology]
        return {
            name: x[..., : x.shape[-2] // rows, : x.shape[-1] // columns]
            for name, x in self.inner.shown(state).items()
        }

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> Mapping[str, Planes]:
        """A step on the torus."""
        return self.inner.step(state, inputs, params)
