"""Liquid and vapour: densities beside each other, and the pressure in drops."""

import math
from collections.abc import Iterator

from hotgrid.grid.lbm import ShanChen
from hotgrid.grid.run import Simulation

from ._check import Check, Terms
from ._row import Row, compared


def _densities(terms: Terms) -> Iterator[Row]:
    """Across a flat surface, as mechanical stability gives them."""
    columns, steps = (64, 1200) if terms.quick else (128, 10_000)
    model = ShanChen("layer", viscosity=0.5)
    sim = terms.simulation(model, (2, columns), small=terms.quick)
    sim.run(steps, progress=False)
    lowest, highest = sim.view("density").aminmax()
    vapour, liquid = model.coexistence()
    for name, known, found in (
        ("vapour", vapour, lowest.item()),
        ("liquid", liquid, highest.item()),
    ):
        yield compared(
            f"Shan-Chen: density of {name}",
            known,
            found,
            limit=0.002,
            source="mechanical stability, Shan 2008",
            setting=f"attraction {model.attraction:g}, {columns} cells, {steps:,} steps, fp64",
        )


def _tension(sim: Simulation) -> float:
    """The pressure that a drop has above its vapour, times its radius."""
    density, pressure = sim.view("density"), sim.view("pressure")
    middle = tuple(n // 2 for n in density.shape)
    liquid, vapour = density[middle].item(), density[0, 0].item()
    area = (density.sum().item() - vapour * density.numel()) / (liquid - vapour)
    return (pressure[middle] - pressure[0, 0]).item() * math.sqrt(area / math.pi)


def _laplace(terms: Terms) -> Iterator[Row]:
    """A surface presses by its tension over the radius of the drop: tensions are the same."""
    sides, steps = ((48, 72), 1000) if terms.quick else ((64, 128), 20_000)
    found = []
    for n in sides:
        sim = terms.simulation(ShanChen("drop", viscosity=0.5), (n, n), small=terms.quick)
        sim.run(steps, progress=False)
        found.append(_tension(sim))
    yield compared(
        "Shan-Chen: surface tension of a small drop / of a larger one",
        1,
        found[0] / found[1],
        limit=0.03,
        source="law of Laplace",
        setting=f"drops in {sides[0]}^2 and {sides[1]}^2, {steps:,} steps, fp64",
    )


def _shan_chen(terms: Terms) -> Iterator[Row]:
    yield from _densities(terms)
    yield from _laplace(terms)


PHASES = (Check("shan-chen", True, _shan_chen),)
