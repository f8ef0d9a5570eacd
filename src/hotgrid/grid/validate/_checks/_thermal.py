"""Heated flows: when a layer of fluid begins to turn over, and how a dye spreads."""

import math
from collections.abc import Iterator

import torch

from hotgrid.grid.lbm import RayleighBenard, ThermalFlow
from hotgrid.grid.validate._check import Check, Terms
from hotgrid.grid.validate._row import Row, compared

_CRITICAL = 1707.762
# The width of a pair of rolls over the height of the layer at the critical point.
_WIDTH = 2.016


def _growth(terms: Terms, rayleigh: float, rows: int) -> float:
    """The share by which a pair of rolls grows in a step while it is weak."""
    size = (rows, round(_WIDTH * rows))
    model = RayleighBenard(rayleigh=rayleigh, velocity=0.3, ripple=1e-3)
    sim = terms.simulation(model, size, small=terms.quick)
    # Until only the rolls are left of the noise: two times that of diffusion over the height.
    steps, strengths = 25 * rows, []
    for _ in range(2):
        sim.run(steps, progress=False)
        wave = torch.fft.rfft(sim.view("velocity_y")[rows // 2])[1]
        strengths.append(wave.abs().item())
    return math.log(strengths[1] / strengths[0]) / steps


def _onset(terms: Terms) -> Iterator[Row]:
    """Rolls fade below the critical Rayleigh number and grow above it."""
    rows, below, above = 16 if terms.quick else 32, 1600.0, 1820.0
    fades, grows = (_growth(terms, rayleigh, rows) for rayleigh in (below, above))
    yield compared(
        "Rayleigh-Benard: critical Rayleigh number",
        _CRITICAL,
        below - fades * (above - below) / (grows - fades),
        limit=0.02 * _CRITICAL,
        source="linear theory, Jeffreys 1928, Chandrasekhar 1961",
        setting=f"growth at {below:g} and {above:g}, {rows} cells high, fp64",
    )


def _spreads(terms: Terms) -> Iterator[Row]:
    """A wave of dye in a steady stream fades at diffusivity k^2, wherever it drifts."""
    n, diffusivity, speed, steps = 32, 0.05, 0.05, 400
    wave = torch.cos(2 * math.pi * torch.arange(n, dtype=torch.float64) / n).expand(n, n)
    still = torch.zeros(n, n, dtype=torch.float64)
    model = ThermalFlow(
        start=lambda size, _: (still + 1, [still, still + speed]),
        warmth=lambda size, _: wave,
        diffusivity=diffusivity,
        buoyancy=0.0,
    )
    sim = terms.simulation(model, (n, n), small=True)
    sim.run(steps, progress=False)
    left = torch.fft.rfft(sim.view("temperature")[0])[1] / (n / 2)
    yield compared(
        "passive scalar: diffusivity / true one",
        1,
        -math.log(left.abs().item()) / (diffusivity * (2 * math.pi / n) ** 2 * steps),
        limit=0.01,
        source="exact solution of advection and diffusion",
        setting=f"D2Q5 in a stream of {speed:g}, {n} cells, {steps} steps, fp64",
    )
    yield compared(
        "passive scalar: velocity / that of the fluid",
        1,
        -math.atan2(left.imag.item(), left.real.item())
        % (2 * math.pi)
        / (2 * math.pi / n * speed * steps),
        limit=0.01,
        source="exact solution of advection and diffusion",
        setting=f"D2Q5 in a stream of {speed:g}, {n} cells, {steps} steps, fp64",
    )


THERMAL = (
    Check("rayleigh-benard", True, _onset),
    Check("passive-scalar", True, _spreads),
)
