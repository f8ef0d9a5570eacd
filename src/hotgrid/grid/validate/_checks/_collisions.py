"""Collisions in moving frames: the viscosity they give, and layers that break others."""

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from hotgrid.grid.lbm import DoubleShear, Flow
from hotgrid.grid.validate._check import Check, Terms
from hotgrid.grid.validate._row import Row, compared

from ._flows import taylor_green_on

_SOURCES = {
    "central": "Geier 2006",
    "cumulant": "Geier 2015",
    "kbc": "Karlin, Boesch and Chikatamarla 2014",
}


def _viscosity(terms: Terms, collision: str, stream: float, n: int) -> float:
    """Measured over true viscosity, from a wave of shear that drifts past the grid."""
    nu, steps = 0.01, 4 * n
    wave = 1e-3 * torch.sin(2 * math.pi * torch.arange(n, dtype=torch.float64) / n)

    def start(size: tuple[int, ...], _: torch.Generator) -> tuple[Tensor, list[Tensor]]:
        rest = torch.zeros(size, dtype=torch.float64)
        return rest + 1, [rest + wave, rest + stream]

    flow = Flow(collision=collision, viscosity=nu, start=start)
    sim = terms.simulation(flow, (2, n), small=True)
    strengths = []
    for _ in range(2):
        sim.run(steps, progress=False)
        strengths.append(torch.fft.rfft(sim.view("velocity_y")[0])[1].abs().item())
    return math.log(strengths[0] / strengths[1]) / (steps * nu * (2 * math.pi / n) ** 2)


def _moving(terms: Terms, collision: str) -> Iterator[Row]:
    n, stream, source = 32, 0.2, _SOURCES[collision]
    still, moving = (_viscosity(terms, collision, u, n) for u in (0.0, stream))
    yield compared(
        f"{collision}: viscosity / true one",
        1,
        still,
        limit=0.01,
        source=source,
        setting=f"wave of shear at rest, {n} cells, fp64",
    )
    yield compared(
        f"{collision}: viscosity in a stream / at rest",
        1,
        moving / still,
        limit=0.005,
        source=f"{source}; BGK is 12 % off",
        setting=f"wave of shear in a stream of {stream:g}, {n} cells, fp64",
    )
    coarse, fine = (taylor_green_on(terms, m, 2, collision)[1] for m in (32, 64))
    yield compared(
        f"{collision}: order of convergence",
        2,
        math.log2(coarse / fine),
        limit=0.2,
        source="Taylor and Green 1937, exact",
        setting="Taylor-Green, Re 2, U ~ 1 / n, 32^2 against 64^2, fp64",
    )
    m, steps = 64, 700
    model = DoubleShear(collision, reynolds=30_000, velocity=0.1)
    sim = terms.simulation(model, (m, m), small=True)
    before = sim.observe()["kinetic_energy"]
    sim.run(steps, progress=False)
    yield compared(
        f"{collision}: energy of layers thinner than a cell / at the start",
        0.95,
        sim.observe()["kinetic_energy"] / before,
        limit=0.05,
        source="energy never grows; BGK, TRT and MRT break",
        setting=f"double shear layer, Re {model.reynolds:g}, {m}^2, {steps} steps, fp64",
    )


COLLISIONS = tuple(
    Check(collision, True, partial(_moving, collision=collision)) for collision in _SOURCES
)
