"""Shallow water: long waves, bores and broken dams."""

from collections.abc import Mapping

import torch
from torch import Tensor

from hotgrid.grid.model import (
    Field,
    Model,
    Neighbours,
    Parameter,
    Planes,
    State,
    observable,
    total,
    view,
)

from ._godunov import Cell, conserved_change

_DRY = 1e-6


class ShallowWater(Model):
    """Water of the depth `h` over a flat bottom, with the flows `mx` and `my` along x and y.

    Conservative, by MUSCL-Hancock with the solver of Harten, Lax and van Leer: second order
    where it is smooth, and bores at the right speed. Periodic; x is the last dim and dx is
    one. `dt` times the speed of waves must stay below 1/2.

    Example:
        >>> sim = Simulation(ShallowWater(), size=(32, 32), compiled=False)
        >>> before = sim.observe()["volume"]
        >>> sim.run(50).steps
        50
        >>> abs(sim.observe()["volume"] / before - 1) < 1e-5
        True
    """

    fields = (Field("h"), Field("mx"), Field("my"))
    ranks = (2,)
    radius = 2
    conserved = ("volume",)
    picture = "h"
    gravity = Parameter(1.0, "acceleration downwards", above=0, high=10)
    dt = Parameter(0.2, "time of a step", above=0, high=1)

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """What flows in, less what flows out."""
        gravity = params["gravity"]

        def flux(cell: Cell, dim: int) -> tuple[Cell, Tensor, Tensor]:
            depth, mx, my = cell
            safe = depth.clamp(min=_DRY)
            along = mx if dim == 1 else my
            speed = along / safe
            push = 0.5 * gravity * depth * depth
            flows = [along, mx * speed, my * speed]
            flows[1 if dim == 1 else 2] = flows[1 if dim == 1 else 2] + push
            return flows, speed, (gravity * safe).sqrt()

        names = ("h", "mx", "my")
        gains = conserved_change([state[name] for name in names], flux, params["dt"])
        return {name: state[name].here + gain for name, gain in zip(names, gains, strict=True)}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """Still water with a round column of it, at a random place."""
        place = [torch.randint(n, (), generator=generator) for n in size]
        axes = [
            (torch.arange(n) - at + n // 2) % n - n // 2
            for n, at in zip(size, place, strict=True)
        ]
        squares = torch.stack(torch.meshgrid(*axes, indexing="ij")).square().sum(0)
        h = 1 + 0.5 * (squares < (min(size) / 8) ** 2)
        return {"h": h, "mx": torch.zeros(size), "my": torch.zeros(size)}

    @view
    def speed(self, state: State) -> Tensor:
        """How fast the water moves, `[*space]`."""
        return torch.hypot(state["mx"], state["my"]) / state["h"].clamp(min=_DRY)

    @observable
    def volume(self, state: State) -> Tensor:
        """All water; nothing is lost."""
        return total(state["h"])

    @observable
    def energy(self, state: State) -> Tensor:
        """Kinetic and potential energy; it falls in bores."""
        h, mx, my = (state[name].double() for name in ("h", "mx", "my"))
        moving = (mx * mx + my * my) / h.clamp(min=_DRY)
        return 0.5 * total(moving + self.parameters["gravity"] * h * h)
