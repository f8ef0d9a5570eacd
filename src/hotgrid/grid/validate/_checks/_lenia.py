"""Lenia: the glider lives, and flies as fast as in a spectral solver in double precision."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from hotgrid.grid.neural import Lenia
from hotgrid.grid.validate._check import Check, Terms
from hotgrid.grid.validate._row import Row, compared

_SIDE = 64


def _orbium(terms: Terms) -> Iterator[Row]:
    """One Orbium on a torus, 300 steps."""
    steps, model = 300, Lenia()
    sim = terms.simulation(model, (_SIDE, _SIDE), small=True, dtype=torch.float32)
    start = sim.state["cells"].cpu()

    def engine() -> Tensor:
        sim.step()
        return sim.state["cells"].cpu().double()

    setting = f"one Orbium, {steps} steps on a torus of {_SIDE} x {_SIDE}"
    flown, lives = _flown(start.double(), engine, steps)
    known, twin = _flown(start.double(), _spectral(model, start.double()), steps)
    yield compared(
        "Orbium: cells a step",
        known / steps,
        flown / steps,
        limit=1e-3,
        source="the same equation by FFT in double precision",
        setting=setting,
    )
    yield compared(
        "Orbium: mass after 300 steps",
        float(twin.sum()),
        float(lives.sum()),
        limit=0.1,
        source="the same; Chan 2019 has it stable",
        setting=setting,
    )


def _flown(start: Tensor, step: Callable[[], Tensor], steps: int) -> tuple[float, Tensor]:
    """The way of the centre of mass, and the last cells."""
    before, way, cells = _centre(start), [0.0, 0.0], start
    for _ in range(steps):
        cells = step()
        after = _centre(cells)
        for axis in (0, 1):
            # Across the ends, the short way around.
            way[axis] += (after[axis] - before[axis] + _SIDE / 2) % _SIDE - _SIDE / 2
        before = after
    return math.hypot(*way), cells


def _centre(cells: Tensor) -> tuple[float, float]:
    """The centre of mass on a torus, as the mean of angles."""
    turn = torch.exp(2j * math.pi * torch.arange(_SIDE, dtype=torch.float64) / _SIDE)
    angles = [float(torch.angle((cells.sum(axis) * turn).sum())) for axis in (1, 0)]
    return angles[0] * _SIDE / (2 * math.pi), angles[1] * _SIDE / (2 * math.pi)


def _spectral(model: Lenia, cells: Tensor) -> Callable[[], Tensor]:
    """The equation written again: a kernel on the whole grid, and its Fourier transform."""
    offset = torch.arange(_SIDE, dtype=torch.float64)
    offset = torch.minimum(offset, _SIDE - offset) / model.radius
    r = torch.hypot(offset[:, None], offset).clamp(1e-9, 1 - 1e-9)
    kernel = torch.exp(4 - 1 / (r * (1 - r)))
    kernel = torch.fft.rfft2(kernel / kernel.sum())

    def step() -> Tensor:
        nonlocal cells
        mean = torch.fft.irfft2(torch.fft.rfft2(cells) * kernel, s=cells.shape)
        growth = 2 * torch.exp(-((mean - model.centre) ** 2) / (2 * model.width**2)) - 1
        cells = (cells + model.rate * growth).clamp(0, 1)
        return cells

    return step


LENIA = (Check("orbium", True, _orbium, aliases=("lenia",)),)
