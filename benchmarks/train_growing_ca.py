"""Train the growing automaton that comes with hotgrid: a seed becomes a flower.

    python benchmarks/train_growing_ca.py --out FILE [--device cuda] [--side 24] [--minutes 25]

The picture is drawn here. A pool of states (Mordvintsev et al. 2020) makes the cells keep it,
and half of the samples of a batch are damaged, so that they learn to grow it again. FILE is
written every 100 iterations; a FILE that is there is trained on. At the end it prints how far
the cells are from the picture. Copy FILE to src/hotgrid/grid/neural/growing_ca.safetensors.
"""

import math
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import torch
from cell_training import Descent, begun, compare, steps_of_living
from options import parser
from report import report
from torch import Tensor

from hotgrid.grid import Simulation
from hotgrid.grid.model import random_numbers
from hotgrid.grid.neural import CellNetwork, GrowingCA, SamplePool

# Cells around the picture, and points of a cell along an axis, for smooth edges.
_MARGIN = 3
_POINTS = 8
_GREEN, _YELLOW = (0.20, 0.55, 0.22), (0.98, 0.80, 0.20)
_OUTER, _INNER = (0.86, 0.22, 0.42), (0.98, 0.62, 0.50)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--side", type=int, default=24, help="cells of the picture's side")
    options.add_argument("--channels", type=int, default=12)
    options.add_argument("--hidden", type=int, default=64)
    options.add_argument("--batch", type=int, default=8)
    options.add_argument("--pool", type=int, default=256)
    options.add_argument("--steps", type=int, default=32, help="the fewest of a rollout")
    options.add_argument("--iterations", type=int, default=2000)
    options.add_argument("--minutes", type=float, default=25.0, help="it ends by then")
    options.add_argument("--rate", type=float, default=2e-3)
    given = options.parse_args()
    torch.manual_seed(0)
    picture = (255 * flower(given.side)).round().to(torch.uint8)
    begun(given.out, CellNetwork.random(given.channels, given.hidden), target=picture)
    model = GrowingCA(str(given.out))
    model = model.with_network(model.network.to(given.device))
    descent = train(model, picture, given)
    model.network.save(given.out, target=picture)
    rows = [
        {"iterations": descent.count, "seconds": round(descent.seconds), **score(given.out)}
    ]
    report("growing-ca", rows, device=given.device, side=given.side, batch=given.batch)


def train(model: GrowingCA, picture: Tensor, given: Namespace) -> Descent:
    size = (given.side + 2 * _MARGIN,) * 2
    draw = torch.Generator().manual_seed(0)
    seed = {k: x.to(given.device) for k, x in model.initial(size, draw).items()}
    target = model.on_grid(size).to(given.device)
    pool = SamplePool(seed, given.pool)
    descent = Descent(model.network, given.rate, given.iterations, given.minutes)
    while descent.share < 1:
        places, state = pool.draw(given.batch)
        errors = away(state["cells"], target)
        # The worst first: it begins anew. Half of all are damaged, those that need it least.
        order = errors.argsort(descending=True).cpu()
        places, cells = places[order], state["cells"][order.to(given.device)]
        cells[0] = seed["cells"]
        for i in range(given.batch - given.batch // 2, given.batch):
            cells[i] *= undamaged(size, draw).to(cells)
        # What has died does not come back.
        cells[cells[:, 3].amax((1, 2)) <= model.threshold] = seed["cells"]
        state = {
            "cells": cells,
            "random": random_numbers((given.batch, *size), draw).to(given.device),
        }
        if descent.count == 0:
            compare(model, state)
        steps = given.steps + int(torch.randint(0, given.steps // 2, (), generator=draw))
        *_, later = steps_of_living(model, state, steps)
        errors = away(later["cells"], target)
        beyond = (later["cells"] - later["cells"].clamp(-2, 2)).abs().mean()
        descent.down(errors.mean() + beyond)
        pool.put(places, later)
        if descent.keeps:
            model.network.save(given.out, target=picture)
            print(f"{descent.count} {descent.seconds:.0f} s: {errors.mean():.5f}", flush=True)
    return descent


def away(cells: Tensor, target: Tensor) -> Tensor:
    """The mean squared error of each sample."""
    return (cells[:, :4] - target).square().mean((1, 2, 3))


def undamaged(size: tuple[int, int], draw: torch.Generator) -> Tensor:
    """A grid without a disc, or without one side of a line; 0 where cells are erased."""
    y, x = (torch.linspace(-1, 1, n) for n in size)
    a, b, c, kind = torch.rand(4, generator=draw).tolist()
    if kind < 0.5:
        angle = 2 * math.pi * a
        side = math.cos(angle) * y[:, None] + math.sin(angle) * x
        return (side < 0.5 * b - 0.1).float()
    middle = 1.2 * torch.tensor([a, b]) - 0.6
    return (torch.hypot(y[:, None] - middle[0], x - middle[1]) > 0.2 + 0.3 * c).float()


def score(path: Path) -> dict[str, float]:
    """Errors after growing, much later, and before and after half of it grows again."""
    model = GrowingCA(str(path))
    side = model.target.shape[1] + 2 * _MARGIN
    sim = Simulation(model, size=(side, side), compiled=False, device="cpu")
    found: dict[str, float] = {}
    for steps, name in ((100, "grown"), (300, "kept")):
        sim.run(steps, progress=False)
        found[name] = sim.observe()["error"]
    mask = torch.zeros(side, side, dtype=torch.bool)
    mask[:, side // 2 :] = True
    sim.paint("alive", mask, 0.0)
    found["erased"] = sim.observe()["error"]
    sim.run(200, progress=False)
    found["grown again"] = sim.observe()["error"]
    return found


def flower(side: int) -> Tensor:
    """Red, green and blue, each times alpha, and alpha of a flower, `[4, side, side]`."""
    fine = (torch.arange(side * _POINTS) + 0.5) / (side * _POINTS) * 2 - 1
    y, x = fine[:, None], fine[None]
    out = torch.zeros(4, side * _POINTS, side * _POINTS)
    stem = 0.10 * torch.sin(2.2 * (y - 0.2))
    paint(out, (y > -0.2) & (y < 0.97) & ((x - stem).abs() < 0.075), _GREEN)
    for turn, across in ((0.45, 0.36), (-0.45, -0.36)):
        v, u = turned(y - 0.62 + 0.1 * math.copysign(1, turn), x - across, turn)
        paint(out, v.abs() < 0.17 * (1 - (u / 0.40) ** 2), _GREEN)
    v, u = y + 0.30, x
    r, angle = torch.hypot(v, u), torch.atan2(v, u)
    rim = 0.44 + 0.22 * torch.cos(2.5 * (angle + math.pi / 2)).abs()
    for k in range(12):
        share = k / 11
        mixed = [a + share * (b - a) for a, b in zip(_OUTER, _INNER, strict=True)]
        paint(out, r < rim * (1 - 0.62 * share), mixed)
    paint(out, r < 0.19, _YELLOW)
    return torch.nn.functional.avg_pool2d(out, _POINTS)


def turned(y: Tensor, x: Tensor, angle: float) -> tuple[Tensor, Tensor]:
    """Coordinates after a turn."""
    c, s = math.cos(angle), math.sin(angle)
    return c * y + s * x, c * x - s * y


def paint(picture: Tensor, where: Tensor, colour: Sequence[float]) -> None:
    """Paint a colour over a picture."""
    picture[:, where.expand_as(picture[0])] = torch.tensor([*colour, 1.0])[:, None]


if __name__ == "__main__":
    main()
