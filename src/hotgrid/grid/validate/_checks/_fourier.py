"""Spectral equations: order in time, exact decays, and a solver that shares nothing."""

import math
from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor

from hotgrid.grid.model import Model
from hotgrid.grid.pde import KuramotoSivashinsky, NavierStokes, SplitSchroedinger, Vorticity
from hotgrid.grid.validate._check import Check, Terms
from hotgrid.grid.validate._references import flow_after
from hotgrid.grid.validate._row import Row, compared

_STEPS = (1 / 8, 1 / 16, 1 / 32)


def _waves(n: int) -> Tensor:
    return 2 * math.pi * torch.arange(n, dtype=torch.float64) / n


def _run(terms: Terms, model: Model, time: float, **state: Tensor) -> dict[str, Tensor]:
    [first] = state.values()
    size = tuple(first.shape[first.ndim > 2 :])
    sim = terms.simulation(model, size, small=True, state=state)
    sim.run(round(time / model.time_step), progress=False)
    return {name: x.cpu() for name, x in sim.state.items()}


def _order_in_time(name: str, found: list[Tensor], setting: str) -> Row:
    gaps = [(coarse - fine).abs().max().item() for coarse, fine in pairwise(found)]
    return compared(
        f"{name}: order in time",
        4,
        math.log2(gaps[0] / gaps[1]),
        limit=0.25,
        source="Richardson, three time steps against each other",
        setting=setting,
    )


def _kuramoto_sivashinsky(terms: Terms) -> Iterator[Row]:
    x, size = _waves(64), 1e-7
    model = KuramotoSivashinsky(dx=0.5)
    start = size * torch.cos(4 * x)
    wave, time = 4 * 2 * math.pi / (64 * 0.5), 10.0
    found = _run(terms, model, time, u=start)["u"]
    yield compared(
        "Kuramoto-Sivashinsky: growth of a small wave",
        wave**2 - wave**4,
        math.log((found.max() / size).item()) / time,
        limit=1e-6,
        source="linear stability, k^2 - k^4",
        setting="64 cells, 40 steps, fp64",
    )
    start = torch.cos(x) + 0.3 * torch.sin(2 * x)
    later = [_run(terms, KuramotoSivashinsky(dt=dt, dx=1.5), 10, u=start)["u"] for dt in _STEPS]
    yield _order_in_time("Kuramoto-Sivashinsky", later, "64 cells, t = 10, fp64")


def _vorticity(terms: Terms) -> Iterator[Row]:
    n, viscosity, time = 32, 0.02, 8.0
    x, k = _waves(n), 2 * math.pi / n
    vortices = 2 * k * torch.cos(x[:, None]) * torch.cos(x)
    found = _run(terms, Vorticity(viscosity=viscosity), 20.0, w=vortices)["w"]
    yield compared(
        "vorticity: decay of Taylor-Green vortices",
        1,
        (found / math.exp(-2 * viscosity * k * k * 20.0) / vortices).abs()[1, 1].item(),
        limit=1e-12,
        source="exact solution",
        setting=f"{n}^2, 40 steps, fp64",
    )
    y = x[:, None]
    start = 0.1 * (torch.cos(y) * torch.cos(2 * x) + torch.sin(3 * y + x) + torch.cos(2 * x))
    later = [
        _run(terms, Vorticity(dt=4 * dt, viscosity=viscosity), time, w=start)["w"]
        for dt in _STEPS
    ]
    yield _order_in_time("vorticity", later, f"{n}^2, t = {time:g}, fp64")
    before, after = _velocity(start), _velocity(later[-1])
    v, _ = flow_after(before, viscosity, time, 80)
    yield compared(
        "vorticity: flow against another solver",
        0,
        (after[0] - v).abs().max().item(),
        limit=1e-6,
        source="Runge-Kutta on all terms, transport not by parts",
        setting=f"{n}^2, t = {time:g}, fp64",
    )


def _velocity(w: Tensor) -> list[Tensor]:
    """Along y and along x, from a vorticity `[n, n]`."""
    n = w.shape[-1]
    ky = 2 * math.pi * torch.fft.fftfreq(n, dtype=torch.float64)[:, None]
    kx = 2 * math.pi * torch.fft.rfftfreq(n, dtype=torch.float64)
    square = (kx**2 + ky**2).clamp(min=1e-300)
    stream = torch.fft.rfft2(w) / square * (square > 1e-12)
    modes = (-1j * kx * stream, 1j * ky * stream)
    return [torch.fft.irfft2(each, s=(n, n)) for each in modes]


def _navier_stokes(terms: Terms) -> Iterator[Row]:
    errors = [_vortices(terms, n) for n in (16, 32)]
    yield compared(
        "Navier-Stokes: order of convergence",
        2,
        math.log2(errors[0] / errors[1]),
        limit=0.1,
        source="exact Taylor-Green vortices",
        setting="16^2 against 32^2, fp64",
    )
    for model, size in ((NavierStokes(), (32, 32)), (NavierStokes(dims=3), (16, 16, 16))):
        sim = terms.simulation(model, size, small=True)
        sim.run(20, progress=False)
        yield compared(
            f"Navier-Stokes: divergence in {len(size)} dims",
            0,
            sim.observe()["divergence"],
            limit=1e-13,
            source="conservation of volume",
            setting=f"{'x'.join(map(str, size))}, 20 steps, fp64",
        )


def _vortices(terms: Terms, n: int) -> float:
    """The error of decaying vortices, on faces, at the same time in turns of a vortex."""
    k, viscosity, dt = 2 * math.pi / n, 0.1 * n / 32, 0.1
    y, x = torch.meshgrid(*[torch.arange(n, dtype=torch.float64)] * 2, indexing="ij")
    up = -torch.cos(k * (x + 0.5)) * torch.sin(k * y)
    right = torch.sin(k * x) * torch.cos(k * (y + 0.5))
    start, time = torch.stack((up, right)), n / 4
    found = _run(terms, NavierStokes(dt=dt, viscosity=viscosity), time, velocity=start)
    exact = math.exp(-2 * viscosity * k * k * time) * start
    return (found["velocity"] - exact).abs().max().item()


def _split_schroedinger(terms: Terms) -> Iterator[Row]:
    """A packet in a bowl: its middle moves as a stone would, whatever its shape."""
    turn, steps = math.sqrt(SplitSchroedinger().stiffness), 40
    model = SplitSchroedinger(dt=math.pi / turn / steps)
    sim = terms.simulation(model, (128,), small=True)
    start = sim.observe()["position"]
    sim.run(steps, progress=False)
    yield compared(
        "split-schroedinger: place of a packet after half a swing / before",
        -1,
        sim.observe()["position"] / start,
        limit=0.001,
        source="Ehrenfest's theorem, harmonic potential",
        setting=f"128 cells, {steps} steps, fp64",
    )
    yield compared(
        "split-schroedinger: norm",
        1,
        sim.observe()["norm"],
        limit=1e-12,
        source="unitarity",
        setting=f"128 cells, {steps} steps, fp64",
    )


FOURIER = (
    Check("kuramoto-sivashinsky", True, _kuramoto_sivashinsky),
    Check("vorticity", True, _vorticity),
    Check("navier-stokes", True, _navier_stokes),
    Check("split-schroedinger", True, _split_schroedinger),
)
