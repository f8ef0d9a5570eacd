"""Advection: a quantity that is carried along."""

from collections.abc import Mapping
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
    total,
)

from ._offsets import along

Scheme = Literal["upwind", "lax-wendroff"]
_SCHEMES = ("upwind", "lax-wendroff")


class Advection(Model):
    """A wind carries `u`: du/dt + a du/dx = 0 along the last dim.

    Periodic, in one, two or three dims. `courant` is a dt / dx, from -1 to 1; a step of 1
    moves every cell by one, exactly. `upwind` is monotone and first order; `lax-wendroff` is
    second order and overshoots at edges.

    Arguments:
        scheme: `upwind` or `lax-wendroff`.

    Example:
        >>> sim = Simulation(Advection(courant=1.0), size=(8,), compiled=False)
        >>> before = sim.state["u"]
        >>> sim.run(3).steps
        3
        >>> torch.equal(sim.state["u"], before.roll(3))
        True
    """

    fields = (Field("u"),)
    ranks = (1, 2, 3)
    conserved = ("amount",)
    courant = Parameter(0.5, "cells that the wind blows in a step", low=-1, high=1)

    def __init__(self, scheme: Scheme = "lax-wendroff", **parameters: float) -> None:
        super().__init__(**parameters)
        if scheme not in _SCHEMES:
            raise ArgumentError(
                f"`scheme` {scheme!r} is unknown; use {' or '.join(_SCHEMES)}"
                f"{near(scheme, _SCHEMES)}"
            )
        self.scheme: Scheme = scheme

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One step: what flows in, less what flows out."""
        u, courant = state["u"], params["courant"]
        before, after = u[along(u.rank, u.rank - 1, -1)], u[along(u.rank, u.rank - 1, 1)]
        # Upwind spreads by the size of the wind, Lax-Wendroff by its square.
        spread = courant.abs() if self.scheme == "upwind" else courant * courant
        drift = -0.5 * courant * (after - before)
        return {"u": u.here + drift + 0.5 * spread * (after - 2 * u.here + before)}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """A smooth hill and a block, at a random place."""
        n = size[-1]
        x = (torch.arange(n) + torch.randint(n, (), generator=generator)) % n / n
        hill = torch.exp(-((x - 0.3) ** 2) / 0.005)
        return {"u": (hill + ((x > 0.6) & (x < 0.8))).expand(size).contiguous()}

    @observable
    def amount(self, state: State) -> Tensor:
        """All of `u`; nothing is lost."""
        return total(state["u"])

    @observable
    def largest(self, state: State) -> Tensor:
        """The largest value; `upwind` never raises it."""
        return state["u"].max()
