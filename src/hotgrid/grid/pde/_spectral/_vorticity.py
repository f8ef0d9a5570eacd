"""Vorticity: two-dimensional turbulence by Fourier modes."""

from collections.abc import Mapping
from dataclasses import dataclass

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

from ._etdrk4 import Etdrk4, etdrk4, kept_modes


@dataclass(frozen=True)
class _Tables:
    scheme: Etdrk4
    velocity: Tensor
    """Of u and v for a vorticity of one, complex `[2, *modes]`."""
    mixed: Tensor
    """What the modes of u v count for, real."""
    crossed: Tensor
    """What the modes of v^2 - u^2 count for, real."""


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
        tables = whole.table(self._tables, params["dt"], params["viscosity"])

        def carried(w: Tensor) -> Tensor:
            u, v = whole.irfft(w.unsqueeze(-3) * tables.velocity).unbind(-3)
            pairs = torch.stack((u * v, (v - u) * (v + u)), -3)
            mixed, crossed = torch.view_as_real(whole.rfft(pairs)).unbind(-4)
            pushed = mixed * tables.mixed[..., None]
            pushed = torch.addcmul(pushed, crossed, tables.crossed[..., None])
            return torch.view_as_complex(pushed)

        w = whole.rfft(state["w"])
        return {"w": whole.irfft(tables.scheme.step(w, carried(w), carried))}

    def _tables(self, whole: Whole, dt: Tensor, viscosity: Tensor) -> _Tables:
        dtype = torch.promote_types(dt.dtype, torch.float32)
        ky, kx = whole.wavenumbers()
        kept, square = kept_modes([ky, kx]), kx * kx + ky * ky
        # The mode of the mean has no velocity.
        inverse = torch.where(square > 0, kept / square.clamp(min=1e-300), 0.0)
        velocity = torch.stack((1j * ky * inverse, -1j * kx * inverse))
        # By parts the transport is a curl of products of velocities: two transforms less.
        mixed, crossed = (kx * kx - ky * ky) * kept, kx * ky * kept
        return _Tables(
            etdrk4(-viscosity.double() * square, dt, dtype),
            velocity.to(dtype.to_complex()),
            mixed.to(dtype),
            crossed.to(dtype),
        )

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

    @observable
    def enstrophy(self, state: State) -> Tensor:
        """The mean of half the square of the vorticity."""
        return total(state["w"].double().square()) / (2 * state["w"].numel())

    @once
    def _velocity(self, state: State) -> Tensor:
        return _speeds(state["w"])


def _speeds(w: Tensor) -> Tensor:
    """The velocity along x and along y of a vorticity `[*space]`, `[2, *space]`."""
    size = tuple(w.shape)
    ky, kx = Whole(size, w.device).wavenumbers()
    square = kx * kx + ky * ky
    stream = torch.where(square > 0, torch.fft.rfftn(w) / square.clamp(min=1e-300), 0.0)
    modes = torch.stack((1j * ky * stream, -1j * kx * stream))
    return torch.fft.irfftn(modes, s=size, dim=(-2, -1)).to(w.dtype)
