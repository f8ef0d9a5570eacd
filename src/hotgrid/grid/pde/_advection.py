"""Advection: a quantity that is carried along."""

from collections.abc import Callable, Mapping
from typing import Literal

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, near
from hotgrid.grid.model import (
    Field,
    Model,
    Neighbours,
    Parameter,
    Planes,
    State,
    observable,
    places,
    total,
)
from hotgrid.grid.pde.schemes import along

Scheme = Literal["upwind", "lax-wendroff", "weno5"]
# Differences below its root are taken as smooth; no gradient exists where it is 0 and cells are
# equal.
_FLAT = 1e-4


class Advection(Model):
    """A wind carries `u`: du/dt + a du/dx = 0 along the last dim.

    Periodic, in one, two or three dims. `courant` is a dt / dx, from -1 to 1; a step of 1
    moves everything by one cell.

    Arguments:
        scheme: `upwind` is of first order and never overshoots; `lax-wendroff` is of second
            order and does so at edges; `weno5` is of fifth order, in time too, and keeps
            edges sharp (Qiu and Christlieb 2010).

    Example:
        >>> sim = Simulation(Advection(courant=1.0), size=(8,), compiled=False)
        >>> before = sim.state["u"]
        >>> sim.run(3).steps
        3
        >>> torch.allclose(sim.state["u"], before.roll(3), atol=1e-6)
        True
    """

    fields = (Field("u"),)
    ranks = (1, 2, 3)
    conserved = ("amount",)
    windowed = True
    courant = Parameter(0.5, "cells that the wind blows in a step", low=-1, high=1)

    def __init__(self, scheme: Scheme = "weno5", **parameters: float) -> None:
        super().__init__(**parameters)
        if scheme not in _SWEPT:
            raise ArgumentError(
                f"`scheme` {scheme!r} is unknown; use {', '.join(_SWEPT)}{near(scheme, _SWEPT)}"
            )
        self.scheme: Scheme = scheme
        self.radius = 3 if scheme == "weno5" else 1

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One step: the flow in minus the flow out."""
        u, courant = state["u"], params["courant"]
        reach = range(-self.radius, self.radius + 1)
        seen = [u[along(u.rank, u.rank - 1, by)] for by in reach]
        # In the order in which the wind meets them.
        seen = [
            torch.where(courant < 0, back, forth)
            for forth, back in zip(seen, reversed(seen), strict=True)
        ]
        swept, way = _SWEPT[self.scheme], courant.abs()
        return {"u": u.here + way * (swept(seen[:-1], way) - swept(seen[1:], way))}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """A smooth hill and a block, at a random place."""
        shift = int(torch.randint(size[-1], (), generator=generator))
        hill = block = torch.ones(())
        for dim, (n, place) in enumerate(zip(size, places(size), strict=True)):
            last = dim == len(size) - 1
            x = ((place + shift * last) % n + 0.5) / n
            hill = hill[..., None] * torch.exp(-((x - (0.3 if last else 0.5)) ** 2) / 0.005)
            block = block[..., None] * ((x - (0.7 if last else 0.5)).abs() < 0.1)
        return {"u": hill + block}

    @observable(over="sum")
    def amount(self, state: State) -> Tensor:
        """All of `u`; nothing is lost."""
        return total(state["u"])

    @observable(over="max")
    def largest(self, state: State) -> Tensor:
        """The largest value; `upwind` never raises it."""
        return state["u"].max()


def _upwind(seen: list[Tensor], way: Tensor) -> Tensor:
    """The mean over the cells that are swept through the face behind the middle one."""
    return seen[0]


def _lax_wendroff(seen: list[Tensor], way: Tensor) -> Tensor:
    here, ahead = seen
    return here + 0.5 * (1 - way) * (ahead - here)


def _weno5(seen: list[Tensor], way: Tensor) -> Tensor:
    """Three parabolas through three cells each, weighted by how smooth they are."""
    a, b, c, d, e, *_ = seen
    first, second = (1 - way) / 2, (1 - way) * (1 - 2 * way) / 12
    bends = (a - 2 * b + c, b - 2 * c + d, c - 2 * d + e)
    # At the middle of the cell that is swept.
    slopes = ((3 * c - 4 * b + a) / 2, (d - b) / 2, (4 * d - 3 * c - e) / 2)
    ideal = ((1 + way) * (2 + way) / 20, (2 + way) * (3 - way) / 10, (2 - way) * (3 - way) / 20)
    most = moved = torch.zeros_like(c)
    for bend, slope, share in zip(bends, slopes, ideal, strict=True):
        rough = _FLAT + 13 / 12 * bend * bend + slope * slope
        weight = share / (rough * rough)
        most = most + weight
        moved = moved + weight * (slope * first + bend * second)
    return c + moved / most


_SWEPT: Mapping[str, Callable[[list[Tensor], Tensor], Tensor]] = {
    "upwind": _upwind,
    "lax-wendroff": _lax_wendroff,
    "weno5": _weno5,
}
