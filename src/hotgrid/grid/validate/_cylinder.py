"""A cylinder in a channel, held against the benchmark of Schaefer and Turek.

M. Schaefer and S. Turek, Benchmark computations of laminar flow around a cylinder, Notes
on Numerical Fluid Mechanics 52 (1996) 547-566, table of the test cases 2D-1 and 2D-2; the
digits of 2D-1 are those of G. Nabh, On high order methods for the stationary
incompressible Navier-Stokes equations, Heidelberg 1998.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

import torch

from hotgrid.grid._simulation import Simulation
from hotgrid.grid.lbm import SchaeferTurek

from ._check import Check, Terms
from ._row import Row, compared

# A whole number of launches where steps are recorded in batches.
_LOOK_EVERY = 64


@dataclass(frozen=True)
class _History:
    """What was seen of a cylinder, look by look."""

    drag: list[float]
    lift: list[float]
    pressure: list[float]


def _watched(sim: Simulation, model: SchaeferTurek, steps: int) -> _History:
    """Run on, and look at the cylinder."""
    seen = _History([], [], [])
    for _ in range(steps // _LOOK_EVERY):
        sim.run(_LOOK_EVERY, check_every=_LOOK_EVERY, progress=False)
        state = sim.state
        seen.drag.append(model.drag_coefficient(state).item())
        seen.lift.append(model.lift_coefficient(state).item())
        seen.pressure.append(model.pressure_difference(state).item())
    return seen


def _steady(terms: Terms) -> Iterator[Row]:
    """2D-1, Reynolds number 20: a steady flow."""
    rows = 82 if terms.quick else 820
    model = SchaeferTurek(reynolds=20, velocity=0.05 if terms.quick else 0.02)
    size = model.grid(rows)
    sim = terms.simulation(model, size, dtype=torch.float32)
    passing = model.length(size) / model.velocity
    sim.run(round(50 * passing), progress=False)
    # Sound echoes in the channel for long; what is left of it averages out.
    seen = _watched(sim, model, round(10 * passing))
    known = {
        "drag coefficient": (5.57953523384, fmean(seen.drag), 0.05 if terms.quick else 0.01),
        "lift coefficient": (0.010618948146, fmean(seen.lift), 0.2 if terms.quick else 0.05),
        "pressure difference": (
            0.11752016697,
            fmean(seen.pressure),
            0.03 if terms.quick else 0.01,
        ),
    }
    for name, (reference, value, share) in known.items():
        yield compared(
            f"cylinder 2D-1: {name}",
            reference,
            value,
            limit=share * reference,
            source="Schaefer and Turek 1996, 2D-1; digits of Nabh 1998",
            setting=_setting(model, size, sim),
        )


def _shedding(terms: Terms) -> Iterator[Row]:
    """2D-2, Reynolds number 100: eddies are shed; the published intervals."""
    model = SchaeferTurek(reynolds=100, velocity=0.03)
    size = model.grid(820)
    sim = terms.simulation(model, size, dtype=torch.float32)
    period = model.length(size) / (0.3 * model.reference_velocity)
    sim.run(round(20 * period), progress=False)
    seen = _watched(sim, model, round(6 * period))
    strouhal = model.strouhal(seen.lift, _LOOK_EVERY, size)
    known = {
        "largest drag coefficient": (3.22, 3.24, max(seen.drag)),
        "largest lift coefficient": (0.99, 1.01, max(seen.lift)),
        "Strouhal number": (0.295, 0.305, strouhal),
    }
    for name, (low, high, value) in known.items():
        yield compared(
            f"cylinder 2D-2: {name}",
            (low + high) / 2,
            value,
            limit=(high - low) / 2,
            source=f"Schaefer and Turek 1996, 2D-2, from {low} to {high}",
            setting=_setting(model, size, sim),
        )


def _setting(model: SchaeferTurek, size: tuple[int, ...], sim: Simulation) -> str:
    cells = f"{size[0]} x {size[1]}, {model.length(size):.0f} cells thick"
    return f"{cells}, U {model.velocity:g}, TRT, fp32, {sim.step_count} steps"


CYLINDER = (
    Check("schaefer-turek-2d-1", True, _steady),
    Check("schaefer-turek-2d-2", False, _shedding),
)
