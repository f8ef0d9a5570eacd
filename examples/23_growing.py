"""A picture that grows from one cell, and grows again where it is erased.

Every cell runs the same small network and sees only the eight cells around it. None knows
where it is, or what the picture looks like.
The output is the picture at several steps, before and after half of it is erased.
Run it with `python examples/23_growing.py [--out DIR] [--size N]`.
"""

import argparse
from pathlib import Path

import torch
from torch import Tensor

import hotgrid as hg
from hotgrid.grid.model import coded_colours

GROWING, HEALING = (0, 10, 20, 40, 120), (0, 10, 20, 40, 80)


# %% Let it grow, erase the right half, let it heal
def stages(sim: hg.Simulation, steps: tuple[int, ...]) -> list[Tensor]:
    """The picture after each number of steps, counted from now."""
    found: list[Tensor] = []
    before = 0
    for now in steps:
        sim.run(now - before, progress=False)
        found.append(coded_colours()[sim.view("colour").long()])
        before = now
    return found


def draw(rows: list[list[Tensor]], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    axes = figure.subplots(2, len(GROWING))
    for line, pictures, steps, what in zip(
        axes, rows, (GROWING, HEALING), ("step", "half erased, step"), strict=True
    ):
        for place, picture, step in zip(line, pictures, steps, strict=True):
            place.imshow(picture.numpy(), interpolation="none")
            place.set(xticks=[], yticks=[])
            place.set_title(f"{what} {step}", fontsize=9)
    figure.savefig(file, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    parser.add_argument("--size", type=int, default=32, help="cells along one side")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    model = hg.neural.GrowingCA()
    size = max(options.size, *model.target.shape[1:])
    sim = hg.Simulation(model, size=(size, size), compiled=False)
    grown = stages(sim, GROWING)
    print(f"mean squared error after {sim.step_count} steps: {sim.observe()['error']:.4f}")

    right = (torch.arange(size) >= size // 2).expand(size, size)
    sim.paint("alive", right, 0.0)
    print(f"after half of it was erased: {sim.observe()['error']:.4f}")
    healed = stages(sim, HEALING)
    print(f"after {HEALING[-1]} more steps: {sim.observe()['error']:.4f}")
    draw([grown, healed], options.out / "growing_ca.png")
    print(f"the picture is in {options.out / 'growing_ca.png'}")


if __name__ == "__main__":
    main()
