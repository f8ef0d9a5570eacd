"""Run by a test under Triton's interpreter: the kernels of Life against its plain step."""

import sys

import torch

from hotgrid.grid import Simulation
from hotgrid.grid.life import Life
from hotgrid.grid.life._words._triton_life import life_pass


def agrees(rule: str, topology: str, rows: int, columns: int, generations: int) -> bool:
    model = Life(rule, topology=topology)
    sim = Simulation(model, size=(rows, columns), compiled=False, form="roll", device="cpu")
    given = sim._form.read()["cells"][0].clone()
    to = torch.full_like(given, -1)
    masks = model.rule.mask(alive=False), model.rule.mask(alive=True)
    life_pass(to, given, *masks, torus=topology == "torus", generations=generations)
    sim.run(generations, progress=False)
    return torch.equal(to, sim._form.read()["cells"][0])


CASES = [
    (rule, topology, *grid)
    for rule in ("B3/S23", "B0368/S1258")
    for topology in ("torus", "plane")
    for grid in ((11, 64, 1), (5, 192, 1), (9, 64, 3), (4, 31 * 64, 2))
]

wrong = [case for case in CASES if not agrees(*case)]
print(f"{len(CASES)} cases, wrong: {wrong}")
sys.exit(bool(wrong))
