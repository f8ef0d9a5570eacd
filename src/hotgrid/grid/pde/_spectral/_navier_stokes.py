"""Navier-Stokes: an incompressible flow by its velocity, with a pressure from all cells."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.model import (
    Brush,
    Field,
    Model,
    Neighbours,
    Parameter,
    Planes,
    State,
    Whole,
    observable,
    once,
    total,
    view,
)
from hotgrid.grid.pde.schemes import along, expect_stable

from ._pairs import paired, turned

Offset = tuple[int, ...]
At = Callable[[int, Offset], Tensor]
"""The component of a velocity along an axis, at an offset."""


class NavierStokes(Model):
    """An incompressible flow: du/dt + (u . grad) u = -grad(p) + viscosity lap(u), div(u) = 0.

    Velocities are on the faces of cells: component 0 on the face towards the cell before along
    the first axis, and so on. A local step of third-order Adams-Bashforth carries them
    with central fluxes, which keep momentum and, but for viscosity and time steps,
    energy. Then a phase finds the pressure by Fourier transforms, and takes its gradient
    away: what remains has no divergence but rounding. Second order in space, and in time
    as far as the first two steps, which have no history. Periodic; a cell is one unit.

    Arguments:
        dims: 2, beginning with two shear layers, or 3, with the vortices of Taylor and Green.
        parameters: `dt` and `viscosity`.

    Raises:
        ArgumentError: `dims` is another number, or a parameter is out of its bounds.

    Example:
        >>> sim = Simulation(NavierStokes(), size=(32, 32), device="cpu", compiled=False)
        >>> sim.run(20).steps
        20
        >>> sim.observe()["divergence"] < 1e-5
        True
    """

    picture = "speed"
    y_up = True
    dt = Parameter(0.2, "time of a step", above=0, high=2)
    viscosity = Parameter(0.05, "kinematic viscosity", low=0)

    def __init__(self, dims: Literal[2, 3] = 2, **parameters: float) -> None:
        super().__init__(**parameters)
        if dims not in (2, 3):
            raise ArgumentError(f"`dims` must be 2 or 3, got {dims!r}")
        self.dims = dims
        self.ranks = (dims,)
        self.size = {2: (256, 256), 3: (64, 64, 64)}[dims]
        self.fields = (
            Field("velocity", components=dims),
            Field("slope", components=dims),
            Field("older", components=dims),
            Field("age", dtype=torch.uint8),
        )

    @property
    def time_step(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The time of a step."""
        return self.dt

    def check(self, size: tuple[int, ...]) -> None:
        """Refuse a step that is unstable for this viscosity."""
        if self.viscosity:
            limit = 6 / 11 / (4 * len(size) * self.viscosity)
            expect_stable(self, limit, len(size), "dt")

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """Velocities before the pressure, and two slopes for the next steps."""
        velocity, age = state["velocity"], state["age"].here
        rank, dt = velocity.rank, params["dt"]
        slopes = _slopes(lambda a, o: velocity.part(a)[o], rank, params["viscosity"])
        first, second = age == 0, age == 1
        new: list[Tensor] = []
        for a, now in enumerate(slopes):
            last, older = state["slope"].part(a).here, state["older"].part(a).here
            two = 1.5 * now - 0.5 * last
            three = (23 * now - 16 * last + 5 * older) / 12
            push = torch.where(first, now, torch.where(second, two, three))
            new.append(velocity.part(a).here + dt * push)
        before = [state["slope"].part(a).here for a in range(rank)]
        aged = torch.where(age < 2, age + 1, age)
        return {"velocity": new, "slope": slopes, "older": before, "age": aged}

    def phase(
        self, whole: Whole, state: State, inputs: State, params: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """Velocities without the gradient of the pressure."""
        return {"velocity": self._projected(whole, state["velocity"], params["dt"])}

    def _projected(self, whole: Whole, velocity: Tensor, like: Tensor) -> Tensor:
        axis = -whole.rank - 1
        waves = whole.table(_differences, like)
        modes = torch.view_as_real(whole.rfft(velocity)).unbind(axis - 1)
        pairs = whole.table(_projection)(*modes, *waves)
        cells = whole.irfft(torch.view_as_complex(pairs), norm="forward")
        return cells.movedim(0, axis).contiguous()

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """Two shear layers with a little noise, or the vortices of Taylor and Green."""
        axes = [2 * torch.pi * torch.arange(n, dtype=torch.float64) / n for n in size]
        noise = 0.02 * torch.randn((self.dims, *size), generator=generator, dtype=torch.float64)
        if self.dims == 2:
            y, x = torch.meshgrid(axes[0] + torch.pi / size[0], axes[1], indexing="ij")
            flow = torch.stack((0.05 * torch.sin(x), torch.tanh(5 * torch.cos(y))))
        else:
            half = [torch.pi / n for n in size]
            z, y, x = torch.meshgrid(*axes, indexing="ij")
            up, right = torch.sin(y), torch.sin(x)
            z_in, y_in, x_in = z + half[0], y + half[1], x + half[2]
            along_x = right * torch.cos(y_in) * torch.cos(z_in)
            along_y = -up * torch.cos(x_in) * torch.cos(z_in)
            flow = torch.stack((torch.zeros(size, dtype=torch.float64), along_y, along_x))
        velocity = self._projected(Whole(size), flow + noise, flow.new_zeros(()))
        return {
            "velocity": velocity,
            "slope": torch.zeros_like(velocity),
            "older": torch.zeros_like(velocity),
            "age": torch.zeros(size, dtype=torch.uint8),
        }

    def brushes(self) -> Sequence[Brush]:
        """None: what has one number in a cell only counts steps."""
        return ()

    @view
    def speed(self, state: State) -> Tensor:
        """The magnitude of the velocity in the middle of cells, `[*space]`."""
        found = [0.5 * (u + u.roll(-1, a)) for a, u in enumerate(state["velocity"].unbind(0))]
        return torch.stack(found).square().sum(0).sqrt()

    @view
    def vorticity(self, state: State) -> Tensor:
        """The vorticity in the last two dims, at the corners of cells, `[*space]`."""
        *_, v, u = state["velocity"].unbind(0)
        return (v - v.roll(1, -1)) - (u - u.roll(1, -2))

    @observable(over="mean")
    def energy(self, state: State) -> Tensor:
        """The mean of half the square of the velocity."""
        velocity = state["velocity"]
        return total(velocity.double().square()) / (2 * velocity[0].numel())

    @observable(over="max")
    def divergence(self, state: State) -> Tensor:
        """The largest net flow out of a cell."""
        return self._outflow(state).abs().max()

    @once(reach=1)
    def _outflow(self, state: State) -> Tensor:
        parts = [u.roll(-1, a) - u for a, u in enumerate(state["velocity"].unbind(0))]
        return torch.stack(parts).sum(0)


def _differences(whole: Whole, like: Tensor) -> list[Tensor]:
    """For each axis the real part of exp(i k) - 1, then for each the imaginary part.

    By differences of neighbours, not by derivatives: then the divergence of cells is zero.
    """
    kind, waves = torch.promote_types(like.dtype, torch.float32), whole.wavenumbers()
    re = [-2 * torch.sin(k / 2).square() for k in waves]
    return [paired(each.to(kind)) for each in (*re, *[torch.sin(k) for k in waves])]


def _projection(whole: Whole) -> Callable[..., Tensor]:
    """The factors that subtract the gradient of a pressure from the modes of a component."""
    rank, scale = whole.rank, 1 / math.prod(whole.size)
    axes = range(rank)

    def without_gradient(*given: Tensor) -> tuple[Tensor, ...]:
        modes, re, im = given[:rank], given[rank : 2 * rank], given[2 * rank :]
        # Turned as they are read: a turned sum would be stored before it is turned.
        aside = [turned(each) for each in modes]
        # |exp(i k) - 1|^2 = 2 - 2 cos k. The mean flow has no gradient.
        length = -2 * sum(re[1:], re[0])
        share = 1 / torch.where(length > 0, length, torch.inf)
        p = share * sum(re[a] * modes[a] + im[a] * aside[a] for a in axes)
        turned_p = share * sum(re[a] * aside[a] - im[a] * modes[a] for a in axes)
        return tuple(scale * (modes[a] - re[a] * p + im[a] * turned_p) for a in axes)

    return whole.fused(without_gradient, rank)


def _slopes(at: At, rank: int, viscosity: Tensor) -> list[Tensor]:
    """How fast velocities change without a pressure, for each component."""
    return [
        viscosity * _spread(at, a, rank) - sum(_carried(at, a, b, rank) for b in range(rank))
        for a in range(rank)
    ]


def _spread(at: At, a: int, rank: int) -> Tensor:
    around = sum(at(a, along(rank, b, by)) for b in range(rank) for by in (-1, 1))
    return around - 2 * rank * at(a, (0,) * rank)


def _carried(at: At, a: int, b: int, rank: int) -> Tensor:
    """The loss of component `a` by the flow along axis `b`."""
    here, ahead, behind = ((along(rank, b, by)) for by in (0, 1, -1))
    if a == b:
        middle = [0.5 * (at(a, here) + at(a, ahead)), 0.5 * (at(a, behind) + at(a, here))]
        return middle[0] * middle[0] - middle[1] * middle[1]
    # At the edges before and behind along b, where both are averages of two faces.
    before = along(rank, a, -1)
    corner = tuple(map(sum, zip(before, ahead, strict=True)))
    high = 0.25 * (at(b, ahead) + at(b, corner)) * (at(a, here) + at(a, ahead))
    low = 0.25 * (at(b, here) + at(b, before)) * (at(a, behind) + at(a, here))
    return high - low
