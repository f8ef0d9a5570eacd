"""Heat spreads over a periodic square: the smallest useful stencil, checked and drawn.

Run it with `python examples/00_heat.py [--out DIR] [--size N]`.
"""

# %% The picture to start from, and one step of the heat equation
import argparse
import math
from pathlib import Path

import torch

from hotgrid.tensors import shift

RATE = 0.2  # diffusivity * dt / dx^2; explicit Euler is stable up to 1/4
WORD = """
#..#..##..###..##..###..#.###.
#..#.#..#..#..#....#..#.#.#..#
####.#..#..#..#.##.###..#.#..#
#..#.#..#..#..#..#.#.#..#.#..#
#..#..##...#...##..#..#.#.###.
"""
DISCS = [(0.20, 0.18, 0.09), (0.16, 0.50, 0.05), (0.22, 0.80, 0.12), (0.82, 0.30, 0.13)]
DISCS += [(0.76, 0.62, 0.05), (0.86, 0.84, 0.08)]  # row, column, radius in units of the side


def step(heat: torch.Tensor) -> torch.Tensor:
    """Return the heat `[y, x]` one time step later; the edges meet."""
    neighbours = (
        shift(heat, (-1, 0)) + shift(heat, (1, 0)) + shift(heat, (0, -1)) + shift(heat, (0, 1))
    )
    return heat + RATE * (neighbours - 4 * heat)


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


# %% A wave must fade as fast as the mathematics says, closer on a finer grid
def decay_error(size: int, steps: int) -> float:
    """Return how far a fading wave is from exp(-diffusivity k^2 t), relative to the wave."""
    wave = torch.arange(size, dtype=torch.float64) * (2 * math.pi / size)
    start = torch.cos(wave)[:, None] * torch.cos(2 * wave)
    heat = start
    for _ in range(steps):
        heat = step(heat)
    wavenumber_squared = (1 + 4) * (2 * math.pi / size) ** 2
    exact = start * math.exp(-RATE * wavenumber_squared * steps)
    return ((heat - exact).norm() / exact.norm()).item()


# %% Run it and draw four moments
def draw(moments: dict[int, torch.Tensor], file: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SystemExit("the picture needs matplotlib: pip install matplotlib") from None
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
    parser = argparse.ArgumentParser(description="A heat equation, checked and drawn.")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    parser.add_argument(
        "--size", type=int, default=256, help="cells along one side, 32 or more"
    )
    options = parser.parse_args()
    if options.size < 32:
        parser.error(f"--size {options.size} is too small for the letters; 32 is the least")

    coarse, fine = decay_error(32, 50), decay_error(64, 200)
    order = math.log2(coarse / fine)
    print(
        f"a fading wave is {fine:.1e} from its exact solution, of order {order:.2f} in the grid"
    )
    if abs(order - 2) > 0.1:
        print("it should be of order 2: this machine computes something else")
        return 1

    heat = word_and_discs(options.size)
    total = heat.sum().item()
    scale = (options.size / 256) ** 2  # the same moments of time on any grid
    moments = {0: heat}
    for target in (math.ceil(steps * scale) for steps in (40, 400, 1600)):
        for _ in range(target - max(moments)):
            heat = step(heat)
        moments[target] = heat
    lost = abs(heat.sum().item() / total - 1)
    print(f"{max(moments):,} steps of {heat.numel():,} cells kept the heat to {lost:.0e}")

    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "heat.png"
    draw(moments, file)
    print(f"the picture is in {file}")
    print("next: `hotgrid config show` lists every setting, `hotgrid --help` every command")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
