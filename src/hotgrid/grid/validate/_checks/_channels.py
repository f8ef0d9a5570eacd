"""Channels and grains: a step, Darcy's law, sound at an outlet, eddies in space."""

import itertools
import math
from collections.abc import Iterator

import torch
from torch import Tensor

from hotgrid.grid.lbm import (
    BackwardFacingStep,
    Flow,
    HalfWay,
    NonReflectingOutlet,
    PorousMedium,
    TaylorGreen3D,
    ZouHeVelocity,
    from_mesh,
    icosphere,
)
from hotgrid.grid.validate._check import Check, Terms
from hotgrid.grid.validate._row import Row, compared

# Erturk 2008, for a channel that becomes twice as high, by Reynolds number.
_REATTACHMENT = {100: 2.922, 200: 4.982}
_PEAK = 0.0127
# Zick and Homsy 1982, balls in a simple cubic array: their share, and the drag of one over
# that of a ball alone.
_ARRAY = (0.125, 4.292)


def _step(terms: Terms) -> Iterator[Row]:
    """Where the flow meets the wall again behind a step."""
    height = 32
    for reynolds, known in _REATTACHMENT.items():
        size = (2 * height, (14 if reynolds == 100 else 20) * height)
        sim = terms.simulation(BackwardFacingStep(reynolds=reynolds, entry=2.0), size)
        steps = reynolds * 12 * height
        sim.run(steps, progress=False)
        yield compared(
            f"backward-facing step: length of the eddy, Re {reynolds}",
            known,
            sim.observe()["reattachment"],
            limit=0.03 * known,
            source="Erturk 2008",
            setting=f"step of {height} cells, {steps:,} steps, fp64",
        )


def _darcy(terms: Terms) -> Iterator[Row]:
    """The permeability of a square array of discs, as a series in the share of solid."""
    n = 32 if terms.quick else 96
    sim = terms.simulation(PorousMedium("square", porosity=0.9), (n, n), small=terms.quick)
    sim.run(3 * n * n // 2, progress=False)
    found = sim.observe()
    c = 1 - found["free_share"]
    series = -math.log(c) - 1.476 + 2 * c - 1.774 * c**2 + 4.076 * c**3
    yield compared(
        "porous medium: permeability of discs / theory",
        1,
        found["permeability"] * 8 * math.pi / (n * n * series),
        limit=0.05,
        source="Sangani and Acrivos 1982",
        setting=f"square array, {c:.3f} solid, {n} cells, whole cells, fp64",
    )


def _balls(terms: Terms) -> Iterator[Row]:
    """The drag of triangulated balls in slow flow, in a cubic array (a periodic grid)."""
    n, (share, known), force, viscosity = 20 if terms.quick else 40, _ARRAY, 1e-5, 0.5
    radius = n * (3 * share / (4 * math.pi)) ** (1 / 3)
    balls = from_mesh(icosphere(4), ((n - 1) / 2,) * 3, 2 * radius)
    flow = Flow(
        lattice="D3Q19", boundaries=[HalfWay(balls)], force=(0, 0, force), viscosity=viscosity
    )
    sim, steps = terms.simulation(flow, (n, n, n), small=terms.quick), n * n
    sim.run(steps, progress=False)
    mean = sim.view("velocity_x").double().mean().item()
    yield compared(
        "ball array: drag / drag of a ball alone",
        known,
        force * n**3 / (6 * math.pi * viscosity * radius * mean),
        limit=0.04 * known,
        source="Zick and Homsy 1982",
        setting=f"5120 triangles, {n}^3, {2 * radius:.1f} cells across, fp64, {steps} steps",
    )


def _sound(terms: Terms) -> Iterator[Row]:
    """A pulse of sound that has met the outlet is gone."""
    n = 120
    pulse = torch.exp(-(((torch.arange(n, dtype=torch.float64) - n / 2) / 8) ** 2))

    def start(size: tuple[int, ...], _: torch.Generator) -> tuple[Tensor, list[Tensor]]:
        wave = (1e-3 * pulse).expand(size)
        return 1 + wave, [torch.zeros_like(wave), wave / math.sqrt(3) + 0.1]

    flow = Flow(
        boundaries=[ZouHeVelocity("x-", velocity=(0, 0.1)), NonReflectingOutlet("x+")],
        viscosity=0.01,
        start=start,
    )
    sim = terms.simulation(flow, (2, n), small=True)
    sim.run(140, progress=False)
    yield compared(
        "non-reflecting outlet: part of a sound wave that comes back",
        0,
        (sim.view("density") - 1).abs().max().item() / 1e-3,
        limit=0.03,
        source="waves that go out alone, Thompson 1987",
        setting=f"pulse 8 cells wide in a stream of 0.1, {n} cells, fp64",
    )


def _turbulence(terms: Terms) -> Iterator[Row]:
    """The largest dissipation of the Taylor-Green vortex in 3-D."""
    n, every = 256, 0.25
    model = TaylorGreen3D(velocity=0.05)
    sim = terms.simulation(model, (n, n, n), dtype=torch.float32)
    unit = model.length((n, n, n)) / model.velocity
    steps = round(every * unit)
    energies = [sim.observe()["kinetic_energy"]]
    for _ in range(round(11 / every)):
        sim.run(steps, progress=False)
        energies.append(sim.observe()["kinetic_energy"])
    scale = n**3 * model.velocity**2 * steps / unit
    falls = [(a - b) / scale for a, b in itertools.pairwise(energies)]
    top = max(range(len(falls)), key=falls.__getitem__)
    source = "Re 1600, DNS of Brachet 1983 and later ones"
    setting = f"D3Q27 cumulant, {n}^3, U {model.velocity:g}, fp32"
    yield compared(
        "taylor-green-3d: largest dissipation",
        _PEAK,
        falls[top],
        limit=0.05 * _PEAK,
        source=source,
        setting=setting,
    )
    yield compared(
        "taylor-green-3d: time of it",
        9,
        (top + 0.5) * every,
        limit=0.5,
        source=source,
        setting=setting,
    )


CHANNELS = (
    Check("backward-facing-step", False, _step),
    Check("porous-medium", True, _darcy),
    Check("ball-array", True, _balls),
    Check("non-reflecting-outlet", True, _sound),
    Check("taylor-green-3d", False, _turbulence),
)
