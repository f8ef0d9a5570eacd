"""A rule of your own: cells in a circle of colours, each eaten by the next.

A cell takes the next colour when a neighbour has it already. Noise becomes
blocks, then waves, then spirals that take over everything; the picture shows four moments.
Run it with `python examples/21_your_own_rule.py [--out DIR] [--size N]`.
"""

import argparse
from pathlib import Path

import torch

import hotgrid as hg

COLOURS = 14


# %% The rule, in one step over all cells
class Cyclic(hg.grid.Model):
    """The cyclic cellular automaton (Griffeath), with four neighbours."""

    fields = (hg.grid.Field("colour", dtype=torch.uint8),)
    differentiable = False

    def step(self, state, inputs, params):
        """The next colour where a neighbour has it."""
        colour = state["colour"]
        eater = (colour[0, 0] + 1) % COLOURS
        eaten = colour[-1, 0] == eater
        for offset in [(1, 0), (0, -1), (0, 1)]:
            eaten = eaten | (colour[offset] == eater)
        return {"colour": torch.where(eaten, eater, colour[0, 0])}

    def initial(self, size, generator):
        """Every colour anywhere."""
        return {"colour": torch.randint(COLOURS, size, generator=generator).to(torch.uint8)}


# %% Run it and draw four moments
def draw(moments: dict[int, torch.Tensor], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.6), layout="constrained")
    for panel, (steps, colour) in zip(figure.subplots(1, 4), moments.items(), strict=True):
        panel.imshow(
            colour.numpy(), cmap="twilight", vmin=0, vmax=COLOURS, interpolation="none"
        )
        panel.set_title(f"{steps:,} steps" if steps else "start")
        panel.set_axis_off()
    figure.suptitle("A circle of colours, each eaten by the next", fontweight="bold")
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    parser.add_argument("--size", type=int, default=256, help="cells along a side")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    sim = hg.Simulation(Cyclic(), size=(options.size, options.size), seed=4)
    moments = {0: sim.view("colour")}
    for steps in (100, 250, 1000):
        sim.run(steps - sim.step_count)
        moments[steps] = sim.view("colour")
    sim.step()
    moving = (sim.view("colour") != moments[1000]).float().mean()
    print(f"after 1,000 steps {moving:.0%} of the cells change in a step")
    draw(moments, options.out / "own_rule.png")
    print(f"the picture is in {options.out / 'own_rule.png'}")


if __name__ == "__main__":
    main()
