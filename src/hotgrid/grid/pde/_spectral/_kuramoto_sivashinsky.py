"""Kuramoto-Sivashinsky: a flame front, the simplest turbulence."""

from collections.abc import Mapping

import torch
from torch import Tensor

from hotgrid.grid.model import (
    Field,
    Parameter,
    PhaseModel,
    State,
    Whole,
    observable,
    total,
)

from ._etdrk4 import Coefficients, Etdrk4, coefficients, waves_of


class KuramotoSivashinsky(PhaseModel):
    """Waves that grow, mix and decay: du/dt = -lap(u) - lap(lap(u)) - nonlinear, by ETDRK4.

    On a line u is a velocity, with the nonlinear part u du/dx, which keeps the mean. On a plane
    u is the height of a front, with |grad u|^2 / 2; its mean, which only grows, is taken
    away. Long waves grow, short ones decay, and products carry from one to the other.
    Periodic, exact in space for waves that the grid resolves, fourth order in time.

    Example:
        >>> sim = Simulation(KuramotoSivashinsky(), size=(64,), device="cpu")
        >>> sim.run(40).steps
        40
        >>> abs(sim.observe()["mean"]) < 1e-5
        True
    """

    fields = (Field("u"),)
    ranks = (1, 2)
    size = (256, 256)
    dt = Parameter(0.25, "time of a step", above=0, high=1)
    dx = Parameter(0.75, "length of a cell", above=0, high=3)

    @property
    def time_step(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The time of a step."""
        return self.dt

    def phase(
        self, whole: Whole, state: State, inputs: State, params: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """One step of all modes."""
        u = state["u"]
        scheme = whole.table(_scheme, params["dx"])
        step = whole.table(_coefficients, params["dt"], params["dx"])
        return {"u": scheme.step(u, step, u if whole.rank == 1 else None)}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """Noise with a mean of zero."""
        noise = 0.1 * torch.randn(size, generator=generator, dtype=torch.float64)
        return {"u": noise - noise.mean()}

    @observable(over="mean")
    def mean(self, state: State) -> Tensor:
        """The mean of u."""
        return total(state["u"]) / state["u"].numel()

    @observable(over="mean")
    def energy(self, state: State) -> Tensor:
        """The mean of u^2 / 2."""
        return total(state["u"].double().square()) / (2 * state["u"].numel())


def _scheme(whole: Whole, dx: Tensor) -> Etdrk4:
    waves = waves_of(whole, torch.promote_types(dx.dtype, torch.float32), dx.double())
    if whole.rank == 1:
        return Etdrk4(whole, _as_it_is, _squared, _carried, waves, rotated=False)
    return Etdrk4(whole, _inclined, _steepness, _burnt, waves, rotated=True)


def _coefficients(whole: Whole, dt: Tensor, dx: Tensor) -> Coefficients:
    waves = [k / dx.double() for k in whole.wavenumbers()]
    square = torch.stack(torch.broadcast_tensors(*waves)).square().sum(0)
    dtype = torch.promote_types(dt.dtype, torch.float32)
    return coefficients(square - square * square, dt, dtype)


def _as_it_is(v: Tensor, k: Tensor, low: Tensor) -> Tensor:
    return v


def _squared(u: Tensor) -> Tensor:
    return u * u


def _carried(modes: Tensor, k: Tensor, low: Tensor) -> Tensor:
    """On a line: -d(u^2 / 2)/dx."""
    return -0.5 * low * k * modes


def _inclined(v: Tensor, ky: Tensor, kx: Tensor, low_y: Tensor, low_x: Tensor) -> Tensor:
    """On a plane: the gradient, from i v."""
    low = low_y * low_x * v
    return torch.stack((ky * low, kx * low), -4)


def _steepness(gradient: Tensor) -> Tensor:
    return gradient.square().sum(-3)


def _burnt(modes: Tensor, ky: Tensor, kx: Tensor, low_y: Tensor, low_x: Tensor) -> Tensor:
    """-|gradient|^2 / 2 without its mean, by which the front only grows."""
    away = (kx * kx + ky * ky > 0) * low_y * low_x
    return -0.5 * away * modes
