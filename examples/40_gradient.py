"""A gradient through time: find the splash whose waves become a word.

A wave equation is run for a while, the result is compared with the picture of a word, and
the gradient of the difference says how to change the splash. The picture shows the splash that
was found, the waves on their way, the word at the chosen moment, and what is left later.
Run it with `python examples/40_gradient.py [--out DIR] [--size N]`.
"""

import argparse
from pathlib import Path

import torch

import hotgrid as hg

WORD = """
#..#..##..###..##..###..#.###.
#..#.#..#..#..#....#..#.#.#..#
####.#..#..#..#.##.###..#.#..#
#..#.#..#..#..#..#.#.#..#.#..#
#..#..##...#...##..#..#.#.###.
"""


def word(size: int) -> torch.Tensor:
    """The word in the middle of a square `[size, size]`, with soft edges."""
    letters = torch.tensor([[c == "#" for c in line] for line in WORD.split()]).float()
    block = max(1, size // 32)
    letters = letters.repeat_interleave(block, 0).repeat_interleave(block, 1)
    picture = torch.zeros(size, size)
    top, left = (size - letters.shape[0]) // 2, (size - letters.shape[1]) // 2
    picture[top : top + letters.shape[0], left : left + letters.shape[1]] = letters
    return hg.grid.rollout(hg.pde.Heat(), {"u": picture}, 2)["u"]


# %% The waves that come of a splash, as a function that torch can differentiate
def waves(splash: torch.Tensor, steps: int) -> torch.Tensor:
    state = {"u": splash, "v": torch.zeros_like(splash)}
    # Only one state in eight is kept for the backward pass; the others are recomputed.
    return hg.grid.rollout(hg.pde.Wave(), state, steps, remat=8)["u"]


def fitted(target: torch.Tensor, steps: int, rounds: int) -> tuple[torch.Tensor, list[float]]:
    """The splash, and how the error fell: the part of the picture that is not reproduced."""
    splash = torch.zeros_like(target).requires_grad_()
    optimizer = torch.optim.LBFGS([splash], max_iter=rounds, line_search_fn="strong_wolfe")
    errors: list[float] = []

    def error() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (waves(splash, steps) - target).square().sum() / target.square().sum()
        loss.backward()
        errors.append(loss.item())
        return loss

    optimizer.step(error)
    return splash.detach(), errors


def draw(splash: torch.Tensor, steps: int, errors: list[float], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 3.4), layout="constrained")
    *panels, curve = figure.subplots(1, 5)
    for panel, time in zip(panels, (0, 0.75, 1, 1.5), strict=True):
        later = waves(splash, round(time * steps))
        panel.imshow(later.numpy(), cmap="RdBu_r", vmin=-1, vmax=1)
        panel.set_title(f"{time * steps:.0f} steps" if time else "the splash that was found")
        panel.set_axis_off()
    curve.semilogy(errors, color="C3")
    curve.set(title="error while it learns", xlabel="gradients")
    curve.grid(color="0.9")
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    parser.add_argument("--size", type=int, default=128, help="cells along a side, 32 or more")
    options = parser.parse_args()
    if options.size < 32:
        parser.error(f"--size {options.size} is too small for the letters; 32 is the least")
    options.out.mkdir(parents=True, exist_ok=True)

    steps = options.size
    splash, errors = fitted(word(options.size), steps, rounds=40)
    print(f"{len(errors)} gradients through {steps} steps left an error of {errors[-1]:.1%}")
    draw(splash, steps, errors, options.out / "gradient.png")
    print(f"the picture is in {options.out / 'gradient.png'}")


if __name__ == "__main__":
    main()
