"""A map from measurements: where is a fluid thicker, seen only from its velocities?

Four flows of eddies run through a fluid whose viscosity differs from place to place, and
their velocities are measured twice, with one percent of noise. The gradient of the misfit,
taken through all steps, finds the map. The picture shows a flow, the true map and the one
found.
Run it with `python examples/41_viscosity.py [--out DIR] [--size N]`.
"""

import argparse
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

import hotgrid as hg

FLOWS, NOISE, VELOCITY = 4, 0.01, 0.08


def true_map(size: int) -> Tensor:
    """A thick bar and a thin spot, what the viscosity is multiplied by, `[size, size]`."""
    y, x = torch.meshgrid(*[torch.linspace(0, 1, size)] * 2, indexing="ij")
    bar = torch.sigmoid(40 * (0.12 - torch.hypot(y - 0.35, (x - 0.45) / 3)))
    spot = torch.sigmoid(40 * (0.14 - torch.hypot(y - 0.72, x - 0.65)))
    return (math.log(4) * bar + math.log(0.4) * spot).exp()


def eddies(size: int, seed: int) -> Tensor:
    """Populations of a flow in waves of a quarter of the grid and longer, `[9, size, size]`."""
    noise = torch.randn(size, size, generator=torch.Generator().manual_seed(seed))
    waves = torch.fft.fftfreq(size, 1 / size).square()
    stream = torch.fft.ifft2(torch.fft.fft2(noise) * (waves[:, None] + waves <= 16)).real
    uy, ux = (torch.roll(stream, 1, axis) - torch.roll(stream, -1, axis) for axis in (1, 0))
    scale = VELOCITY / torch.hypot(uy, ux).max()
    flow = [scale * uy, -scale * ux]
    return hg.lbm.at_equilibrium(hg.lbm.D2Q9, torch.ones(size, size), flow)


# %% What is measured for a map: velocities half-way and at the end, differentiable
def measured(viscosity_map: Tensor, starts: Tensor, steps: int) -> Tensor:
    """Velocities of all flows, `[looks, axes, flows, *space]`."""
    model = hg.lbm.Flow(viscosity=0.03, viscosity_map=torch.ones(viscosity_map.shape))
    found, state = [], {"f": starts}
    for _ in range(2):
        given = {"viscosity_map": viscosity_map}
        state = hg.grid.rollout(
            model, state, steps // 2, inputs=given, batch=len(starts), remat=8
        )
        excess, momentum = hg.lbm.moments(model.lattice, state["f"].unbind(1))
        found.append(torch.stack(momentum) / (1 + excess))
    return torch.stack(found)


def as_map(logs: Tensor, size: int) -> Tensor:
    """The map from a coarse grid of logarithms: noise cannot hide in single cells."""
    return F.interpolate(logs[None, None], (size, size), mode="bicubic")[0, 0].exp()


def misfit(logs: Tensor, starts: Tensor, seen: Tensor, steps: int) -> Tensor:
    """The part of the measurements that a map does not explain."""
    found = measured(as_map(logs, starts.shape[-1]), starts, steps)
    return (found - seen).square().sum() / seen.square().sum()


def fitted(starts: Tensor, seen: Tensor, steps: int, rounds: int) -> tuple[Tensor, list[float]]:
    """The logarithms on a coarse grid, and how the misfit fell."""
    logs = torch.zeros([starts.shape[-1] // 4] * 2, requires_grad=True)
    optimizer = torch.optim.LBFGS([logs], max_iter=rounds, line_search_fn="strong_wolfe")
    misfits: list[float] = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = misfit(logs, starts, seen, steps)
        loss.backward()
        misfits.append(loss.item())
        return loss

    optimizer.step(closure)
    return logs.detach(), misfits


def draw(speed: Tensor, maps: dict[str, Tensor], misfits: list[float], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.2), layout="constrained")
    flow, *panels, curve = figure.subplots(1, 4)
    flow.imshow(speed.numpy())
    flow.set_title("one of four flows")
    for panel, (title, shown) in zip(panels, maps.items(), strict=True):
        panel.imshow(shown.log2().numpy(), cmap="RdBu_r", vmin=-2, vmax=2)
        panel.set_title(title)
    for panel in (flow, *panels):
        panel.set_axis_off()
    curve.semilogy(misfits, color="C3")
    curve.axhline(NOISE**2, color="0.6", linestyle=":")
    curve.set(title="misfit, and the noise", xlabel="gradients")
    curve.grid(color="0.9")
    figure.savefig(file, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    parser.add_argument("--size", type=int, default=48, help="cells along a side")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    size, steps = options.size, options.size
    truth = true_map(size)
    starts = torch.stack([eddies(size, seed) for seed in range(FLOWS)])
    clean = measured(truth, starts, steps)
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
    seen = clean + NOISE * clean.square().mean().sqrt() * noise

    logs, misfits = fitted(starts, seen, steps, rounds=30 if size >= 48 else 8)
    found = as_map(logs, size)
    before, after = ((x - truth.log()).abs().mean() for x in (torch.zeros(()), found.log()))
    print(f"{len(misfits)} gradients through {steps} steps of {FLOWS} flows")
    print(f"misfit of velocities: {misfits[0]:.2e} -> {misfits[-1]:.2e}, noise {NOISE**2:.0e}")
    print(f"mean error of the logarithm of viscosity: {before:.3f} -> {after:.3f}")
    speed = clean[0, :, 0].square().sum(0).sqrt()
    maps = {"true viscosity": truth, "viscosity found": found}
    draw(speed, maps, misfits, options.out / "viscosity.png")
    print(f"the picture is in {options.out / 'viscosity.png'}")


if __name__ == "__main__":
    main()
