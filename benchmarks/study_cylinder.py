"""How the cylinder of Schaefer and Turek converges with the grid and the Mach number.

One line for each grid and velocity: the result and its distance from the reference.

    python benchmarks/study_cylinder.py --rows 82 164 328 --velocities 0.05 0.02
    python benchmarks/study_cylinder.py --reynolds 100 --rows 164 410 --velocities 0.04 0.02
"""

import time
from statistics import fmean

import torch
from options import parser

from hotgrid.grid import Simulation
from hotgrid.grid.lbm import SchaeferTurek
from hotgrid.grid.validate._checks._cylinder import shedding, steady, watched

STEADY = {"Cd": 5.57953523384, "Cl": 0.010618948146, "dp": 0.11752016697}
SHEDDING = {
    "Cd max": (3.22, 3.24),
    "Cl max": (0.99, 1.01),
    "St": (0.295, 0.305),
}


def study_steady(sim: Simulation, model: SchaeferTurek) -> str:
    seen = steady(sim, model)
    found = dict(zip(STEADY, (seen.drag, seen.lift, seen.pressure), strict=True))
    parts = [
        f"{name} {fmean(values):.6f} ({100 * (fmean(values) / STEADY[name] - 1):+.2f} %, "
        f"swing {max(values) - min(values):.1e})"
        for name, values in found.items()
    ]
    return "  ".join(parts)


def study_shedding(sim: Simulation, model: SchaeferTurek, traced: bool) -> str:
    if traced:
        trace(sim, model)
    seen = shedding(sim, model)
    strouhal = model.strouhal(seen.lift, seen.every, sim.size)
    found = dict(zip(SHEDDING, (max(seen.drag), max(seen.lift), strouhal), strict=True))
    parts = []
    for name, value in found.items():
        low, high = SHEDDING[name]
        parts.append(
            f"{name} {value:.5f} ({'in' if low <= value <= high else 'NOT in'} {low}..{high})"
        )
    half = (max(seen.lift) - min(seen.lift)) / 2
    parts.append(
        f"Cd min {min(seen.drag):.4f}  Cl min {min(seen.lift):.4f}  half swing of Cl {half:.4f}"
    )
    return "  ".join(parts)


def trace(sim: Simulation, model: SchaeferTurek) -> None:
    """Print the extremes period by period, to see when eddies are fully grown."""
    period = model.length(sim.size) / (0.3 * model.reference_velocity)
    for n in range(30):
        seen = watched(sim, model, period, looks=60)
        print(
            f"  period {n + 1}: Cd max {max(seen.drag):.4f} Cl max {max(seen.lift):.4f}",
            flush=True,
        )
    sim.reset()


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--reynolds", type=float, default=20, help="20 is 2D-1, 100 is 2D-2")
    options.add_argument("--rows", type=int, nargs="+", default=[41, 82])
    options.add_argument("--velocities", type=float, nargs="+", default=[0.05])
    options.add_argument("--double", action="store_true", help="float64 in place of float32")
    options.add_argument("--trace", action="store_true", help="2D-2: print every period first")
    given = options.parse_args()
    dtype = torch.float64 if given.double else torch.float32
    for velocity in given.velocities:
        for rows in given.rows:
            model = SchaeferTurek(reynolds=given.reynolds, velocity=velocity)
            size = model.grid(rows)
            sim = Simulation(model, size=size, device=given.device, dtype=dtype)
            begin = time.perf_counter()
            found = (
                study_steady(sim, model)
                if given.reynolds < 50
                else study_shedding(sim, model, given.trace)
            )
            took = time.perf_counter() - begin
            print(
                f"Re {given.reynolds:g}  {size[0]} x {size[1]}  D {model.length(size):.0f}  "
                f"U {velocity:g}  tau {model.tau(size):.4f}  {found}  "
                f"[{sim.step_count} steps, {took:.0f} s]",
                flush=True,
            )


if __name__ == "__main__":
    main()
