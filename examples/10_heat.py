"""Heat spreads over a periodic square: a model of your own, checked and drawn.

The picture shows the word HOTGRID and six discs melt, at four moments.
Run it with `python examples/10_heat.py [--out DIR] [--size N]`.
"""

# %% The model: how a cell follows from its neighbours
import argparse
import math
from pathlib import Path

import torch

import hotgrid as hg


class Heat(hg.grid.Model):
    """Heat `u` flows to where it is colder."""

    fields = (hg.grid.Field("u"),)
    rate = hg.grid.Parameter(0.2, "diffusivity * dt / dx^2", low=0, high=0.25)

    def step(self, state, inputs, params):
        """Explicit Euler; stable up to a rate of 1/4."""
        u = state["u"]
        around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
        return {"u": u[0, 0] + params["rate"] * (around - 4 * u[0, 0])}


# %% The picture to start from
WORD = """
#..#..##..###..##..###..#.###.
#..#.#..#..#..#....#..#.#.#..#
####.#..#..#..#.##.###..#.#..#
#..#.#..#..#..#..#.#.#..#.#..#
#..#..##...#...##..#..#.#.###.
"""
DISCS = [(0.20, 0.18, 0.09), (0.16, 0.50, 0.05), (0.22, 0.80, 0.12), (0.82, 0.30, 0.13)]
DISCS += [(0.76, 0.62, 0.05), (0.86, 0.84, 0.08)]  # row, column, radius in units of the side


def word_and_discs(size: int) -> torch.Tensor:
    """Return a cold square `[size, size]` with hot letters and hot discs in it."""
    letters = torch.tensor([[c == "#" for c in line] for line in WORD.split()]).float()
    block = max(1, int(0.92 * size) // letters.shape[1])
    letters = letters.repeat_interleave(block, 0).repeat_interleave(block, 1)
    heat = torch.zeros(size, size)
    top, left = (size - letters.shape[0]) // 2, (size - letters.shape[1]) // 2
    heat[top : top + letters.shape[0], left : left + letters.shape[1]] = letters
    place = (torch.arange(size) + 0.5) / size
    for row, column, radius in DISCS:
        heat[(place[:, None] - row) ** 2 + (place - column) ** 2 < radius**2] = 1.0
    return heat


# %% A wave must decay at the exact rate, with a smaller error on a finer grid
def decay_error(size: int, steps: int) -> float:
    """Return how far a fading wave is from exp(-diffusivity k^2 t), relative to the wave."""
    wave = torch.arange(size, dtype=torch.float64) * (2 * math.pi / size)
    start = torch.cos(wave)[:, None] * torch.cos(2 * wave)
    model = Heat()
    later = hg.grid.rollout(model, {"u": start}, steps)["u"]
    wavenumber_squared = (1 + 4) * (2 * math.pi / size) ** 2
    exact = start * math.exp(-model.parameters["rate"] * wavenumber_squared * steps)
    return ((later - exact).norm() / exact.norm()).item()


# %% Run it and draw four moments
def draw(moments: dict[int, torch.Tensor], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.7), layout="constrained")
    panels = figure.subplots(1, len(moments))
    for panel, (steps, heat) in zip(panels, moments.items(), strict=True):
        panel.imshow(heat.numpy(), cmap="inferno", vmin=0, vmax=1)
        panel.set_title(f"{steps:,} steps" if steps else "start")
        panel.set_axis_off()
    figure.colorbar(panels[0].images[0], ax=panels, label="temperature", shrink=0.9, pad=0.01)
    figure.suptitle("Heat spreads over a periodic square", fontweight="bold")
    figure.savefig(file, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    parser.add_argument("--size", type=int, default=256, help="cells along a side, 32 or more")
    options = parser.parse_args()
    if options.size < 32:
        parser.error(f"--size {options.size} is too small for the letters; 32 is the least")
    options.out.mkdir(parents=True, exist_ok=True)

    coarse, fine = decay_error(32, 50), decay_error(64, 200)
    order = math.log2(coarse / fine)
    print(f"a fading wave is {fine:.1e} from its exact solution, of order {order:.2f}")

    start = word_and_discs(options.size)
    sim = hg.Simulation(Heat(), size=start.shape, state={"u": start})
    moments = {0: sim.view("u")}
    for steps in (40, 400, 1600):
        # The same moments of time on any grid.
        sim.run(math.ceil(steps * (options.size / 256) ** 2) - sim.step_count)
        moments[sim.step_count] = sim.view("u")
    lost = abs(sim.view("u").sum() / start.sum() - 1)
    print(f"{sim.step_count:,} steps of {start.numel():,} cells kept the heat to {lost:.0e}")

    draw(moments, options.out / "heat.png")
    print(f"the picture is in {options.out / 'heat.png'}")
    return 0 if abs(order - 2) < 0.1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
