"""Compiled steps, in bytes and words, give the same cells as plain ones."""

import pytest
import torch

from hotgrid.grid import Simulation
from hotgrid.grid.life import Life, Life3D, WindowRule

from .life_twin import after, random_cells

pytestmark = [
    pytest.mark.compiles,
    pytest.mark.usefixtures("insisting"),
    # Inductor itself still imports what torch has deprecated.
    pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning"),
]

FLAT = random_cells(8, 20, 64)
CUBE = random_cells(9, 6, 7, 8)
ANY = "B0578/S0346"
CASES = {
    "words, B3/S23, padded": (Life(packed=True), FLAT, "padded"),
    "words, any rule, plane, roll": (Life(ANY, packed=True, topology="plane"), FLAT, "roll"),
    "bytes, B3/S23, age, roll": (Life(packed=False, age=True), FLAT, "roll"),
    "bytes, any rule, plane": (Life(ANY, packed=False, topology="plane"), FLAT, "padded"),
    "bytes, B3/S23, noise, roll": (Life(noise=0.02), FLAT, "roll"),
    "three dims, noise": (Life3D("B10,12,14/S8..11,13", noise=0.02), CUBE, "padded"),
    "windows": (WindowRule(lambda w: (w.sum((-2, -1)) % 5) == 2), FLAT, "padded"),
}


# The other cases cover each of their properties once.
LONG = ("words, any rule, plane, roll", "bytes, B3/S23, age, roll")


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in CASES]
)
def test_compiled_steps_give_the_same_cells(case):
    model, cells, form = CASES[case]
    size = tuple(cells.shape)
    sim = Simulation(model, size, state={"cells": cells}, compiled=True, form=form)
    sim.run(9, progress=False)
    found = sim.state["cells"]
    assert torch.equal(found, after(model, cells, 9))
    assert 0 < found.sum() < found.numel()
