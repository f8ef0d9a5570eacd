"""SplitSchroedinger: a quantum particle, with its motion by Fourier modes."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from hotgrid.grid.model import (
    Field,
    Input,
    Parameter,
    PhaseModel,
    State,
    Whole,
    observable,
    total,
    view,
)


class SplitSchroedinger(PhaseModel):
    """A wave function: i dpsi/dt = -lap(psi) / 2 + V psi, in split steps (Strang).

    Half a step in the potential, a whole one of free motion by Fourier modes, and half a step
    in the potential: each is exact, keeps the norm to rounding, and is stable for any `dt`.
    Second order in time. Periodic, in one, two or three dims; a cell is one unit. The
    default start is a packet beside the middle of a bowl, `stiffness` r^2 / 2, where it swings.
    The input `potential` replaces the bowl.

    Example:
        >>> sim = Simulation(SplitSchroedinger(), size=(32, 32), device="cpu")
        >>> before = sim.observe()["norm"]
        >>> sim.run(30).steps
        30
        >>> abs(sim.observe()["norm"] / before - 1) < 1e-5
        True
    """

    fields = (Field("re"), Field("im"))
    inputs = (Input("potential"),)
    ranks = (1, 2, 3)
    picture = "density"
    conserved = ("norm",)
    dt = Parameter(1.0, "time of a step", above=0, high=100)
    stiffness = Parameter(0.0004, "curvature of the bowl", low=0)

    @property
    def time_step(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The time of a step."""
        return self.dt

    def phase(
        self, whole: Whole, state: State, inputs: State, params: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """One split step."""
        dt = params["dt"]
        angle = -0.5 * dt * inputs["potential"]
        turned = torch.polar(torch.ones_like(angle), angle)
        psi = torch.complex(state["re"], state["im"]) * turned
        psi = whole.ifft(whole.fft(psi) * whole.table(_motion, dt)) * turned
        return {"re": psi.real.contiguous(), "im": psi.imag.contiguous()}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """A packet as wide as the ground state of the bowl, at rest, beside its middle."""
        # A bowl without curvature holds nothing: then an eighth of the grid.
        spread = self.stiffness**-0.25 if self.stiffness else min(size) / 8
        width = min(spread / math.sqrt(2), min(size) / 8)
        axes = [torch.arange(n, dtype=torch.float64) - n // 2 for n in size]
        axes[-1] = axes[-1] + size[-1] // 5
        square = torch.stack(torch.meshgrid(*axes, indexing="ij")).square().sum(0)
        psi = torch.exp(-square / (4 * width**2))
        psi = psi / psi.square().sum().sqrt()
        return {"re": psi, "im": torch.zeros_like(psi)}

    def static(self, size: tuple[int, ...]) -> dict[str, Tensor]:
        """The bowl."""
        axes = [torch.arange(n, dtype=torch.float64) - n // 2 for n in size]
        square = torch.stack(torch.meshgrid(*axes, indexing="ij")).square().sum(0)
        return {"potential": 0.5 * self.stiffness * square}

    @view
    def density(self, state: State) -> Tensor:
        """The probability of a cell, `[*space]`."""
        return state["re"].square() + state["im"].square()

    @observable(over="sum")
    def norm(self, state: State) -> Tensor:
        """The probability of the whole grid."""
        return total(state["re"].double().square() + state["im"].double().square())

    @observable
    def position(self, state: State) -> Tensor:
        """The mean of x, from the middle of the grid."""
        density = self.density(state).double()
        n = density.shape[-1]
        x = torch.arange(n, dtype=torch.float64, device=density.device) - n // 2
        return total(density * x) / total(density)


def _motion(whole: Whole, dt: Tensor) -> Tensor:
    """What free motion multiplies every mode by, complex `[*modes]`."""
    waves = torch.broadcast_tensors(*whole.wavenumbers(half=False))
    angle = -0.5 * dt.double() * torch.stack(waves).square().sum(0)
    kind = torch.promote_types(dt.dtype, torch.float32).to_complex()
    return torch.polar(torch.ones_like(angle), angle).to(kind)
