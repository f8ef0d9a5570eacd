"""Gray-Scott: two substances, and all the patterns they form, in one picture.

`v` eats `u` and breeds; both spread. The pattern depends on how fast food is fed and
`v` is removed. Here both change slowly over the grid, so the picture is the whole map:
full on the left, empty on the right, and holes, worms, coral and spots in between.
Run it with `python examples/11_gray_scott.py [--out DIR] [--size N]`.
"""

import argparse
from pathlib import Path

import torch

import hotgrid as hg

FEED, BEYOND = (0.012, 0.07), (-0.004, 0.006)


# %% Any parameter can become a map: an input of the same shape as the grid
class GrayScottMap(hg.pde.GrayScott):
    """Gray-Scott with a feed and a kill of its own in every cell."""

    inputs = (hg.grid.Input("feed_map"), hg.grid.Input("kill_map"))

    def static(self, size):
        """Feed grows upward; kill to the right, from where a uniform state survives."""
        feed = torch.linspace(*FEED, size[0]).flip(0)[:, None].expand(size)
        last = feed.sqrt() / 2 - feed
        return {"feed_map": feed, "kill_map": last + torch.linspace(*BEYOND, size[1])}

    def step(self, state, inputs, params):
        """The step of Gray-Scott, with parameters per cell."""
        maps = {"feed": inputs["feed_map"].here, "kill": inputs["kill_map"].here}
        return super().step(state, inputs, {**params, **maps})

    def initial(self, size, generator):
        """Food everywhere, and specks of the eater all over."""
        specks = torch.rand(size, generator=generator) < 0.02
        v = torch.nn.functional.max_pool2d(specks[None].float(), 5, 1, padding=2)[0] / 4
        return {"u": 1 - 2 * v, "v": v}


# %% Run it and draw it
def draw(v: torch.Tensor, file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 8), layout="constrained")
    panel = figure.subplots()
    image = panel.imshow(v.numpy(), cmap="magma", extent=(*BEYOND, *FEED), aspect="auto")
    beyond = "kill, from where a uniform state survives"
    panel.set(xlabel=beyond, ylabel="feed", title="Gray-Scott: what lives where")
    figure.colorbar(image, label="v", shrink=0.9, pad=0.01)
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    parser.add_argument("--size", type=int, default=384, help="cells along a side")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    sim = hg.Simulation(GrayScottMap(), size=(options.size, options.size))
    speed = sim.run(20 * options.size)
    print(f"{speed.steps:,} steps at {speed.mlups:,.0f} million cells a second")
    print(f"the eater covers {sim.observe()['covered']:.0%} of the map")
    draw(sim.view("v"), options.out / "gray_scott.png")
    print(f"the picture is in {options.out / 'gray_scott.png'}")


if __name__ == "__main__":
    main()
