"""SplitSchroedinger: a quantum particle, with its motion by Fourier modes."""

import math
from collections.abc import Callable, Mapping

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

from ._pairs import paired, turned


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
        dt, around = params["dt"], (inputs["potential"], params["dt"])
        begin, move, end = whole.table(_parts)
        psi = begin(state["re"], state["im"], *around)
        modes = torch.view_as_real(whole.fft(torch.view_as_complex(psi)))
        moved = torch.view_as_complex(move(modes, *whole.table(_motion, dt)))
        psi = torch.view_as_real(whole.ifft(moved, norm="forward"))
        re, im = end(*psi.unbind(-1), *around).unbind(0)
        return {"re": re, "im": im}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """A packet as wide as the ground state of the potential, at rest, off its centre."""
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


def _parts(whole: Whole) -> tuple[Callable[..., Tensor], ...]:
    """Half a step in the potential, the motion of modes, and half a step again."""

    def begin(re: Tensor, im: Tensor, potential: Tensor, dt: Tensor) -> Tensor:
        return torch.stack(_rotated(re, im, -0.5 * dt * potential), -1)

    def move(modes: Tensor, re: Tensor, im: Tensor) -> Tensor:
        return re * modes + im * turned(modes)

    def end(re: Tensor, im: Tensor, potential: Tensor, dt: Tensor) -> tuple[Tensor, Tensor]:
        return _rotated(re, im, -0.5 * dt * potential)

    return whole.fused(begin), whole.fused(move), whole.fused(end, planes=2)


def _rotated(re: Tensor, im: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    cos, sin = torch.cos(angle), torch.sin(angle)
    return re * cos - im * sin, im * cos + re * sin


def _motion(whole: Whole, dt: Tensor) -> tuple[Tensor, Tensor]:
    """The factor of free motion for every mode, over the number of cells: both parts."""
    waves = torch.broadcast_tensors(*whole.wavenumbers(half=False))
    angle = -0.5 * dt.double() * torch.stack(waves).square().sum(0)
    kind = torch.promote_types(dt.dtype, torch.float32)
    cells = math.prod(whole.size)
    re, im = (paired((f(angle) / cells).to(kind)) for f in (torch.cos, torch.sin))
    return re, im
