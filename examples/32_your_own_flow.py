"""A flow of your own: a plate, a disc and a wing in the same stream, and their drag.

Solids come from signed distances: any function that is negative inside. The picture
shows the wakes of three bodies of equal height, two that shed eddies and one that does not, and
their drag.
Run it with `python examples/32_your_own_flow.py [--out DIR] [--size ROWS]`.
"""

import argparse
import math
from pathlib import Path
from statistics import fmean

import torch

import hotgrid as hg

VELOCITY, REYNOLDS = 0.1, 100


# %% Bodies of height one around the origin, negative inside
def plate(y, x):
    return torch.maximum(y.abs() - 0.5, x.abs() - 0.15)


def disc(y, x):
    return torch.hypot(y, x) - 0.5


def wing(y, x):
    """The profile NACA 0025, four times as long as it is thick."""
    along = ((x + 2) / 4).clamp(0, 1)
    powers = (0.2969 * along.sqrt(), -0.126 * along, -0.3516 * along**2)
    thickness = 5 * (sum(powers) + 0.2843 * along**3 - 0.1015 * along**4)
    return torch.maximum(y.abs() - thickness, (x.abs() - 2))


# %% A stream from left to right, with a body in it
def stream(body, height: float, centre: tuple[float, float]) -> hg.lbm.Flow:
    solid = hg.lbm.from_distance(
        lambda y, x: body((y - centre[0]) / height, (x - centre[1]) / height)
    )

    def start(size, generator):
        # A wave across: in perfect symmetry eddies would wait for round-off to grow.
        wave = 0.3 * VELOCITY * torch.sin(torch.linspace(0, 2 * math.pi, size[1]))
        return torch.ones(size), [wave.expand(size), torch.full(size, VELOCITY)]

    return hg.lbm.Flow(
        boundaries=[
            hg.lbm.FreeSlip("y-"),
            hg.lbm.FreeSlip("y+"),
            hg.lbm.HalfWay(solid),
            hg.lbm.ZouHeVelocity("x-", velocity=(0, VELOCITY)),
            hg.lbm.ExtrapolationOutlet("x+"),
        ],
        collision="trt",
        start=start,
        viscosity=VELOCITY * height / REYNOLDS,
    )


def drag_coefficient(sim: hg.Simulation, height: float, passes: float) -> float:
    """Run until the stream has passed the grid so often; the mean of the last third."""
    steps = round(passes * sim.size[1] / VELOCITY)
    seen = hg.grid.Observations()
    sim.every(max(1, steps // 100), seen)
    sim.run(steps)
    late = [row["drag"] for row in seen.rows[-len(seen.rows) // 3 :]]
    return fmean(late) / (0.5 * VELOCITY**2 * height)


def draw(sims, drags: dict[str, float], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 9), layout="constrained")
    for panel, (name, sim) in zip(figure.subplots(len(sims)), sims.items(), strict=True):
        speed = sim.view("speed") / VELOCITY
        solid = sim.model.solid(sim.size)
        image = panel.imshow(speed.masked_fill(solid, torch.nan).numpy(), vmin=0, vmax=1.6)
        panel.set_facecolor("white")
        panel.set(title=f"{name}: drag coefficient {drags[name]:.2f}", xticks=[], yticks=[])
        figure.colorbar(image, ax=panel, label="speed", pad=0.01)
    figure.suptitle(f"Bodies in a stream, Reynolds number {REYNOLDS}", fontweight="bold")
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    parser.add_argument("--size", type=int, default=96, help="rows of the grid")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    size = (options.size, 3 * options.size)
    height, centre = options.size / 8, ((size[0] - 1) / 2, size[1] / 4)
    sims = {
        body.__name__: hg.Simulation(stream(body, height, centre), size=size)
        for body in (plate, disc, wing)
    }
    passes = 2.5 if options.size >= 64 else 0.2  # only a look at toy grids
    drags = {name: drag_coefficient(sim, height, passes) for name, sim in sims.items()}
    for name, drag in drags.items():
        print(f"{name:6} drag coefficient {drag:.2f}")
    draw(sims, drags, options.out / "own_flow.png")
    print(f"the picture is in {options.out / 'own_flow.png'}")


if __name__ == "__main__":
    main()
