"""Kuramoto-Sivashinsky: a flame front, the simplest turbulence."""

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
    total,
)

from ._etdrk4 import Etdrk4, etdrk4, kept_modes


@dataclass(frozen=True)
class _Tables:
    scheme: Etdrk4
    slopes: list[Tensor]
    """For each axis i k of the modes that are kept, 0 of the others."""
    product: Tensor
    """What the modes of the squares are multiplied by."""


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
        tables = whole.table(self._tables, params["dt"], params["dx"])
        line = whole.rank == 1

        def products(v: Tensor) -> Tensor:
            if line:
                return whole.rfft(whole.irfft(v).square()) * tables.product
            slopes = [whole.irfft(k * v) for k in tables.slopes]
            squares = slopes[0].square() + slopes[1].square()
            return whole.rfft(squares) * tables.product

        v = whole.rfft(u)
        slope = whole.rfft(u.square()) * tables.product if line else products(v)
        return {"u": whole.irfft(tables.scheme.step(v, slope, products))}

    def _tables(self, whole: Whole, dt: Tensor, dx: Tensor) -> _Tables:
        dtype = torch.promote_types(dt.dtype, torch.float32)
        waves = whole.wavenumbers()
        kept = kept_modes(waves)
        scaled = [k / dx.double() for k in waves]
        square = sum(k * k for k in scaled) + torch.zeros_like(kept, dtype=torch.float64)
        slopes = [(1j * k * kept).to(dtype.to_complex()) for k in scaled]
        if whole.rank == 1:
            product = -0.5 * slopes[0]
        else:
            product = (-0.5 * kept * (square > 0)).to(dtype)
        return _Tables(etdrk4(square - square * square, dt, dtype), slopes, product)

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
