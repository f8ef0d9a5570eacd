"""A body with less drag: the same area, another shape, found by the gradient of its drag.

A cell may be partly solid: it reflects a share of what comes in. So the drag is a smooth
function of a body, and its gradient through a stretch of the flow says how to change the body.
Every round continues from the flow of the last. The picture shows the disc and the body found.
Run it with `python examples/42_less_drag.py [--out DIR] [--size ROWS]`.
"""

import argparse
import math
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

import hotgrid as hg

VELOCITY, REYNOLDS = 0.1, 40


# %% Cells may be solid in part, so that drag is a smooth function of a body
def stream(share: Tensor) -> hg.lbm.Flow:
    """A stream from left to right past a body, `[y, x]`."""

    def start(size, generator):
        return torch.ones(size), [torch.zeros(size), torch.full(size, VELOCITY)]

    return hg.lbm.Flow(
        boundaries=[
            hg.lbm.FreeSlip("y-"),
            hg.lbm.FreeSlip("y+"),
            # Half of what comes in turned round is a stop; whole, it would swing in the body.
            hg.lbm.Porous(share / 2),
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
    """The solid share of every cell: smooth, within a window, and of a given area in sum."""
    rows, columns = field.shape
    smooth = hg.grid.rollout(hg.pde.Heat(), {"u": field}, 6)["u"]
    window = torch.zeros(rows, columns, dtype=torch.bool)
    window[rows // 4 : -rows // 4, columns // 8 : -columns // 4] = True
    inside = torch.where(window, 4 * smooth, -30.0)
    low, high = -inside.max().detach() - 30, -inside[window].min().detach() + 30
    for _ in range(60):
        offset = (low + high) / 2
        small = torch.sigmoid(inside.detach() + offset).sum() < area
        low, high = torch.where(small, offset, low), torch.where(small, high, offset)
    # A step of Newton's method, which only adds the gradient of a constant area.
    share = torch.sigmoid(inside + low)
    slope = (share * (1 - share)).sum().detach()
    return torch.sigmoid(inside + low - (share.sum() - area) / slope)


def drag(share: Tensor, f: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """The mean drag coefficient on the way, and the populations at the end."""
    model, found = stream(share), []
    for _ in range(4):
        f = hg.grid.rollout(model, {"f": f}, steps // 4, remat=8)["f"]
        found.append(model.drag({"f": f}))
    return torch.stack(found).mean() / (0.5 * VELOCITY**2 * share.shape[0] / 4), f


def shaped(rows: int, rounds: int, steps: int) -> tuple[Tensor, list[float]]:
    """The body found, and the drag in every round."""
    (field, area), drags = disc(rows), []
    f = stream(body(field, area)).initial(tuple(field.shape), torch.Generator())["f"].float()
    with torch.no_grad():
        _, f = drag(body(field, area), f, 8 * steps)
    for _ in range(rounds):
        found, later = drag(body(field.requires_grad_(), area), f, steps)
        (gradient,) = torch.autograd.grad(found, field)
        # Where it matters most the surface moves by a part of a cell, elsewhere by less.
        field = (field - 0.5 * gradient / gradient.abs().max()).detach()
        f = later.detach()
        drags.append(found.item())
    return body(field, area), drags


def settled(share: Tensor, passes: float) -> tuple[float, Tensor]:
    """The drag coefficient and the speed in a separate run, of a number of passes."""
    sim, seen = hg.Simulation(stream(share), size=share.shape, compiled=False), []
    sim.every(20, lambda sim: seen.append(sim.observe()["drag"]))
    sim.run(round(passes * share.shape[1] / VELOCITY), progress=False)
    drag = fmean(seen[-len(seen) // 4 :]) / (0.5 * VELOCITY**2 * share.shape[0] / 4)
    return drag, sim.view("speed") / VELOCITY


def draw(bodies: dict[str, tuple[Tensor, Tensor]], drags: list[float], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 2.6), layout="constrained")
    *panels, curve = figure.subplots(1, 3, width_ratios=(2, 2, 1.2))
    for panel, (title, (share, speed)) in zip(panels, bodies.items(), strict=True):
        panel.imshow(speed.numpy(), origin="lower", vmin=0, vmax=1.5)
        panel.contour(share.numpy(), [0.5], colors="white")
        panel.set(title=title, xticks=[], yticks=[])
    curve.plot(drags, color="C3")
    curve.set(title="drag coefficient", xlabel="rounds")
    curve.grid(color="0.9")
    figure.savefig(file, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    parser.add_argument("--size", type=int, default=40, help="rows of the grid")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    toy = options.size < 40
    found, drags = shaped(options.size, rounds=4 if toy else 20, steps=40 if toy else 64)
    bodies = {}
    for name, share in {"disc": body(*disc(options.size)), "body found": found}.items():
        coefficient, speed = settled(share, 0.2 if toy else 2)
        print(f"{name}: area {share.sum():.1f} cells, drag coefficient {coefficient:.2f}")
        bodies[f"{name}: drag coefficient {coefficient:.2f}"] = share, speed
    draw(bodies, drags, options.out / "less_drag.png")
    print(f"the picture is in {options.out / 'less_drag.png'}")


if __name__ == "__main__":
    main()
