"""Automata other than Life: laws that hold exactly, published sequences, known machines."""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

import torch
from torch import Tensor

from hotgrid.grid.life import (
    Elementary,
    Generations,
    HexLife,
    Isotropic,
    IsotropicRule,
    LargerThanLife,
    Life,
    Margolus,
    Pattern,
    Wireworld,
    pattern,
    read_rle,
)
from hotgrid.grid.validate._check import Check, Terms
from hotgrid.grid.validate._row import Row, compared

# The centre column of rule 30, and the rows of rule 110 as numbers in base two.
_A051023 = "11011100110001011001001110101110"
_A117999 = (1, 3, 7, 13, 31, 49, 115, 215, 509, 775)
_SIDES = ((0, 1), (1, 0), (1, 1), (0, -1), (-1, 0), (-1, -1))


def _differing(a: Tensor, b: Tensor) -> int:
    return int((a.cpu() != b.cpu()).sum())


def _generations(terms: Terms) -> Iterator[Row]:
    """In Brian's Brain two cells and their trail move by a row each step."""
    start = read_rle("x = 2, y = 2, rule = B2/S/C3\n2A$2B!")
    sim = terms.simulation(Generations(pattern=start), (32, 64), small=True)
    before = sim.state["cells"]
    sim.run(40, progress=False)
    yield compared(
        "Generations: cells off the track of a butterfly",
        0,
        _differing(sim.state["cells"], before.roll(-40, 0)),
        limit=0,
        source="Silverman, Brian's Brain: speed of light",
        setting="B2/S/C3, 40 steps on a torus of 32 x 64",
    )


def _larger(terms: Terms) -> Iterator[Row]:
    """With a radius of one it is Life."""
    rule = "R1,C0,M0,S2..3,B3..3,NM"
    found, known = (
        terms.simulation(model, (64, 96), small=True, seed=2)
        for model in (LargerThanLife(rule, density=0.3), Life())
    )
    for sim in (found, known):
        sim.run(100, progress=False)
    yield compared(
        "Larger than Life: cells that differ from Life",
        0,
        _differing(found.state["cells"], known.state["cells"]),
        limit=0,
        source="R1,C0,M0,S2..3,B3..3,NM is B3/S23",
        setting="random cells, 100 steps on a torus of 64 x 96",
    )


def _hexagonal(terms: Terms) -> Iterator[Row]:
    """A parity rule is linear: after 2^k steps a cell is the XOR of the six 2^k away."""
    steps = 16
    sim = terms.simulation(HexLife("B135/S135H"), (48, 64), small=True, seed=3)
    start = sim.state["cells"]
    sim.run(steps, progress=False)
    away = [start.roll((y * steps, x * steps), (0, 1)) for y, x in _SIDES]
    yield compared(
        "hexagonal: cells that break the XOR law",
        0,
        _differing(sim.state["cells"], reduce(torch.bitwise_xor, away)),
        limit=0,
        source="Fredkin's law, exact, with six neighbours",
        setting=f"B135/S135H, {steps} steps on a torus of 48 x 64",
    )


def _isotropic(terms: Terms) -> Iterator[Row]:
    """All letters of a count are the count; and one class alone is as large as its orbit."""
    every = "B3aceijknqry/S2aceikn3aceijknqry"
    found, known = (
        terms.simulation(model, (64, 96), small=True, seed=4)
        for model in (Isotropic(every, density=0.3), Life())
    )
    for sim in (found, known):
        sim.run(100, progress=False)
    yield compared(
        "isotropic: cells that differ from Life",
        0,
        _differing(found.state["cells"], known.state["cells"]),
        limit=0,
        source="B3/S23 with every letter of 2 and 3",
        setting="random cells, 100 steps on a torus of 64 x 96",
    )
    letters = [f"{n}{letter}" for n in range(9) for letter in "aceijknqrtwyz"]
    sizes = {text: _windows(text) for text in ("0", "8", *letters)}
    yield compared(
        "isotropic: windows in classes with one letter",
        256,
        sum(sizes.values()),
        limit=0,
        source="the symmetries of the square divide 2^8 neighbourhoods into 51 orbits",
        setting=f"{sum(size > 0 for size in sizes.values())} classes",
    )


def _windows(text: str) -> int:
    """How many neighbourhoods give birth under a rule of one class; 0 if there is no such."""
    try:
        return sum(IsotropicRule((text,), ()).table())
    except ValueError:
        return 0


def _elementary(terms: Terms) -> Iterator[Row]:
    """A single cell, against Pascal's triangle and published sequences."""
    rows = {rule: _history(terms, rule) for rule in (90, 30, 110)}
    middle = rows[90].shape[1] // 2
    wrong = 0
    for n in range(64):
        for k in range(n + 1):
            # The binomial of n and k is odd where k has no bit that n lacks.
            wrong += int(rows[90][n, middle - n + 2 * k]) != int(k & ~n == 0)
        wrong += int(rows[90][n].sum()) != 2 ** n.bit_count()
    setting = "one cell, on a line of 256"
    yield compared(
        "rule 90: entries of Pascal's triangle that differ",
        0,
        wrong,
        limit=0,
        source="binomials modulo two, exact (Lucas)",
        setting=setting,
    )
    column = rows[30][: len(_A051023), middle].tolist()
    yield compared(
        "rule 30: wrong cells of the centre column",
        0,
        sum(int(a) != b for a, b in zip(_A051023, column, strict=True)),
        limit=0,
        source="OEIS A051023",
        setting=setting,
    )
    numbers = [
        int("".join(map(str, rows[110][n, middle - n : middle + 1].tolist())), 2)
        for n in range(len(_A117999))
    ]
    yield compared(
        "rule 110: wrong rows",
        0,
        sum(a != b for a, b in zip(_A117999, numbers, strict=True)),
        limit=0,
        source="OEIS A117999",
        setting=setting,
    )


def _history(terms: Terms, rule: int) -> Tensor:
    """The first 64 generations of a single cell, `[64, 256]`."""
    sim = terms.simulation(Elementary(rule, start="cell"), (256,), small=True)
    rows = [sim.state["cells"].cpu()]
    for _ in range(63):
        sim.step()
        rows.append(sim.state["cells"].cpu())
    return torch.stack(rows)


def _wireworld(terms: Terms) -> Iterator[Row]:
    """A clock ticks, and a gate lets through what comes from one side alone."""
    ticks = _electrons(terms, pattern("wireworld clock"), (1, 8), 40)
    yield compared(
        "Wireworld clock: period",
        10,
        ticks[-1] - ticks[-2],
        limit=0,
        source="an electron moves one cell a step around a ring of 10",
        setting="40 steps",
    )
    gate = _still(pattern("wireworld xor"))
    for upper, lower in ((0, 0), (0, 1), (1, 0), (1, 1)):
        cells = gate.cells.clone()
        for row, sent in ((1, upper), (7, lower)):
            # A tail and a head before it: an electron on its way to the right.
            cells[row, 12:14] = torch.tensor([2, 1]) if sent else cells[row, 12:14]
        yield compared(
            f"Wireworld XOR gate: electrons from {upper} and {lower}",
            upper ^ lower,
            len(_electrons(terms, replace(gate, cells=cells), (4, 53), 60)),
            limit=0,
            source="the truth table of XOR",
            setting="60 steps",
        )


def _still(circuit: Pattern) -> Pattern:
    """A circuit without electrons."""
    return replace(circuit, cells=torch.where(circuit.cells > 0, 3, 0))


def _electrons(terms: Terms, circuit: Pattern, at: tuple[int, int], steps: int) -> list[int]:
    """The steps at which a head is at a cell of a circuit."""
    sim = terms.simulation(
        Wireworld(circuit), tuple(n + 8 for n in circuit.cells.shape), small=True
    )
    found: list[int] = []
    for step in range(1, steps + 1):
        sim.step()
        if int(sim.state["cells"][4 + at[0], 4 + at[1]]) == 1:
            found.append(step)
    return found


def _margolus(terms: Terms) -> Iterator[Row]:
    """A run forwards and then backwards restores the cells."""
    for name in ("bbm", "critters"):
        model, steps = Margolus(name), 200
        sim = terms.simulation(model, (64, 64), small=True)
        start = sim.state
        sim.run(steps, progress=False)
        middle = sim.state
        back = terms.simulation(
            model.inverse(), (64, 64), small=True, state=model.turned(middle)
        )
        back.run(steps, progress=False)
        title = "billiard ball machine" if name == "bbm" else "Critters"
        yield compared(
            f"{title}: cells that do not return",
            0,
            _differing(back.state["cells"], start["cells"]),
            limit=0,
            source="a permutation of blocks is reversible",
            setting=f"{steps} steps and back, a torus of 64 x 64",
        )


def _klein(terms: Terms) -> Iterator[Row]:
    """A glider that has gone once around a Klein bottle is mirrored; twice, it is itself."""
    sim = terms.simulation(Life(pattern="glider", topology="klein"), (32, 32), small=True)
    start = sim.state["cells"]
    for times, expected in ((1, start.flip(1)), (2, start)):
        sim.run(4 * 32, progress=False)
        yield compared(
            f"Klein bottle: cells off after {'one turn' if times == 1 else 'two turns'}",
            0,
            _differing(sim.state["cells"], expected),
            limit=0,
            source="crossing the end joined with a twist mirrors left and right",
            setting=f"a glider, {times * 128} steps on 32 x 32",
        )


CELLS = (
    Check("generations", True, _generations),
    Check("larger-than-life", True, _larger),
    Check("hexagonal", True, _hexagonal),
    Check("isotropic", True, _isotropic, aliases=("hensel",)),
    Check("elementary", True, _elementary, aliases=("rule-30", "rule-90", "rule-110")),
    Check("wireworld", True, _wireworld, aliases=("wireworld-clock", "wireworld-xor-gate")),
    Check("margolus", True, _margolus, aliases=("critters", "bbm", "billiard-ball-machine")),
    Check("klein-bottle", True, _klein),
)
