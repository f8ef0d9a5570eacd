"""Lenia: Life with smooth cells, smooth time and neighbours up to 13 cells away.

Thirty-six small worlds start from a random blob each. Most die, one may fill up, and a few
become the same creature, which was not designed: it glides forever.
The output is every world at the end, the mass in each, and a film.
Run it with `python examples/22_lenia.py [--out DIR] [--size N]`.
"""

import argparse
from pathlib import Path

import torch
from torch import Tensor

from hotgrid.kernels import convolve

RADIUS, CENTRE, WIDTH, TIME_STEP = 13, 0.15, 0.015, 0.1
ACROSS, STEPS, EVERY = 6, 200, 4


# %% The rule (Chan 2019): a ring of neighbours, and how well their mean suits a cell
def ring() -> Tensor:
    """The weights of the neighbours, most at half the radius, `[27, 27]`."""
    offset = torch.arange(-RADIUS, RADIUS + 1.0) / RADIUS
    distance = torch.hypot(offset[:, None], offset).clamp(1e-3, 1 - 1e-3)
    weights = torch.exp(4 - 1 / (distance * (1 - distance)))
    return weights / weights.sum()


def step(worlds: Tensor, kernel: Tensor) -> Tensor:
    """Cells grow where the mean of their neighbours is about right, and shrink elsewhere."""
    growth = 2 * torch.exp(-(((convolve(worlds, kernel) - CENTRE) / WIDTH) ** 2) / 2) - 1
    return (worlds + TIME_STEP * growth).clamp(0, 1)


def blobs(size: int) -> Tensor:
    """One cloud in the middle of each world, `[36, size, size]`."""
    across = min(24, size)
    clouds = torch.rand(ACROSS**2, 1, 5, 5, generator=torch.Generator().manual_seed(7))
    clouds = torch.nn.functional.interpolate(clouds, size=(across, across), mode="bicubic")
    before, after = (size - across) // 2, (size - across + 1) // 2
    return torch.nn.functional.pad(clouds[:, 0].clamp(0, 1), (before, after) * 2)


# %% Run it, draw it and film it
def side_by_side(worlds: Tensor) -> Tensor:
    """All worlds in one image, a line between them."""
    framed = torch.nn.functional.pad(worlds, (0, 1, 0, 1), value=0.3)
    rows = framed.unflatten(0, (ACROSS, ACROSS)).movedim(2, 1)
    return rows.flatten(0, 1).flatten(1, 2)[:-1, :-1]


def draw(worlds: Tensor, living: Tensor, file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6), layout="constrained")
    every, curve = figure.subplots(1, 2, width_ratios=(1, 0.9))
    every.imshow(side_by_side(worlds).numpy(), cmap="inferno", interpolation="none")
    every.set(title=f"after {STEPS} steps", xticks=[], yticks=[])
    curve.plot(torch.arange(STEPS + 1), living.clamp(min=1), color="C1", lw=0.8, alpha=0.7)
    curve.set(title="what lives in each world", xlabel="step", yscale="log", xlim=(0, STEPS))
    curve.grid(color="0.9")
    figure.suptitle("Lenia: 36 random initial states", fontweight="bold")
    figure.savefig(file, dpi=110)


def film(frames: list[Tensor], file: Path) -> None:
    import matplotlib
    from PIL import Image

    colours = matplotlib.colormaps["inferno"](range(256), bytes=True)[:, :3]
    images = [Image.fromarray((each * 255).byte().numpy()) for each in frames]
    for image in images:
        image.putpalette(colours.tobytes())
    images[0].save(file, save_all=True, append_images=images[1:], duration=60, loop=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    parser.add_argument("--size", type=int, default=64, help="cells along a side of a world")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    kernel, worlds = ring(), blobs(options.size)
    living, frames = [worlds.sum((1, 2))], [side_by_side(worlds)]
    for steps in range(1, STEPS + 1):
        worlds = step(worlds, kernel)
        living.append(worlds.sum((1, 2)))
        if steps % EVERY == 0:
            frames.append(side_by_side(worlds))

    alive = living[-1] > 1
    gliding = alive & (living[-1] < options.size**2 / 20)
    print(f"{int((~alive).sum())} worlds died, {int((alive & ~gliding).sum())} filled up")
    print("the others hold", [round(each, 1) for each in living[-1][gliding].tolist()])
    draw(worlds, torch.stack(living), options.out / "lenia.png")
    film(frames, options.out / "lenia.gif")
    print(f"the picture is in {options.out / 'lenia.png'}, the film in lenia.gif beside it")


if __name__ == "__main__":
    main()
