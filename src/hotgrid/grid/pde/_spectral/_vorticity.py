"""Vorticity: two-dimensional turbulence by Fourier modes."""

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
    once,
    total,
    view,
)

from ._etdrk4 import Coefficients, Etdrk4, coefficients, waves_of


class Vorticity(PhaseModel):
    """The flow of a plane by its vorticity: dw/dt + u . grad(w) = viscosity lap(w), by ETDRK4.

    The velocity has no divergence and a mean of zero, so vorticity is all there is. Modes
    beyond two thirds are cut off, so products do not alias. Viscosity is exact, the rest of
    fourth order in time. Periodic; a cell is one unit. The default start is decaying
    turbulence.

    Example:
        >>> sim = Simulation(Vorticity(), size=(32, 32), device="cpu")
        >>> before = sim.observe()["energy"]
        >>> sim.run(20).steps
        20
        >>> 0 < sim.observe()["energy"] < before
        True
    """

    fields = (Field("w"),)
    picture = "w"
    y_up = True
    dt = Parameter(0.5, "time of a step", above=0, high=10)
    viscosity = Parameter(0.01, "kinematic viscosity", low=0)

    @property
    def time_step(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The time of a step."""
        return self.dt

    def phase(
        self, whole: Whole, state: State, inputs: State, params: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """One step of all modes."""
        step = whole.table(_coefficients, params["dt"], params["viscosity"])
        waves = whole.table(_waves, params["dt"])
        return {"w": whole.table(_scheme).step(state["w"], step, waves)}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """About six eddies across the grid, with velocities of about one."""
        noise = torch.randn(size, generator=generator, dtype=torch.float64)
        ky, kx = Whole(size).wavenumbers()
        # Six across the grid, fewer on one that does not resolve them.
        most = min(6.0, min(size) / 12)
        turns = (kx * kx + ky * ky).sqrt() * min(size) / (2 * torch.pi * most)
        modes = torch.fft.rfftn(noise) * turns**2 * torch.exp(-(turns**2))
        w = torch.fft.irfftn(modes, s=size)
        speed = _speeds(w).square().sum(0).mean().sqrt()
        return {"w": w / speed}

    @view
    def speed(self, state: State) -> Tensor:
        """The magnitude of the velocity, `[*space]`."""
        return self._velocity(state).square().sum(0).sqrt()

    @observable
    def energy(self, state: State) -> Tensor:
        """The mean of half the square of the velocity."""
        return total(self._velocity(state).double().square()) / (2 * state["w"].numel())

    @observable(over="mean")
    def enstrophy(self, state: State) -> Tensor:
        """The mean of half the square of the vorticity."""
        return total(state["w"].double().square()) / (2 * state["w"].numel())

    @once
    def _velocity(self, state: State) -> Tensor:
        return _speeds(state["w"])


def _scheme(whole: Whole) -> Etdrk4:
    return Etdrk4(whole, _spread, _products, _gathered, (2, 2), rotated=True)


def _waves(whole: Whole, like: Tensor) -> list[Tensor]:
    return waves_of(whole, torch.promote_types(like.dtype, torch.float32))


def _coefficients(whole: Whole, dt: Tensor, viscosity: Tensor) -> Coefficients:
    ky, kx = whole.wavenumbers()
    dtype = torch.promote_types(dt.dtype, torch.float32)
    return coefficients(-viscosity.double() * (kx * kx + ky * ky), dt, dtype)


def _spread(
    w: Tensor, ky: Tensor, kx: Tensor, low_y: Tensor, low_x: Tensor
) -> tuple[Tensor, Tensor]:
    """The modes of the velocity along x and along y, from i w."""
    square = kx * kx + ky * ky
    # The mode of the mean has no velocity.
    stream = low_y * low_x * w / torch.where(square > 0, square, torch.inf)
    return ky * stream, -kx * stream


def _products(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Two suffice: by parts the transport of vorticity is a curl of such products."""
    return u * v, (v - u) * (v + u)


def _gathered(
    mixed: Tensor,
    crossed: Tensor,
    ky: Tensor,
    kx: Tensor,
    low_y: Tensor,
    low_x: Tensor,
) -> Tensor:
    return low_y * low_x * ((kx * kx - ky * ky) * mixed + kx * ky * crossed)


def _speeds(w: Tensor) -> Tensor:
    """The velocity along x and along y of a vorticity `[*space]`, `[2, *space]`."""
    size = tuple(w.shape)
    ky, kx = Whole(size, w.device).wavenumbers()
    square = kx * kx + ky * ky
    stream = torch.where(square > 0, torch.fft.rfftn(w) / square.clamp(min=1e-300), 0.0)
    modes = torch.stack((1j * ky * stream, -1j * kx * stream))
    return torch.fft.irfftn(modes, s=size, dim=(-2, -1)).to(w.dtype)
