"""Shallow water: long waves, bores and broken dams."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.grid.model import (
    Brush,
    Field,
    Model,
    Neighbours,
    Parameter,
    Planes,
    State,
    observable,
    places,
    total,
    view,
)
from hotgrid.grid.pde.schemes import Cell, Law, conserved_change, fastest

_NAMES = ("h", "mx", "my")
_DRY = 1e-6


@dataclass(frozen=True)
class _Water(Law):
    """Depth, and the velocities along x and y."""

    gravity: Tensor

    def plain(self, conserved: Cell) -> Cell:
        depth, mx, my = conserved
        deep = depth.clamp(min=_DRY)
        return [deep, mx / deep, my / deep]

    def rate(self, plain: Cell, slope: Cell, dim: int) -> Cell:
        (h, *u), (dh, *du) = plain, slope
        own = _axis(dim)
        rates = [-(u[own] * d) for d in du]
        rates[own] = rates[own] - self.gravity * dh
        return [-(u[own] * dh + h * du[own]), *rates]

    def flux(self, left: Cell, right: Cell, dim: int) -> Cell:
        """After Harten, Lax and van Leer; what moves across is carried by the water."""
        own = _axis(dim)
        (h, *u), (k, *v) = left, right
        h, k = h.clamp(min=_DRY), k.clamp(min=_DRY)
        here, there = u[own], v[own]
        sound = (self.gravity * h).sqrt(), (self.gravity * k).sqrt()
        slow, fast = fastest((here, sound[0]), (there, sound[1]))
        slow, fast = slow.clamp(max=0), fast.clamp(min=0)
        # Never zero: waves have a speed.
        share = 1 / (fast - slow)
        flow, back = h * here, k * there
        water = share * (fast * flow - slow * back + fast * slow * (k - h))
        push = flow * here + 0.5 * self.gravity * h * h
        pull = back * there + 0.5 * self.gravity * k * k
        along = share * (fast * push - slow * pull + fast * slow * (back - flow))
        across = water * torch.where(water > 0, u[1 - own], v[1 - own])
        return [water, along, across] if own == 0 else [water, across, along]


def _axis(dim: int) -> int:
    """Which of the components along x and y belongs to a dim; x is the last dim."""
    return 1 - dim


class ShallowWater(Model):
    """Water of the depth `h` over a flat bottom, with the flows `mx` and `my` along x and y.

    Conservative, by MUSCL-Hancock with the solver of Harten, Lax and van Leer: second order
    where it is smooth, and bores at the right speed. Periodic; x is the last dim and dx is
    one. `dt` times the speed of water and waves, `sqrt(gravity h)`, must stay below 1/2.

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
    windowed = True
    picture = "h"
    gravity = Parameter(1.0, "acceleration downwards", above=0, high=10)
    dt = Parameter(0.2, "time of a step", above=0, high=1)

    @property
    def time_step(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The time of a step."""
        return self.dt

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """The flow in minus the flow out."""
        law = _Water(params["gravity"])
        gains = conserved_change(law, [state[name] for name in _NAMES], params["dt"])
        return {name: state[name].here + gain for name, gain in zip(_NAMES, gains, strict=True)}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """Still water with a round column of it, at a random place."""
        place = [torch.randint(n, (), generator=generator) for n in size]
        axes = [
            (x - at + n // 2) % n - n // 2
            for x, n, at in zip(places(size), size, place, strict=True)
        ]
        squares = torch.stack(torch.meshgrid(*axes, indexing="ij")).square().sum(0)
        h = 1 + 0.5 * (squares < (min(size) / 8) ** 2)
        return {"h": h, "mx": torch.zeros(h.shape), "my": torch.zeros(h.shape)}

    def brushes(self) -> Sequence[Brush]:
        """Water, never so little that it is dry, and its flow."""
        return (
            Brush("h", "Depth", low=0.5, high=2, value=1.5),
            Brush("mx", "Flow along x", low=-0.5, high=0.5, value=0.5),
            Brush("my", "Flow along y", low=-0.5, high=0.5, value=0.5),
        )

    @view
    def speed(self, state: State) -> Tensor:
        """How fast the water moves, `[*space]`."""
        return torch.hypot(state["mx"], state["my"]) / state["h"].clamp(min=_DRY)

    @observable(over="sum")
    def volume(self, state: State) -> Tensor:
        """All water; nothing is lost."""
        return total(state["h"])

    @observable(over="sum")
    def energy(self, state: State) -> Tensor:
        """Kinetic and potential energy; it falls in bores."""
        h, mx, my = (state[name].double() for name in ("h", "mx", "my"))
        moving = (mx * mx + my * my) / h.clamp(min=_DRY)
        return 0.5 * total(moving + self.parameters["gravity"] * h * h)
