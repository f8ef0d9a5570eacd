"""Life: patterns with a known evolution, and a law that holds for any cells."""

from collections.abc import Iterator
from functools import partial, reduce
from itertools import product

import torch
from torch import Tensor

from hotgrid.grid.life import Life, pattern
from hotgrid.grid.run import Simulation
from hotgrid.grid.validate._check import Check, Terms
from hotgrid.grid.validate._row import Row, compared

_GARDNER = "Gardner, Scientific American, October 1970"
_LEXICON = "Silver, Life Lexicon"


def _differing(a: Tensor, b: Tensor) -> int:
    return int((a != b).sum())


def _glider(terms: Terms) -> Iterator[Row]:
    """It moves by one row and one column in four steps, also across the ends of a torus."""
    steps = 256
    sim = terms.simulation(Life(pattern="glider"), (32, 64), small=True)
    start = sim.state["cells"]
    sim.run(steps, progress=False)
    yield compared(
        "glider: cells off its track",
        0,
        _differing(sim.state["cells"], start.roll((steps // 4, steps // 4), (0, 1))),
        limit=0,
        source=_GARDNER,
        setting=f"{steps} steps on a torus of 32 x 64",
    )


def _gun(terms: Terms) -> Iterator[Row]:
    """After every period the gun looks the same and has sent out one glider."""
    gun, size, begin = pattern("gosper gun"), (128, 128), 60
    sim = terms.simulation(Life(topology="plane", pattern=gun), size, small=True)
    top, left = ((n - m) // 2 for n, m in zip(size, gun.cells.shape, strict=True))
    own = (slice(top, top + gun.cells.shape[0]), slice(left, left + gun.cells.shape[1]))
    sim.run(begin, progress=False)
    before = after = sim.state["cells"]
    period = 0
    while period < 100:
        sim.step()
        after = sim.state["cells"]
        period += 1
        if torch.equal(after[own], before[own]):
            break
    known = {
        "Gosper gun: period": (30, period),
        "Gosper gun: cells sent out a period": (5, int(after.sum()) - int(before.sum())),
    }
    for name, (reference, value) in known.items():
        yield compared(
            name,
            reference,
            value,
            limit=0,
            source=_LEXICON,
            setting=f"a plane of 128 x 128, from step {begin}",
        )


def _methuselah(
    terms: Terms, name: str, settled: int, cells: int, size: int, small: bool
) -> Iterator[Row]:
    """It grows for long, and after a known step its population does not change."""
    # Wide enough that the gliders it sends out never reach an end.
    sim = terms.simulation(
        Life(topology="plane", pattern=name), (size, size), small=small, dtype=torch.float32
    )
    watched = 30
    sim.run(settled - watched, progress=False)
    populations = [_population(sim)]
    for _ in range(2 * watched):
        sim.step()
        populations.append(_population(sim))
    changes = [i for i in range(len(populations)) if populations[i] != populations[-1]]
    since = settled - watched + (changes[-1] + 1 if changes else 0)
    found = {"last change of population": (settled, since), "cells": (cells, populations[-1])}
    for what, (reference, value) in found.items():
        yield compared(
            f"{name}: {what}",
            reference,
            value,
            limit=0,
            source=_LEXICON,
            setting=f"{settled + watched} steps on a plane of {size} x {size}",
        )


def _population(sim: Simulation) -> int:
    return int(sim.observe()["population"])


def _replicator(terms: Terms) -> Iterator[Row]:
    """Parity rules are linear: after 2^k steps a cell is the XOR of cells 2^k away."""
    size, steps = (96, 128), 32
    sim = terms.simulation(Life("B1357/S1357"), size, small=True, seed=1)
    start = sim.state["cells"]
    sim.run(steps, progress=False)
    away = [o for o in product((-steps, 0, steps), repeat=2) if any(o)]
    expected = reduce(torch.bitwise_xor, [start.roll(o, (0, 1)) for o in away])
    yield compared(
        "replicator: cells that break the XOR law",
        0,
        _differing(sim.state["cells"], expected),
        limit=0,
        source="Fredkin's law, exact: p(x)^(2^k) = p(x^(2^k)) modulo 2",
        setting=f"random cells, {steps} steps on a torus of 96 x 128",
    )


LIFE = (
    Check("glider", True, _glider),
    Check("gosper-gun", True, _gun, aliases=("gun",)),
    Check(
        "r-pentomino",
        True,
        partial(_methuselah, name="R-pentomino", settled=1103, cells=116, size=640, small=True),
    ),
    Check(
        "acorn",
        False,
        partial(_methuselah, name="acorn", settled=5206, cells=633, size=2816, small=False),
    ),
    Check("replicator", True, _replicator, aliases=("fredkin",)),
)
