"""Flows with an exact solution, and one compared with another solver."""

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from hotgrid.grid.lbm import (
    MRT,
    TRT,
    Couette,
    DoubleShear,
    Flow,
    Poiseuille,
    TaylorGreen,
    at_equilibrium,
)
from hotgrid.grid.pde import Heat
from hotgrid.grid.run import Simulation
from hotgrid.grid.validate._check import Check, Terms
from hotgrid.grid.validate._references import flow_after
from hotgrid.grid.validate._row import Row, compared


def _velocity(sim: Simulation) -> Tensor:
    """Velocity along y and x, `[2, y, x]`, in double, on the CPU."""
    return torch.stack([sim.view("velocity_y"), sim.view("velocity_x")]).double()


def _plates(
    terms: Terms, flow: type[Poiseuille] | type[Couette], profile: str
) -> Iterator[Row]:
    """Between plates the steady flow is a polynomial, which the scheme solves exactly."""
    size, steps = (8, 4), 800
    model = flow(TRT(magic=3 / 16), velocity=0.05, reynolds=0.8)
    sim = terms.simulation(model, size, small=True)
    sim.run(steps, progress=False)
    found = sim.view("velocity_x") - model.exact(size)
    yield compared(
        f"{flow.__name__}: largest error / U",
        0,
        found.abs().max().item() / model.velocity,
        limit=1e-12,
        source=f"exact {profile}",
        setting=f"TRT 3/16, half-way walls, {size[0]} cells, fp64, {steps} steps",
    )


def taylor_green_on(
    terms: Terms, n: int, reynolds: float, collision: str = "trt"
) -> tuple[float, float]:
    """Measured over true viscosity, and the error of velocity, both at the same time."""
    # Velocity falls as the grid gets finer, so that compressibility falls with it.
    model = TaylorGreen(collision=collision, velocity=0.32 / n, reynolds=reynolds)
    steps = n * n // 8
    sim = terms.simulation(model, (n, n), small=True)
    sim.run(steps // 2, progress=False)
    half = sim.observe()["kinetic_energy"]
    sim.run(steps - steps // 2, progress=False)
    fall = math.log(half / sim.observe()["kinetic_energy"]) / (2 * (steps - steps // 2))
    _, exact = model.exact((n, n), steps)
    wanted = torch.stack(exact)
    error = (_velocity(sim) - wanted).norm() / wanted.norm()
    return fall / model.decay_rate((n, n)), error.item()


def _taylor_green(terms: Terms) -> Iterator[Row]:
    """A vortex that decays by an exact law."""
    viscosity, _ = taylor_green_on(terms, 64, 0.5)
    # At Re 0.5 errors of second order all but cancel, and no order can be seen.
    coarse, fine = (taylor_green_on(terms, n, 2)[1] for n in (32, 64))
    source, setting = "Taylor and Green 1937, exact", "D2Q9 TRT, fp64, U ~ 1 / n"
    yield compared(
        "Taylor-Green: viscosity / true one",
        1,
        viscosity,
        limit=1e-3,
        source=source,
        setting=f"{setting}, Re 0.5, 64^2",
    )
    yield compared(
        "Taylor-Green: order of convergence",
        2,
        math.log2(coarse / fine),
        limit=0.1,
        source=source,
        setting=f"{setting}, Re 2, 32^2 against 64^2",
    )


def _sound(terms: Terms) -> Iterator[Row]:
    """A plane wave of sound falls by (nu + zeta) k^2 / 2 in a step, in 2-D."""
    n, nu, bulk, period = 64, 0.02, 0.7, 111
    wave = torch.cos(2 * math.pi * torch.arange(n, dtype=torch.float64) / n).expand(4, n)
    model = Flow(
        collision=MRT(bulk=bulk),
        viscosity=nu,
        start=lambda size, _: (1 + 1e-4 * wave, [torch.zeros(size)] * 2),
    )
    sim = terms.simulation(model, (4, n), small=True)
    energies = []
    for _ in range(2):
        found = []
        for _ in range(period):
            sim.run(1, progress=False)
            found.append(sim.observe()["kinetic_energy"])
        energies.append(sum(found))
    fall = math.log(energies[0] / energies[1]) / (2 * period)
    theory = (nu + (1 / bulk - 0.5) / 3) / 2 * (2 * math.pi / n) ** 2
    yield compared(
        "MRT: damping of sound / theory",
        1,
        fall / theory,
        limit=0.02,
        source="Lallemand and Luo 2000",
        setting=f"bulk rate {bulk}, {n} cells, two periods, fp64",
    )


def _sheared(terms: Terms) -> tuple[DoubleShear, int]:
    """Layers that the grid resolves, and how many cells a side has."""
    if terms.quick:
        return DoubleShear(reynolds=1000, steepness=20), 96
    return DoubleShear(reynolds=10_000, steepness=30), 256


def _double_shear(terms: Terms) -> Iterator[Row]:
    """Layers that roll up, compared with a solver of another kind."""
    model, n = _sheared(terms)
    sim = terms.simulation(model, (n, n), dtype=torch.float32)
    start = _velocity(sim).to(sim.device)
    steps = round(n / model.velocity)
    sim.run(steps, progress=False)
    viscosity = model.velocity * n / model.reynolds
    wanted = torch.stack(flow_after(list(start), viscosity, steps, steps // 10)).cpu()
    yield compared(
        "double shear layer: error of velocity",
        0,
        ((_velocity(sim) - wanted).norm() / wanted.norm()).item(),
        limit=0.02,
        source="Minion and Brown 1997, by a pseudo-spectral solver here",
        setting=f"{n}^2, Re {model.reynolds:g}, one turn, TRT, fp32",
    )


def _stirred(model: Flow, n: int) -> Tensor:
    """A state without any symmetry that could make errors cancel, `[populations, n, n]`."""
    generator = torch.Generator().manual_seed(0)
    waves = [torch.rand(n, n, generator=generator, dtype=torch.float64) for _ in range(2)]
    velocity = [0.04 * (0.5 + wave) for wave in waves]
    return at_equilibrium(model.lattice, torch.ones(n, n, dtype=torch.float64), velocity)


def _conservation(terms: Terms) -> Iterator[Row]:
    """Conserved quantities stay the same over many steps in single precision."""
    steps = 10_000 if terms.quick else 100_000
    model, n = Flow(viscosity=0.02), 96 if terms.quick else 256
    flow = terms.simulation(model, (n, n), dtype=torch.float32, state={"f": _stirred(model, n)})
    heat = terms.simulation(Heat(), (n, n), dtype=torch.float32, small=terms.quick)
    for sim, names in ((flow, ("mass", "momentum_x", "momentum_y")), (heat, ("heat",))):
        before = sim.observe()
        sim.run(steps, progress=False)
        after = sim.observe()
        for name in names:
            yield compared(
                f"{name.replace('_', ' along ')}: drift",
                0,
                (after[name] - before[name]) / before[name],
                # A sixth of the rounding of single precision in every step.
                limit=1e-8 * steps,
                source="conserved but for round-off",
                setting=f"{type(sim.model).__name__}, {n}^2, fp32, {steps} steps",
            )


FLOWS = (
    Check(
        "poiseuille",
        True,
        partial(_plates, flow=Poiseuille, profile="parabola"),
        aliases=("plates",),
    ),
    Check(
        "couette",
        True,
        partial(_plates, flow=Couette, profile="straight line"),
        aliases=("plates",),
    ),
    Check("taylor-green", True, _taylor_green),
    Check("mrt", True, _sound),
    Check("double-shear-layer", True, _double_shear, aliases=("double-shear",)),
    Check(
        "conservation",
        True,
        _conservation,
        aliases=("mass", "momentum-along-x", "momentum-along-y"),
    ),
)
