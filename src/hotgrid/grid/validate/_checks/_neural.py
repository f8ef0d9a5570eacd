"""Neural automata: matter stays, a picture grows and heals, digits classify themselves."""

from collections.abc import Iterator

import torch
from torch import Tensor

from hotgrid.grid.neural import DigitsCA, FlowLenia, GrowingCA
from hotgrid.grid.neural._drawn_digits import BOX, drawn_digit
from hotgrid.grid.validate._check import Check, Terms
from hotgrid.grid.validate._row import Row, compared

# What was measured with the bundled weights, and a margin.
_GROWN, _HEALED = 0.016, 0.05
_MISSED = 0.1


def _flow(terms: Terms) -> Iterator[Row]:
    """Matter before and after."""
    steps = 100 if terms.quick else 1000
    sim = terms.simulation(FlowLenia(), (64, 64), small=True)
    before = sim.observe()["mass"]
    sim.run(steps, progress=False)
    yield compared(
        "Flow Lenia: mass, relative to the start",
        1.0,
        sim.observe()["mass"] / before,
        limit=1e-12,
        source="conservation",
        setting=f"{steps} steps on 64 x 64 in double precision",
    )


def _growing(terms: Terms) -> Iterator[Row]:
    """From a seed to the picture, and back to it when half is erased."""
    runs = 4 if terms.quick else 16
    size = GrowingCA.size
    erased = torch.zeros(tuple(size), dtype=torch.bool)
    erased[:, size[1] // 2 :] = True
    grown: list[float] = []
    healed: list[float] = []
    for seed in range(runs):
        sim = terms.simulation(
            GrowingCA(), tuple(size), small=True, dtype=torch.float32, seed=seed
        )
        sim.run(120, progress=False)
        grown.append(sim.observe()["error"])
        sim.paint("alive", erased, 0.0)
        sim.run(80, progress=False)
        healed.append(sim.observe()["error"])
    for what, found, limit, steps in (
        ("after growing", grown, _GROWN, "120 steps from a seed"),
        ("after half was erased", healed, _HEALED, "80 more steps"),
    ):
        yield compared(
            f"growing CA: mean squared error {what}",
            0.0,
            sum(found) / runs,
            limit=limit,
            source="the picture it was trained to grow",
            setting=f"{steps} on {size[0]} x {size[1]}, {runs} seeds",
        )


def _digits(terms: Terms) -> Iterator[Row]:
    """Drawn digits are recognised, and again after each was changed into another."""
    sets = 4 if terms.quick else 16
    draw = torch.Generator().manual_seed(2)
    digits = torch.arange(10).repeat(sets)
    ink = torch.stack([drawn_digit(int(i), draw) for i in digits])
    model = DigitsCA()
    cells = torch.zeros(len(ink), model.network.channels, BOX, BOX)
    cells[:, 0] = ink
    sim = terms.simulation(
        model,
        (BOX, BOX),
        small=True,
        dtype=torch.float32,
        batch=len(ink),
        state={"cells": cells},
    )
    sim.run(60, progress=False)
    first = _elected(sim.state["cells"].cpu(), digits)
    changed = digits.roll(1, 0)
    cells = sim.state["cells"].cpu()
    cells[:, 0] = ink.roll(1, 0)
    sim.state = {"cells": cells * cells[:, :1]}
    sim.run(100, progress=False)
    then = _elected(sim.state["cells"].cpu(), changed)
    for what, found, steps in (
        ("recognised", first[0], "60 steps"),
        ("cells that vote with most of their digit", first[1], "60 steps"),
        ("recognised after a change into another", then[0], "100 more steps"),
    ):
        yield compared(
            f"digits CA: {what}",
            1.0,
            found,
            limit=_MISSED,
            source="the digits that were drawn",
            setting=f"{steps}, {len(ink)} digits on {BOX} x {BOX}",
        )


def _elected(cells: Tensor, digits: Tensor) -> tuple[float, float]:
    """The share of digits that most cells recognise, and of cells that vote with most."""
    votes = torch.nn.functional.one_hot(cells[:, -10:].argmax(1), 10)
    counts = (votes * (cells[:, 0, ..., None] > 0)).sum((1, 2)).float()
    agreed = counts.amax(1) / counts.sum(1)
    return (counts.argmax(1) == digits).float().mean().item(), agreed.mean().item()


NEURAL = (
    Check("flow-lenia", True, _flow),
    Check("growing-ca", True, _growing),
    Check("digits-ca", True, _digits),
)
