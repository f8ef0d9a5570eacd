"""A body of less drag: the same area, another shape, found by the gradient of its drag.

A cell may be solid in part: it sends so much of what comes in back. So the drag is a smooth
function of a body, and its gradient through a stretch of the flow says how to change the body.
Every round goes on from the flow of the last. The picture shows the disc and the body found.
Run it with `python examples/42_less_drag.py [--out DIR] [--size ROWS]`.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

import hotgrid as hg

VELOCITY, REYNOLDS = 0.1, 40


# %% A boundary of its own: cells that are solid in part, so that shapes have gradients
@dataclass(frozen=True, eq=False)
class Porous(hg.lbm.Boundary):
    """Cells that turn a share of what comes in round, in place of a collision."""

    share: Tensor
    obstacle = True
    marks = False

    def cells(self, size: tuple[int, ...]) -> Tensor:
        return self.share > 0.5

    def inputs(self, lattice: hg.lbm.Lattice) -> tuple[hg.grid.Input, ...]:
        return (hg.grid.Input("share"),)

    def static(self, lattice: hg.lbm.Lattice, size: tuple[int, ...]) -> dict[str, Tensor]:
        return {"share": self.share}

    def select(self, site: hg.lbm.Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        return list(pulled)

    def settle(self, site, pulled, collided) -> list[Tensor]:
        back, share = [pulled[o] for o in site.lattice.opposite], site.own("share")
        return [x + share * (b - x) for x, b in zip(collided, back, strict=True)]

    def links(self, lattice, size, device) -> Tensor:
        return self.share

    def force(self, lattice, f, links, numbers) -> list[Tensor]:
        """Twice the momentum that comes into the solid share."""
        pulled = [torch.roll(x, c, (0, 1)) for x, c in zip(f, lattice.velocities, strict=True)]
        return [2 * (links * m).sum() for m in hg.lbm.moments(lattice, pulled)[1]]


def stream(share: Tensor) -> hg.lbm.Flow:
    """A stream from left to right past a body, `[y, x]`."""

    def start(size, generator):
        return torch.ones(size), [torch.zeros(size), torch.full(size, VELOCITY)]

    return hg.lbm.Flow(
        boundaries=[
            hg.lbm.FreeSlip("y-"),
            hg.lbm.FreeSlip("y+"),
            Porous(share),
            hg.lbm.ZouHeVelocity("x-", velocity=(0, VELOCITY)),
            hg.lbm.ExtrapolationOutlet("x+", hold=2 / share.shape[1]),
        ],
        start=start,
        viscosity=VELOCITY * share.shape[0] / 4 / REYNOLDS,
    )


# %% From a field without bounds to a body of a given area
def disc(rows: int) -> tuple[Tensor, float]:
    """How far cells are inside of a disc, negative outside, and its area."""
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(2 * rows), indexing="ij")
    inside = rows / 8 - torch.hypot(y - (rows - 1) / 2, x - 0.7 * rows)
    return inside.float(), math.pi * (rows / 8) ** 2


def body(field: Tensor, area: float) -> Tensor:
    """The share of solid: smooth, within a window in the middle, and of that area."""
    rows, columns = field.shape
    smooth = hg.grid.rollout(hg.pde.Heat(), {"u": field}, 6)["u"]
    window = torch.zeros(rows, columns, dtype=torch.bool)
    window[rows // 4 : -rows // 4, columns // 8 : -columns // 4] = True
    inside = torch.where(window, 2 * smooth, -30.0)
    low, high = -inside.max().detach() - 30, -inside[window].min().detach() + 30
    for _ in range(60):
        middle = (low + high) / 2
        more = torch.sigmoid(inside.detach() + middle).sum() < area
        low, high = torch.where(more, middle, low), torch.where(more, high, middle)
    # A last step of Newton's method changes nothing but the gradient: the area stays.
    share = torch.sigmoid(inside + middle)
    slope = (share * (1 - share)).sum().detach()
    return torch.sigmoid(inside + middle - (share.sum() - area) / slope)


def drag(
    share: Tensor, flow: dict[str, Tensor], steps: int
) -> tuple[Tensor, dict[str, Tensor]]:
    """The mean drag coefficient on the way, and the flow at the end."""
    model, found = stream(share), []
    for _ in range(4):
        flow = hg.grid.rollout(model, flow, steps // 4, remat=8)
        found.append(model.drag(flow))
    return torch.stack(found).mean() / (0.5 * VELOCITY**2 * share.shape[0] / 4), flow


def shaped(rows: int, rounds: int, steps: int) -> tuple[Tensor, list[float]]:
    """The body found, and the drag in every round."""
    (field, area), drags = disc(rows), []
    flow = hg.Simulation(stream(body(field, area)), size=field.shape, compiled=False)
    flow.run(4 * steps, progress=False)
    state = flow.state
    optimizer = torch.optim.Adam([field.requires_grad_()], lr=0.3)
    for _ in range(rounds):
        optimizer.zero_grad()
        found, later = drag(body(field, area), state, steps)
        found.backward()
        optimizer.step()
        state = {name: x.detach() for name, x in later.items()}
        drags.append(found.item())
    return body(field.detach(), area), drags


def settled(share: Tensor, passes: float) -> tuple[float, hg.Simulation]:
    """The drag coefficient once the stream has passed so often, from a start of its own."""
    sim, seen = hg.Simulation(stream(share), size=share.shape, compiled=False), []
    sim.every(20, lambda sim: seen.append(sim.observe()["drag"]))
    sim.run(round(passes * share.shape[1] / VELOCITY), progress=False)
    scale = 0.5 * VELOCITY**2 * share.shape[0] / 4
    return fmean(seen[-len(seen) // 4 :]) / scale, sim


def draw(sims: dict[str, hg.Simulation], drags: list[float], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 2.6), layout="constrained")
    *panels, curve = figure.subplots(1, 3, width_ratios=(2, 2, 1.2))
    for panel, (title, sim) in zip(panels, sims.items(), strict=True):
        panel.imshow(sim.view("speed").numpy() / VELOCITY, origin="lower", vmin=0, vmax=1.5)
        panel.contour(sim.model.boundaries[2].share.numpy(), [0.5], colors="white")
        panel.set(title=title, xticks=[], yticks=[])
    curve.plot(drags, color="C3")
    curve.set(title="drag coefficient", xlabel="rounds")
    curve.grid(color="0.9")
    figure.savefig(file, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    parser.add_argument("--size", type=int, default=48, help="rows of the grid")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    toy = options.size < 48
    found, drags = shaped(options.size, rounds=6 if toy else 40, steps=40 if toy else 120)
    bodies = {"disc": body(*disc(options.size)), "body found": found}
    results = {name: settled(share, 0.2 if toy else 3) for name, share in bodies.items()}
    sims = {}
    for name, (drag, sim) in results.items():
        print(f"{name}: area {bodies[name].sum():.1f} cells, drag coefficient {drag:.3f}")
        sims[f"{name}: drag coefficient {drag:.2f}"] = sim
    draw(sims, drags, options.out / "less_drag.png")
    print(f"the picture is in {options.out / 'less_drag.png'}")


if __name__ == "__main__":
    main()
