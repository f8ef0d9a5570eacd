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

from ._etdrk4 import Coefficients, Etdrk4, coefficients, kept, turned


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
        return {"u": scheme.step(whole.rfft(u), step, u if whole.rank == 1 else None)}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """Noise with a mean of zero."""
        noise = 0.1 * torch.randn(size, generator=generator, dtype=torch.float64)
        return {"u": noise - noise.mean()}

    @observable
    def mean(self, state: State) -> Tensor:
        """The mean of u."""
        return total(state["u"]) / state["u"].numel()

    @observable
    def energy(self, state: State) -> Tensor:
        """The mean of u^2 / 2."""
        return total(state["u"].double().square()) / (2 * state["u"].numel())


def _scheme(whole: Whole, dx: Tensor) -> Etdrk4:
    dtype = torch.promote_types(dx.dtype, torch.float32)
    cut = [k * kept(k) / dx.double() for k in whole.wavenumbers()]
    waves = [k.to(dtype) for k in cut]
    if whole.rank == 1:
        return Etdrk4(whole, lambda v, k: v, torch.square, _carried, waves)
    # Beside wavenumbers what is kept at all, but for the mean, which only grows.
    ky, kx = whole.wavenumbers()
    mask = kept(ky, kx) * ((kx != 0) | (ky != 0))
    return Etdrk4(whole, _inclined, _steepness, _burnt, [*waves, mask.to(dtype)])


def _coefficients(whole: Whole, dt: Tensor, dx: Tensor) -> Coefficients:
    waves = [k / dx.double() for k in whole.wavenumbers()]
    square = torch.stack(torch.broadcast_tensors(*waves)).square().sum(0)
    dtype = torch.promote_types(dt.dtype, torch.float32)
    return coefficients(square - square * square, dt, dtype)


def _carried(modes: Tensor, k: Tensor) -> Tensor:
    """On a line: -d(u^2 / 2)/dx."""
    return turned(modes, -0.5 * k)


def _inclined(v: Tensor, ky: Tensor, kx: Tensor, mask: Tensor) -> Tensor:
    """On a plane: the gradient."""
    return torch.stack((turned(v, ky * mask), turned(v, kx * mask)), -4)


def _steepness(gradient: Tensor) -> Tensor:
    return gradient.square().sum(-3)


def _burnt(modes: Tensor, ky: Tensor, kx: Tensor, mask: Tensor) -> Tensor:
    return (-0.5 * mask)[..., None] * modes
