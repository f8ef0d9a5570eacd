"""Lattice gases: what they conserve, and the viscosity of FHP."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from hotgrid.grid.life import FHP, HPP
from hotgrid.grid.validate._check import Check, Terms
from hotgrid.grid.validate._row import Row, compared


def _conserved(terms: Terms) -> Iterator[Row]:
    """Number and momentum, after many collisions."""
    for model in (HPP(0.3), FHP(0.3), FHP(0.3, kind="III")):
        name = type(model).__name__ + (f"-{model.kind}" if isinstance(model, FHP) else "")
        sim = terms.simulation(model, (64, 64), small=True)
        before = sim.observe()
        sim.run(200, progress=False)
        after = sim.observe()
        yield compared(
            f"{name}: drift of mass and momentum",
            0,
            sum(abs(after[key] - before[key]) for key in model.conserved),
            limit=0,
            source="every collision keeps them, exact",
            setting="200 steps on a torus of 64 x 64",
        )


def _viscosity(terms: Terms) -> Iterator[Row]:
    """A wave of shear dies out as exp(-nu k^2 t)."""
    density, rows, columns, steps = 0.2, 64, 4096, 96
    model = FHP(density, start="uniform")
    k = 2 * math.pi / (rows * math.sqrt(3) / 2)
    sim = terms.simulation(
        model, (rows, columns), small=True, state=_sheared(model, rows, columns)
    )
    amplitudes = [_amplitude(model, sim.state["particles"])]
    for _ in range(steps // 8):
        sim.run(8, progress=False)
        amplitudes.append(_amplitude(model, sim.state["particles"]))
    times = torch.arange(len(amplitudes), dtype=torch.float64) * 8
    logs = torch.tensor(amplitudes, dtype=torch.float64).log()
    slope = ((times - times.mean()) * (logs - logs.mean())).sum() / (
        times - times.mean()
    ).square().sum()
    known = 1 / (12 * density * (1 - density) ** 3) - 1 / 8
    yield compared(
        "FHP viscosity: of a wave of shear",
        known,
        -slope.item() / k**2,
        limit=0.1 * known,
        source="Frisch et al. 1987, Boltzmann approximation",
        setting=f"a wave of shear, {rows} x {columns}, {steps} steps, 0.2 a direction",
    )


def _sheared(model: FHP, rows: int, columns: int, speed: float = 0.15) -> dict[str, Tensor]:
    """Particles whose mean velocity along the columns is a cosine down the rows."""
    generator = torch.Generator().manual_seed(0)
    state = model.initial((rows, columns), generator)
    wave = speed * torch.cos(2 * math.pi * torch.arange(rows) / rows)[:, None]
    particles = torch.zeros_like(state["particles"])
    for bit, (x, _) in enumerate(model.velocities):
        # To first order in the speed, the equilibrium of six directions.
        taken = model.density * (1 + 2 * wave * x * model.units[0])
        there = torch.rand((rows, columns), generator=generator) < taken
        particles |= there.to(torch.uint8) << bit
    return {**state, "particles": particles}


def _amplitude(model: FHP, particles: Tensor) -> float:
    """How much of the cosine is left in the momentum along the columns."""
    rows = particles.shape[0]
    wave = torch.cos(2 * math.pi * torch.arange(rows, dtype=torch.float64) / rows)
    flows = [
        x * (particles.cpu() >> bit & 1).sum(1, dtype=torch.float64)
        for bit, (x, _) in enumerate(model.velocities)
    ]
    return float((torch.stack(flows).sum(0) * wave).sum())


GASES = (
    Check("lattice-gases", True, _conserved, aliases=("hpp", "fhp", "fhp-i", "fhp-iii")),
    Check("fhp-viscosity", True, _viscosity),
)
