"""Equations with a known solution: waves, fronts, shocks, separation and magnets."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotgrid.grid.pde import (
    Advection,
    Burgers,
    CahnHilliard,
    FitzhughNagumo,
    Gas,
    Ising,
    Maxwell,
    Schroedinger,
    ShallowWater,
)
from hotgrid.grid.validate._check import Check, Terms
from hotgrid.grid.validate._references import dam_break, shock_tube
from hotgrid.grid.validate._row import Row, compared

_TURN = 2 * math.pi


def _wave(n: int) -> Tensor:
    return torch.sin(_TURN * torch.arange(n, dtype=torch.float64) / n)


def _advection_error(terms: Terms, n: int, scheme: Any) -> float:
    """After one turn around the grid, against the start."""
    model, start = Advection(scheme, courant=0.5), _wave(n)
    sim = terms.simulation(model, (n,), small=True, state={"u": start})
    sim.run(2 * n, progress=False)
    return (sim.state["u"].cpu() - start).abs().max().item()


def _burgers_error(terms: Terms, n: int) -> float:
    """Before the shock, against characteristics: u(x, t) = u0(x - u t)."""
    dt, time, x = 0.1, 0.08, torch.arange(n, dtype=torch.float64) / n
    model = Burgers(viscosity=0.0, dt=dt)
    start = 0.5 + 0.25 * torch.sin(_TURN * x)
    sim = terms.simulation(model, (n,), small=True, state={"u": start})
    sim.run(round(time * n / dt), progress=False)
    u = start.clone()
    for _ in range(200):
        u = 0.5 + 0.25 * torch.sin(_TURN * (x - u * time))
    return (sim.state["u"].cpu() - u).abs().max().item()


def _order(
    terms: Terms, name: str, order: int, error: Callable[[Terms, int], float], limit: float
) -> Iterator[Row]:
    # Of high order, differences of a fine grid are those of round-off and of limits.
    grids = (32, 64) if order > 2 else (128, 256)
    coarse, fine = (error(terms, n) for n in grids)
    yield compared(
        f"{name}: order of convergence",
        order,
        math.log2(coarse / fine),
        limit=limit,
        source="exact solution by characteristics",
        setting=f"{grids[0]} against {grids[1]} cells, fp64",
    )


def _shock_speed(terms: Terms) -> Iterator[Row]:
    """A step from 1 to 0 moves at the mean, 1/2: Rankine and Hugoniot."""
    n, dt, steps = 256, 0.5, 200
    start = torch.zeros(n, dtype=torch.float64)
    start[16:80] = 1
    model = Burgers(viscosity=0.0, dt=dt)
    sim = terms.simulation(model, (n,), small=True, state={"u": start})
    sim.run(steps, progress=False)
    u = sim.state["u"].cpu()
    moved = int((u[80:] > 0.5).sum())
    yield compared(
        "burgers: speed of a shock",
        0.5,
        moved / (dt * steps),
        limit=0.01,
        source="Rankine-Hugoniot",
        setting=f"{n} cells, {steps} steps, fp64",
    )


def _burgers(terms: Terms) -> Iterator[Row]:
    yield from _order(terms, "burgers", 1, _burgers_error, limit=0.1)
    yield from _shock_speed(terms)


def _growth(terms: Terms) -> Iterator[Row]:
    """A weak wave grows at k^2 (1 - kappa k^2), in the differences of the grid."""
    n, turns, mobility, kappa, steps = 64, 3, 0.02, 1.0, 200
    k2 = 2 - 2 * math.cos(_TURN * turns / n)
    x = _TURN * turns * torch.arange(n, dtype=torch.float64) / n
    model = CahnHilliard(mobility=mobility, kappa=kappa)
    sim = terms.simulation(model, (n,), small=True, state={"c": 1e-5 * torch.cos(x)})
    sim.run(steps, progress=False)
    grown = sim.state["c"].cpu()[0].item() / 1e-5
    yield compared(
        "cahn-hilliard: growth of a wave",
        steps * math.log1p(mobility * k2 * (1 - kappa * k2)),
        math.log(grown),
        limit=1e-6,
        source="linear theory of spinodal decomposition",
        setting=f"{n} cells, {steps} steps, fp64",
    )


def _front(terms: Terms) -> Iterator[Row]:
    """Without recovery, a front moves at sqrt(D / 2) (1 - 2 threshold)."""
    n, threshold, diffusion, dt = 1024, 0.1, 8.0, 0.05
    model = FitzhughNagumo(diffusion=diffusion, threshold=threshold, pace=0.0, dt=dt)
    u = torch.zeros(n, dtype=torch.float64)
    u[n // 2 - 100 : n // 2 + 100] = 1
    state = {"u": u, "v": torch.zeros_like(u)}
    sim = terms.simulation(model, (n,), small=True, state=state)
    sim.run(1000, progress=False)
    before = sim.state["u"].sum().item()
    sim.run(2000, progress=False)
    # Both ends of the block move.
    speed = (sim.state["u"].sum().item() - before) / (2 * 2000 * dt)
    yield compared(
        "fitzhugh-nagumo: speed of a front",
        math.sqrt(diffusion / 2) * (1 - 2 * threshold),
        speed,
        limit=0.02,
        source="exact travelling wave of Nagumo's equation",
        setting=f"{n} cells, 3,000 steps, fp64",
    )


def _plane_wave(n: int, turns: int) -> Tensor:
    return _TURN * turns * torch.arange(n, dtype=torch.float64) / n


def _light(terms: Terms) -> Iterator[Row]:
    """A standing wave turns at sin(w dt / 2) = C sqrt(sin^2(kx / 2) + sin^2(ky / 2))."""
    n, courant, steps = 32, 0.5, 100
    model = Maxwell(margin=0, glass=1, courant=courant, absorption=0.0)
    x = _plane_wave(n, 3)
    e = torch.cos(x)[:, None] * torch.cos(x)
    turn = 2 * math.asin(courant * math.sqrt(2) * math.sin(_TURN * 3 / n / 2))
    state = {"e": e, "hx": torch.zeros_like(e), "hy": torch.zeros_like(e)}
    sim = terms.simulation(model, (n, n), small=True, state=state)
    values = [1.0]
    for _ in range(steps):
        sim.run(1, progress=False)
        values.append(sim.state["e"].cpu()[0, 0].item())
    # Whatever the magnetic field was: e(t - 1) + e(t + 1) = 2 cos(w dt) e(t).
    middle = np.array(values[1:-1])
    both = np.array(values[:-2]) + np.array(values[2:])
    found = math.acos(float(both @ middle / (2 * middle @ middle)))
    yield compared(
        "maxwell: turn of a standing wave in a step",
        turn,
        found,
        limit=1e-9,
        source="dispersion of Yee's scheme, Taflove 2005",
        setting=f"{n}^2, {steps} steps, fp64",
    )


def _absorbed(terms: Terms) -> Iterator[Row]:
    model = Maxwell(margin=16, glass=1)
    sim = terms.simulation(model, (96, 96), small=True)
    before = sim.observe()["energy"]
    sim.run(500, progress=False)
    yield compared(
        "maxwell: energy left after a flash has reached the ends",
        0.0,
        sim.observe()["energy"] / before,
        limit=1e-3,
        source="open space keeps nothing",
        setting="96^2 with layers of 16 cells, 500 steps, fp64",
    )


def _maxwell(terms: Terms) -> Iterator[Row]:
    yield from _light(terms)
    yield from _absorbed(terms)


def _matter(terms: Terms) -> Iterator[Row]:
    """A plane wave turns at sin(w dt / 2) = dt E / 2, E = sum of 1 - cos(k)."""
    n, dt, steps, turns = 64, 0.2, 200, 5
    x = _plane_wave(n, turns)
    energy = 1 - math.cos(_TURN * turns / n)
    turn = 2 * math.asin(dt * energy / 2)
    state = {"re": torch.cos(x), "im": torch.sin(x - turn / 2)}
    model = Schroedinger(dt=dt)
    empty = {"potential": torch.zeros(n, dtype=torch.float64)}
    sim = terms.simulation(model, (n,), small=True, state=state, inputs=empty)
    sim.run(steps, progress=False)
    exact = torch.cos(x - turn * steps)
    yield compared(
        "schroedinger: a plane wave",
        0.0,
        (sim.state["re"].cpu() - exact).abs().max().item(),
        limit=1e-10,
        source="dispersion of Visscher's scheme, 1991",
        setting=f"{n} cells, {steps} steps, fp64",
    )


def _dam(terms: Terms) -> Iterator[Row]:
    n, dt, deep, low = 256 if terms.quick else 1024, 0.25, 1.0, 0.2
    steps = round(0.15 * n / dt)
    h = torch.full((4, n), low, dtype=torch.float64)
    h[:, : n // 2] = deep
    still = torch.zeros_like(h)
    model = ShallowWater(dt=dt)
    state = {"h": h, "mx": still, "my": still.clone()}
    sim = terms.simulation(model, (4, n), small=terms.quick, state=state)
    sim.run(steps, progress=False)
    x = np.arange(n, dtype=np.float64) + (0.5 - n // 2)
    exact = dam_break(x, dt * steps, deep, low, 1.0)
    # The ends of the periodic grid are a second dam.
    inner = slice(n // 4, 3 * n // 4)
    yield compared(
        "shallow-water: mean error of a broken dam",
        0.0,
        float(np.abs(sim.state["h"].cpu().numpy()[0] - exact)[inner].mean()),
        limit=0.006 if terms.quick else 0.002,
        source="Stoker 1957",
        setting=f"{n} cells, {steps} steps, fp64",
    )


def _sod(terms: Terms) -> Iterator[Row]:
    n, dt, gamma = 256 if terms.quick else 1024, 0.2, 1.4
    steps = round(0.1 * n / dt)
    rho = torch.full((4, n), 0.125, dtype=torch.float64)
    pressure = torch.full_like(rho, 0.1)
    rho[:, : n // 2], pressure[:, : n // 2] = 1.0, 1.0
    still = torch.zeros_like(rho)
    model = Gas(gamma=gamma, dt=dt)
    energy = pressure / (gamma - 1)
    state = {"rho": rho, "mx": still, "my": still.clone(), "energy": energy}
    sim = terms.simulation(model, (4, n), small=terms.quick, state=state)
    sim.run(steps, progress=False)
    x = np.arange(n, dtype=np.float64) + (0.5 - n // 2)
    exact = shock_tube(x, dt * steps, (1.0, 1.0), (0.125, 0.1), gamma)
    inner = slice(n // 4, 3 * n // 4)
    yield compared(
        "gas: mean error of Sod's shock tube",
        0.0,
        float(np.abs(sim.state["rho"].cpu().numpy()[0] - exact)[inner].mean()),
        limit=0.01 if terms.quick else 0.004,
        source="Sod 1978, exact solution",
        setting=f"{n} cells, {steps} steps, fp64",
    )


def _onsager(terms: Terms) -> Iterator[Row]:
    size, temperature, steps = (128, 128), 2.0, 2000 if terms.quick else 10_000
    aligned = {"spin": torch.ones(size, dtype=torch.int8)}
    sim = terms.simulation(
        Ising(temperature=temperature),
        size,
        small=terms.quick,
        dtype=torch.float32,
        state=aligned,
    )
    sim.run(500, progress=False)
    found = []
    for _ in range(steps // 20):
        sim.run(20, progress=False)
        found.append(sim.observe()["magnetisation"])
    yield compared(
        "ising: magnetisation at T = 2",
        (1 - math.sinh(2 / temperature) ** -4) ** 0.125,
        float(np.mean(found)),
        limit=0.004,
        source="Onsager 1949, Yang 1952",
        setting=f"{size[0]}^2, {steps:,} steps, fp32",
    )


def _carried(scheme: str, order: int) -> Check:
    error = partial(_advection_error, scheme=scheme)
    return Check(
        scheme, True, partial(_order, name=scheme, order=order, error=error, limit=0.1)
    )


LAWS = (
    _carried("upwind", 1),
    _carried("lax-wendroff", 2),
    _carried("weno5", 5),
    Check("burgers", True, _burgers),
    Check("cahn-hilliard", True, _growth),
    Check("fitzhugh-nagumo", True, _front),
    Check("maxwell", True, _maxwell),
    Check("schroedinger", True, _matter),
    Check("shallow-water", True, _dam),
    Check("gas", True, _sod),
    Check("ising", True, _onsager),
)
