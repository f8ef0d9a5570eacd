"""The lid-driven cavity, compared with the tables of Ghia, Ghia and Shin."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import torch
from torch import Tensor

from hotgrid.grid.lbm import Cavity
from hotgrid.grid.run import Simulation
from hotgrid.grid.validate._check import Check, Terms
from hotgrid.grid.validate._references import (
    _botella_peyret as botella_peyret,
    _ghia as ghia,
    interpolated,
)
from hotgrid.grid.validate._row import Row, compared

# A whole number of launches where steps are recorded in batches.
_LOOK_EVERY = 2048


def settled(velocity: float, change: float) -> Callable[[Simulation], bool]:
    """A condition for `until`: from check to check no velocity changed by more than a share."""
    last: list[Tensor] = []

    def until(sim: Simulation) -> bool:
        now = sim.view("velocity_x")
        still = bool(last) and (now - last[0]).abs().max().item() < change * velocity
        last[:] = [now]
        return still

    return until


def _across(cells: Tensor, low: float, high: float, at: tuple[float, ...]) -> Tensor:
    """A profile of cells between two walls, at the points of a table; all `[points]`."""
    n = len(cells)
    inside = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    ends = torch.tensor([0.0, 1.0, low, high], dtype=torch.float64)
    x = torch.cat([ends[:1], inside, ends[1:2]])
    y = torch.cat([ends[2:3], cells, ends[3:]])
    return interpolated(x, y, torch.tensor(at, dtype=torch.float64))


def _ghia_rows(terms: Terms, reynolds: int) -> Iterator[Row]:
    n, half = (64, 32) if terms.quick else (256, 128)
    model = Cavity(reynolds=reynolds, velocity=0.1)
    dtype = torch.float32 if terms.quick else torch.float64
    sim = terms.simulation(model, (n, n), dtype=dtype)
    until = settled(model.velocity, 1e-4 if terms.quick else 1e-6)
    sim.run(4_000_000, until=until, check_every=_LOOK_EVERY, progress=False)
    # The lines through the middle are between two cells.
    u = sim.view("velocity_x").double()[:, half - 1 : half + 1].mean(1) / model.velocity
    v = sim.view("velocity_y").double()[half - 1 : half + 1].mean(0) / model.velocity
    found = {"u": _across(u, 0, 1, ghia.Y), "v": _across(v, 0, 0, ghia.X)}
    setting = f"{n}^2, TRT, {str(dtype)[6:]}, {sim.step_count} steps to rest"
    yield from _beside_ghia(reynolds, found, setting)
    if reynolds == botella_peyret.REYNOLDS:
        yield from _beside_spectral(found, setting)


def _beside_ghia(reynolds: int, found: Mapping[str, Tensor], setting: str) -> Iterator[Row]:
    tables = {"u": (ghia.Y, ghia.U[reynolds]), "v": (ghia.X, ghia.V[reynolds])}
    for name, (places, table) in tables.items():
        doubted = ghia.DOUBTED.get((name, reynolds), ())
        gaps = zip(found[name].tolist(), places, table, strict=True)
        yield compared(
            f"cavity Re {reynolds}: error of {name} / U",
            0,
            max(abs(a - b) for a, place, b in gaps if place not in doubted),
            limit=0.01,
            source=f"{ghia.SOURCE}, table {'I' if name == 'u' else 'II'}"
            + (f", without x = {', '.join(map(str, doubted))}" if doubted else ""),
            setting=setting,
        )


def _beside_spectral(found: Mapping[str, Tensor], setting: str) -> Iterator[Row]:
    """Every point of Ghia, those in doubt too, beside a solution with seven digits."""
    tables = {"u": botella_peyret.U, "v": botella_peyret.V}
    for name, table in tables.items():
        yield compared(
            f"cavity Re {botella_peyret.REYNOLDS}: error of {name} / U, all points",
            0,
            max(abs(a - b) for a, b in zip(found[name].tolist(), table, strict=True)),
            limit=0.005,
            source=botella_peyret.SOURCE,
            setting=setting,
        )


CAVITY = tuple(
    Check(
        f"cavity-re-{reynolds}",
        reynolds == 100,
        partial(_ghia_rows, reynolds=reynolds),
        aliases=(f"ghia-{reynolds}",),
    )
    for reynolds in (100, 400, 1000)
)
