"""Digits that classify themselves, and change their mind when they are changed.

Every cell with ink runs the same small network and sees only the eight cells around it. In some
tens of steps the cells of a digit agree on which one they form, and show its colour.
The output is the picture at several steps, before and after each digit is replaced by the one
to its left; cells that have ink again keep what they remember.
Run it with `python examples/24_digits.py [--out DIR] [--size N]`.
"""

import argparse
from pathlib import Path

from torch import Tensor

import hotgrid as hg
from hotgrid.grid.model import coded_colours

STEPS = (0, 5, 10, 20, 60)


# %% Let the cells agree, replace every digit, let them agree again
def stages(sim: hg.Simulation) -> list[Tensor]:
    """The picture after each number of steps, counted from now."""
    found: list[Tensor] = []
    before = 0
    for now in STEPS:
        sim.run(now - before, progress=False)
        found.append(coded_colours()[sim.view("colour").long()])
        before = now
    return found


def told(sim: hg.Simulation) -> str:
    seen = sim.observe()
    return f"{seen['decided'] / seen['ink']:.0%} of {seen['ink']:.0f} cells have decided"


def draw(rows: list[list[Tensor]], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    axes = figure.subplots(2, len(STEPS))
    for line, pictures, what in zip(axes, rows, ("step", "replaced, step"), strict=True):
        for place, picture, step in zip(line, pictures, STEPS, strict=True):
            place.imshow(picture.numpy(), interpolation="none")
            place.set(xticks=[], yticks=[])
            place.set_title(f"{what} {step}", fontsize=9)
    figure.savefig(file, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    parser.add_argument("--size", type=int, default=80, help="rows of cells, 20 for a digit")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    rows, columns = max(1, options.size // 20), max(2, options.size * 3 // 40)
    sim = hg.Simulation(hg.neural.DigitsCA(), size=(20 * rows, 20 * columns), compiled=False)
    first = stages(sim)
    print(f"after {sim.step_count} steps {told(sim)}")

    ink = sim.view("vote").roll(20, 1) >= 0
    sim.paint("ink", ~ink, 0.0)
    sim.paint("ink", ink, 1.0)
    print(f"after every digit was replaced {told(sim)}")
    second = stages(sim)
    print(f"after {sim.step_count} steps {told(sim)}")
    draw([first, second], options.out / "digits_ca.png")
    print(f"the picture is in {options.out / 'digits_ca.png'}")


if __name__ == "__main__":
    main()
