"""A net that corrects a coarse solver, trained through it and tested on new initial states.

Burgers' equation on a coarse grid smears its fronts. A small net of convolutions adds fluxes
between cells after every few steps, and learns them from runs on a grid four times as fine.
The picture shows an initial state that it has never seen, later than in any training.
Run it with `python examples/43_learned_correction.py [--out DIR] [--size N]`.
"""

import argparse
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

import hotgrid as hg
from hotgrid.train import TensorBatches, Trainer

FINER, STEPS = 4, 4  # fine cells in a coarse one, and steps between two corrections
COARSE = hg.pde.Burgers(viscosity=0.02, dt=0.3)
# In cells of its own, a quarter as wide, and steps of a quarter of the time.
FINE = hg.pde.Burgers(viscosity=0.02 * FINER, dt=0.3)


def starts(count: int, size: int, seed: int) -> Tensor:
    """Random waves of a quarter of the grid and longer, up to a speed of one."""
    noise = torch.randn(count, size, size, generator=torch.Generator().manual_seed(seed))
    waves = torch.fft.fftfreq(size, 1 / size).square()
    smooth = torch.fft.ifft2(torch.fft.fft2(noise) * (waves[:, None] + waves <= 9)).real
    return smooth / smooth.abs().amax((1, 2), keepdim=True)


def seen(fine: Tensor, moments: int) -> Tensor:
    """Fine runs as coarse cells see them, `[runs, moments + 1, size, size]`."""
    found, pool = [], nn.AvgPool2d(FINER)
    for moment in range(moments + 1):
        if moment:
            steps = STEPS * FINER
            fine = hg.grid.rollout(FINE, {"u": fine}, steps, batch=len(fine))["u"]
        found.append(pool(fine))
    return torch.stack(found, 1)


# %% The coarse solver, and what the net adds to it
class Correction(nn.Module):
    """A net whose output flows from cell to cell, so that nothing is made or lost."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        conv = partial(nn.Conv2d, padding="same", padding_mode="circular")
        last = conv(width, 2, 3)
        for x in last.parameters():
            nn.init.zeros_(x)  # it begins as the coarse solver
        first, second = conv(1, width, 5), conv(width, width, 5)
        self.net = nn.Sequential(first, nn.GELU(), second, nn.GELU(), last)

    def forward(self, u: Tensor) -> Tensor:
        """The state with what flows in, less what flows out, `[runs, size, size]`."""
        down, right = self.net(u[:, None]).unbind(1)
        return u + down.roll(1, 1) - down + right.roll(1, 2) - right


def coarse_run(u: Tensor, moments: int, net: nn.Module | None = None) -> Tensor:
    """The coarse solver with or without a net, `[runs, moments + 1, size, size]`."""
    found = [u]
    for _ in range(moments):
        u = hg.grid.rollout(COARSE, {"u": u}, STEPS, batch=len(u))["u"]
        u = u if net is None else net(u)
        found.append(u)
    return torch.stack(found, 1)


def loss(net: nn.Module, batch: tuple[Tensor]) -> Tensor:
    """How far a few moments are off, with all gradients through the solver."""
    truth = batch[0]
    return (coarse_run(truth[:, 0], truth.shape[1] - 1, net) - truth).square().mean()


def trained(truth: Tensor, ahead: int, steps: int, folder: Path) -> Correction:
    """A net trained on all windows of a number of states."""
    torch.manual_seed(0)
    net = Correction()
    windows = truth.unfold(1, ahead + 1, 1).movedim(-1, 2).flatten(0, 1)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    batches = TensorBatches((windows,), size=16)
    Trainer(net, loss, batches, optimizer, steps=steps, folder=folder, show=False).run()
    return net.eval()


def errors(found: Tensor, truth: Tensor) -> Tensor:
    """The part of every moment that is not reproduced, over all runs."""
    return ((found - truth).square().sum((0, 2, 3)) / truth.square().sum((0, 2, 3))).sqrt()


def draw(fields: dict[str, Tensor], curves: dict[str, Tensor], limit: int, file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.2), layout="constrained")
    *panels, plot = figure.subplots(1, 4)
    for panel, (title, field) in zip(panels, fields.items(), strict=True):
        panel.imshow(field.numpy(), cmap="RdBu_r", vmin=-0.6, vmax=0.6)
        panel.set_title(title)
        panel.set_axis_off()
    for name, curve in curves.items():
        plot.plot(STEPS * torch.arange(len(curve)), curve, label=name)
    plot.axvline(STEPS * limit, color="0.6", linestyle=":")
    plot.set(title="error on new starts", xlabel="coarse steps (dotted: trained on)")
    plot.legend()
    figure.savefig(file, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the files")
    parser.add_argument("--size", type=int, default=40, help="coarse cells along a side")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    toy = options.size < 40
    fine, moments = options.size * FINER, 4 if toy else 8
    truth = seen(starts(4 if toy else 12, fine, seed=0), moments)
    steps = 10 if toy else 160
    net = trained(truth, 3 if toy else 4, steps, options.out / "correction")

    new = seen(starts(2 if toy else 6, fine, seed=1), 2 * moments)
    with torch.no_grad():
        runs = {
            "coarse": coarse_run(new[:, 0], 2 * moments),
            "corrected": coarse_run(new[:, 0], 2 * moments, net),
        }
    curves = {name: errors(run, new) for name, run in runs.items()}
    for name, curve in curves.items():
        after = [f"{curve[k]:.1%} after {STEPS * k} steps" for k in (moments, 2 * moments)]
        print(f"{name:9} error on new starts: {', '.join(after)}")
    fields = {name: run[0, -1] for name, run in {"fine": new, **runs}.items()}
    draw(fields, curves, moments, options.out / "correction.png")
    print(f"the picture is in {options.out / 'correction.png'}")


if __name__ == "__main__":
    main()
