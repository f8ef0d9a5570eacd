"""Equations: the order at which errors fall as the grid gets finer."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor

from hotgrid.grid.pde import GrayScott, Heat, Wave
from hotgrid.grid.validate._check import Check, Terms
from hotgrid.grid.validate._row import Row, compared

_GRIDS = (32, 64, 128)
_TURN = 2 * math.pi


def _cosine(n: int) -> Tensor:
    """One wave along each axis of a square, `[n, n]`."""
    x = _TURN * torch.arange(n, dtype=torch.float64) / n
    return torch.cos(x[:, None] + x)


def _heat_error(terms: Terms, n: int) -> float:
    """The error against exp(-D k^2 t) cos(k x), at the same time for every n."""
    rate, steps, start = 0.1, n * n // 4, _cosine(n)
    sim = terms.simulation(Heat(rate=rate), (n, n), small=True, state={"u": start})
    sim.run(steps, progress=False)
    exact = math.exp(-2 * _TURN**2 * rate * steps / n**2) * start
    return (sim.state["u"].cpu() - exact).abs().max().item()


def _wave_error(terms: Terms, n: int) -> float:
    """The error against cos(omega t) cos(k x), at the same time for every n."""
    courant, steps, start = 0.5, n, _cosine(n)
    turn = _TURN * math.sqrt(2) * courant / n
    state = {"u": start, "v": start * (1 - math.cos(turn))}
    sim = terms.simulation(Wave(courant=courant), (n, n), small=True, state=state)
    sim.run(steps, progress=False)
    return (sim.state["u"].cpu() - math.cos(turn * steps) * start).abs().max().item()


def _order(terms: Terms, name: str, error: Callable[[Terms, int], float]) -> Iterator[Row]:
    coarse, fine = (error(terms, n) for n in _GRIDS[:2])
    yield compared(
        f"{name}: order of convergence",
        2,
        math.log2(coarse / fine),
        limit=0.05,
        source="exact plane wave of the continuous equation",
        setting=f"{_GRIDS[0]}^2 against {_GRIDS[1]}^2, fp64",
    )


def _gray_scott(terms: Terms) -> Iterator[Row]:
    """If no solution is known, three grids show the order of convergence.

    Steps are the same on all grids, so errors of time cancel and those of space are left.
    """
    found = [_gray_scott_on(terms, n) for n in _GRIDS]
    gaps = [(coarse - fine[::2, ::2]).abs().max().item() for coarse, fine in pairwise(found)]
    yield compared(
        "Gray-Scott: order of convergence",
        2,
        math.log2(gaps[0] / gaps[1]),
        limit=0.1,
        source="Richardson, three grids against each other",
        setting=f"{', '.join(f'{n}^2' for n in _GRIDS)}, fp64",
    )


def _gray_scott_on(terms: Terms, n: int) -> Tensor:
    finest = _GRIDS[-1]
    spread = {"diffusion_u": 0.16, "diffusion_v": 0.08}
    model = GrayScott(**{k: d * (n / finest) ** 2 for k, d in spread.items()})
    x = _cosine(n)
    state = {"u": 0.6 + 0.2 * x, "v": 0.3 - 0.1 * x}
    sim = terms.simulation(model, (n, n), small=True, state=state)
    sim.run(200, progress=False)
    return sim.state["v"].cpu()


PDE = (
    Check("heat", True, partial(_order, name="heat", error=_heat_error)),
    Check("wave", True, partial(_order, name="wave", error=_wave_error)),
    Check("gray-scott", True, _gray_scott),
)
