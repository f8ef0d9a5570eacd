"""A cylinder in a channel, held against the benchmark of Schaefer and Turek.

M. Schaefer and S. Turek, Benchmark computations of laminar flow around a cylinder, Notes
on Numerical Fluid Mechanics 52 (1996) 547-566, test cases 2D-1 and 2D-2; the digits of
2D-1 are those of G. Nabh, On high order methods for the stationary incompressible
Navier-Stokes equations, Heidelberg 1998.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean

import torch
from torch import Tensor

from hotgrid.grid._model import State
from hotgrid.grid._simulation import Simulation
from hotgrid.grid.lbm import ExtrapolationOutlet, SchaeferTurek, Wall, ZouHeVelocity

from ._check import Check, Terms
from ._curved import Curved, force_on_surface
from ._row import Row, compared

# A whole number of launches where steps are recorded in batches.
_LOOK_EVERY = 64


class OpenChannel(SchaeferTurek):
    """The benchmark with a round cylinder, and an end through which sound can leave.

    Sound that a sudden start makes would go to and fro for longer than eddies need to
    form. The open end holds no pressure, so density creeps, and so do forces with it;
    coefficients are taken over the mean density.
    """

    def __init__(self, **parameters: float) -> None:
        self._surface = Curved(self._distance)
        super(SchaeferTurek, self).__init__(
            boundaries=(
                ExtrapolationOutlet("x+"),
                Wall("y-"),
                Wall("y+"),
                self._surface,
                ZouHeVelocity("x-", velocity=(0, "velocity"), profile=self.parabola),
            ),
            parameters=parameters,
        )

    def _distance(self, size: tuple[int, ...]) -> Callable[[Tensor, Tensor], Tensor]:
        at_y, at_x = self.centre(size)
        radius = self.length(size) / 2
        return lambda y, x: torch.hypot(y - at_y, x - at_x) - radius

    def force_on_obstacles(self, state: State) -> list[Tensor]:
        """The force on the cylinder along each axis, double 0-d tensors."""
        f = state["f"]
        size = tuple(f.shape[1:])
        key = ("shares", size, str(f.device))
        if key not in self._known:
            self._known[key] = self._surface.shares(self.lattice, size).to(f.device)
        return force_on_surface(self.lattice, f, self._known[key])


@dataclass(frozen=True)
class _History:
    """What was seen of a cylinder, look by look."""

    drag: list[float]
    lift: list[float]
    pressure: list[float]


def _watched(sim: Simulation, model: OpenChannel, steps: int) -> _History:
    """Run on, and look at the cylinder."""
    seen = _History([], [], [])
    for _ in range(steps // _LOOK_EVERY):
        sim.run(_LOOK_EVERY, progress=False)
        state = sim.state
        density = model.mass(state).item() / math.prod(sim.size)
        seen.drag.append(model.drag_coefficient(state).item() / density)
        seen.lift.append(model.lift_coefficient(state).item() / density)
        seen.pressure.append(model.pressure_difference(state).item() / density)
    return seen


def _steady(terms: Terms) -> Iterator[Row]:
    """2D-1, Reynolds number 20: a steady flow."""
    model = OpenChannel(reynolds=20, velocity=0.05 if terms.quick else 0.02)
    size = model.grid(41 if terms.quick else 410)
    sim = terms.simulation(model, size, dtype=torch.float32)
    passing = model.length(size) / model.velocity
    sim.run(round(25 * passing), progress=False)
    seen = _watched(sim, model, round(5 * passing))
    known = {
        "drag coefficient": (5.57953523384, seen.drag, (0.02, 0.01)),
        "lift coefficient": (0.010618948146, seen.lift, (0.15, 0.05)),
        "pressure difference": (0.11752016697, seen.pressure, (0.05, 0.01)),
    }
    for name, (reference, values, shares) in known.items():
        yield compared(
            f"cylinder 2D-1: {name}",
            reference,
            fmean(values),
            limit=reference * shares[0 if terms.quick else 1],
            source="Schaefer and Turek 1996, 2D-1; digits of Nabh 1998",
            setting=_setting(model, sim),
        )


def _shedding(terms: Terms) -> Iterator[Row]:
    """2D-2, Reynolds number 100: eddies are shed; the published intervals."""
    model = OpenChannel(reynolds=100, velocity=0.02)
    size = model.grid(410)
    sim = terms.simulation(model, size, dtype=torch.float32)
    period = model.length(size) / (0.3 * model.reference_velocity)
    sim.run(round(16 * period), progress=False)
    seen = _watched(sim, model, round(5 * period))
    known = {
        "largest drag coefficient": (3.22, 3.24, max(seen.drag)),
        "largest lift coefficient": (0.99, 1.01, max(seen.lift)),
        "Strouhal number": (0.295, 0.305, model.strouhal(seen.lift, _LOOK_EVERY, size)),
    }
    for name, (low, high, value) in known.items():
        yield compared(
            f"cylinder 2D-2: {name}",
            (low + high) / 2,
            value,
            limit=(high - low) / 2,
            source=f"Schaefer and Turek 1996, 2D-2, from {low} to {high}",
            setting=_setting(model, sim),
        )


def _setting(model: OpenChannel, sim: Simulation) -> str:
    rows, columns = sim.size
    thick = model.length(sim.size)
    return (
        f"{rows} x {columns}, {thick:.0f} cells thick, U {model.velocity:g}, curved wall, TRT, "
        f"fp32, {sim.step_count} steps"
    )


CYLINDER = (
    Check("schaefer-turek-2d-1", False, _steady),
    Check("schaefer-turek-2d-2", False, _shedding),
)
