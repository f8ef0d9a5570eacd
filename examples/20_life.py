"""The R-pentomino: five cells that take 1103 generations of Life to settle.

The picture shows how often each cell was alive, with the straight tracks of the gliders that
escape; and the population over time, until it settles.
Run it with `python examples/20_life.py [--out DIR] [--size N]`.
"""

import argparse
from pathlib import Path

import torch

import hotgrid as hg

GENERATIONS, SETTLED = 1300, 1103


def draw(visits: torch.Tensor, population: list[int], file: Path) -> None:
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 4.6), layout="constrained")
    whole, near, curve = figure.subplots(1, 3, width_ratios=(1, 1, 1.2))
    seen = visits.numpy() + 1
    middle, reach = len(visits) // 2, len(visits) // 10
    for panel, title in ((whole, "how often a cell was alive"), (near, "the middle of it")):
        image = panel.imshow(seen, cmap="inferno", norm=LogNorm(), interpolation="none")
        panel.set(title=title, xticks=[], yticks=[])
    near.set(xlim=(middle - reach, middle + reach), ylim=(middle + reach, middle - reach))
    figure.colorbar(image, ax=near, shrink=0.9, pad=0.01)
    curve.plot(population, color="C1", lw=1)
    curve.axvline(SETTLED, color="0.6", lw=1, ls="--")
    curve.set(title="living cells", xlabel="generation", xlim=(0, GENERATIONS))
    curve.grid(color="0.9")
    figure.suptitle("The R-pentomino", fontweight="bold")
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    parser.add_argument("--size", type=int, default=640, help="cells along a side")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    # On a torus the gliders would come back.
    life = hg.life.Life(pattern="r pentomino", topology="plane")
    sim = hg.Simulation(life, size=(options.size, options.size))
    visits = sim.cells().int()
    population = [int(visits.sum())]
    for _ in range(GENERATIONS):
        sim.step()
        cells = sim.cells()
        visits += cells
        population.append(int(cells.sum()))

    print(f"{population[0]} cells at first, {max(population)} at most")
    print(f"{population[SETTLED]} cells after {SETTLED:,} generations; 116 when none is lost")
    draw(visits, population, options.out / "life.png")
    print(f"the picture is in {options.out / 'life.png'}")


if __name__ == "__main__":
    main()
