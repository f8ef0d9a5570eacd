"""The Karman street behind a cylinder in a channel, compared with a published benchmark.

The picture shows eddies leave the cylinder in turn, and the drag and the lift oscillate
with them; the film shows how the street forms. This is what `make demo` runs.
Run it with `python examples/30_karman.py [--out DIR] [--size ROWS]`.
"""

import argparse
import math
from pathlib import Path

import torch

import hotgrid as hg

# M. Schaefer and S. Turek, Benchmark computations of laminar flow around a cylinder, Notes
# on Numerical Fluid Mechanics 52 (1996) 547-566, test case 2D-2: the intervals given there.
SOURCE = "Schaefer and Turek 1996, 2D-2"
PUBLISHED = {
    "largest drag coefficient": (3.22, 3.24),
    "largest lift coefficient": (0.99, 1.01),
    "Strouhal number": (0.295, 0.305),
}
PERIODS, LOOKS = 12, 36  # periods of the street, and observations in each


# %% What is found in the last periods, when the street has settled
def measured(model, sim, drag: list[float], lift: list[float], every: int) -> list[float]:
    late = 4 * LOOKS
    try:
        strouhal = model.strouhal(lift[-late:], every, sim.size)
    except hg.errors.ArgumentError:
        strouhal = math.nan  # on very coarse grids nothing swings
    return [max(drag[-late:]), max(lift[-late:]), strouhal]


def draw(sim, times: list[float], drag: list[float], lift: list[float], file: Path) -> None:
    from matplotlib.colors import CenteredNorm
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    figure = Figure(figsize=(13, 4.6), layout="constrained")
    street, curves = figure.subplots(2, 1, height_ratios=(2.6, 1))
    vorticity = sim.view("vorticity").numpy()
    colours = {"cmap": "RdBu_r", "norm": CenteredNorm(halfrange=0.15 * abs(vorticity).max())}
    street.imshow(vorticity, origin="lower", interpolation="bilinear", **colours)
    (y, x), thick = sim.model.centre(sim.size), sim.model.length(sim.size)
    street.add_patch(Circle((x, y), thick / 2, color="0.35"))
    street.set(xticks=[], yticks=[], title="vorticity behind a cylinder, Reynolds number 100")
    curves.plot(times, drag, label="drag coefficient", color="C3")
    curves.plot(times, lift, label="lift coefficient", color="C0")
    curves.set(xlim=(0, times[-1]), ylim=(-1.6, 5.6), xlabel="time in periods of the street")
    curves.grid(color="0.9")
    curves.legend(loc="upper right", ncols=2)
    figure.savefig(file, dpi=110)


def main() -> None:
    rows = 410 if torch.cuda.is_available() else 82
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the files")
    parser.add_argument("--size", type=int, default=rows, help="rows of the grid")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    model = hg.lbm.SchaeferTurek(reynolds=100, velocity=0.1)
    sim = hg.Simulation(model, size=model.grid(options.size))
    thick = model.length(sim.size)
    period = thick / (0.3 * model.reference_velocity)
    every = math.ceil(period / LOOKS)
    periods = PERIODS if options.size >= 64 else 2  # only for toy grids
    print("A cylinder in a channel sheds eddies: the Karman street at Reynolds number 100,")
    print(f"{sim.size[0]} x {sim.size[1]} cells on {sim.device}.\n")

    times, drag, lift = [], [], []

    def look(sim: hg.Simulation) -> None:
        state = sim.state
        times.append(sim.time / period)
        drag.append(model.drag_coefficient(state).item())
        lift.append(model.lift_coefficient(state).item())

    sim.every(every, look)
    with hg.grid.Recorder(sim, options.out / "karman.mp4", 2 * every, "vorticity") as film:
        speed = sim.run(periods * LOOKS * every)
    draw(sim, times, drag, lift, options.out / "karman.png")

    print(f"{'':26}{'here':<8}{SOURCE}")
    found = measured(model, sim, drag, lift, every)
    for (name, (low, high)), value in zip(PUBLISHED.items(), found, strict=True):
        print(f"{name:26}{value:<8.3f}{low} to {high}")
    print(
        f"\nWhat differs: here the cylinder is {thick:.0f} cells thick and the Mach number "
        f"{3**0.5 * model.velocity:.2f};\n`hotgrid validate` uses a thicker cylinder, "
        "a lower Mach number and more steps."
    )
    print(f"{speed.steps:,} steps took {speed.seconds:.0f} s, film included.")
    print(f"Picture: {options.out / 'karman.png'}. Film: {film.path}.")
    wider = "hotgrid run karman --set reynolds=200 --steps 9000 --record street.mp4 --out out"
    print(f"Next: {wider}")


if __name__ == "__main__":
    main()
