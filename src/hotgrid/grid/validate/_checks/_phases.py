"""Liquid and vapour, oil and water: what is beside each other, and the pressure in drops."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from hotgrid.grid.lbm import RisingDrop, ShanChen, TwoComponents
from hotgrid.grid.run import Simulation
from hotgrid.grid.validate._check import Check, Terms
from hotgrid.grid.validate._row import Row, compared


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


def _tension(sim: Simulation, seen: str = "density") -> float:
    """The pressure difference between a drop and its surroundings, times its radius."""
    density, pressure = sim.view(seen), sim.view("pressure")
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


class _Beside(TwoComponents):
    """Two components side by side along x, or a faint wave of their shares."""

    def __init__(self, wave: bool, **parameters: float) -> None:
        super().__init__("D2Q9", **parameters)
        self.wave = wave

    def shares(self, size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        x = torch.arange(size[1], dtype=torch.float64) + 0.5 - size[1] / 2
        if self.wave:
            return (0.5 + 1e-4 * torch.cos(2 * math.pi * x / size[1])).expand(size)
        return (0.5 + 0.38 * torch.tanh((size[1] / 4 - x.abs()) / 2)).expand(size)


def _parting(terms: Terms) -> Iterator[Row]:
    """A faint wave of shares fades below the critical repulsion and grows above it."""
    columns, steps, rates = 64, 100, []
    for repulsion in (1.8, 2.2):
        model = _Beside(True, repulsion=repulsion, viscosity=0.05)
        sim = terms.simulation(model, (2, columns), small=True)
        strengths = []
        for _ in range(2):
            sim.run(steps, progress=False)
            strengths.append(torch.fft.rfft(sim.view("share")[0])[1].abs().item())
        rates.append(math.log(strengths[1] / strengths[0]))
    yield compared(
        "two components: critical repulsion times density",
        2,
        1.8 - 0.4 * rates[0] / (rates[1] - rates[0]),
        limit=0.02,
        source="spinodal of ideal gases that repel each other",
        setting=f"growth at 1.8 and 2.2, {columns} cells, fp64",
    )


def _both_sides(terms: Terms) -> Iterator[Row]:
    """Chemical potentials are the same: log(a / b) = repulsion (a - b)."""
    columns, steps = 48, 400 if terms.quick else 4000
    model = _Beside(False, repulsion=2.5, viscosity=0.02)
    sim = terms.simulation(model, (2, columns), small=True)
    sim.run(steps, progress=False)
    density, share = (sim.view(name)[0, columns // 2].item() for name in ("density", "share"))
    yield compared(
        "two components: repulsion that the densities of both phases give",
        model.repulsion,
        math.log(share / (1 - share)) / (density * (2 * share - 1)),
        limit=0.025,
        source="equal chemical potentials on both sides",
        setting=f"{columns} cells, {steps:,} steps, fp64",
    )


def _drops(terms: Terms) -> Iterator[Row]:
    """Tensions of drops of two sizes are the same, and no mass turns into the other."""
    sides, steps = ((32, 48), 900) if terms.quick else ((64, 96), 20_000)
    found, lost = [], []
    for n in sides:
        model = RisingDrop(gravity=0.0, radius_over_width=0.25, viscosity=0.5)
        sim = terms.simulation(model, (n, n), small=terms.quick)
        before = sim.observe()
        sim.run(steps, progress=False)
        after = sim.observe()
        found.append(_tension(sim, "share"))
        lost += [after[k] / before[k] - 1 for k in ("mass_first", "mass_second")]
    setting = f"drops in {sides[0]}^2 and {sides[1]}^2, {steps:,} steps, fp64"
    yield compared(
        "two components: surface tension of a small drop / of a larger one",
        1,
        found[0] / found[1],
        limit=0.05,
        source="law of Laplace",
        setting=setting,
    )
    yield compared(
        "two components: mass that a component loses",
        0,
        max(lost, key=abs),
        limit=1e-9,
        source="conserved but for round-off",
        setting=setting,
    )


def _two_components(terms: Terms) -> Iterator[Row]:
    yield from _parting(terms)
    yield from _both_sides(terms)
    yield from _drops(terms)


PHASES = (
    Check("shan-chen", True, _shan_chen),
    Check("two-components", True, _two_components),
)
