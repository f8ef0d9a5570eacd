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
from ._pairs import turned


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
        step = whole.table(_coefficients, params["dt"], params["dx"])
        waves = whole.table(_waves, params["dx"])
        known = u if whole.rank == 1 else None
        return {"u": whole.table(_scheme).step(u, step, waves, known)}

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


def _scheme(whole: Whole) -> Etdrk4:
    if whole.rank == 1:
        return Etdrk4(whole, _as_it_is, _squared, _carried, (1, 1), rotated=False)
    return Etdrk4(whole, _inclined, _steepness, _burnt, (2, 1), rotated=True)


def _waves(whole: Whole, dx: Tensor) -> list[Tensor]:
    return waves_of(whole, torch.promote_types(dx.dtype, torch.float32), dx.double())


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
    """The nonlinear term on a line: -d(u^2 / 2)/dx."""
    return -0.5 * low * k * turned(modes)


def _inclined(
    v: Tensor, ky: Tensor, kx: Tensor, low_y: Tensor, low_x: Tensor
) -> tuple[Tensor, Tensor]:
    """On a plane: the gradient, from i v."""
    low = low_y * low_x * v
    return ky * low, kx * low


def _steepness(along_y: Tensor, along_x: Tensor) -> Tensor:
    return along_y * along_y + along_x * along_x


def _burnt(modes: Tensor, ky: Tensor, kx: Tensor, low_y: Tensor, low_x: Tensor) -> Tensor:
    """-|gradient|^2 / 2 without its mean, by which the front only grows."""
    away = (kx * kx + ky * ky > 0) * low_y * low_x
    return -0.5 * away * modes
