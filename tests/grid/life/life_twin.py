"""A second implementation of Life, slow and without torch."""

from itertools import product

import numpy as np
import torch
from hypothesis import strategies as st

from hotgrid.grid import Simulation
from hotgrid.grid.life import Rule
from hotgrid.grid.life._rules import Neighbourhood


def twin(cells: np.ndarray, rule: Rule, topology: str) -> np.ndarray:
    """One generation, from the definition: look at every neighbour of every cell."""
    count = np.zeros(cells.shape, int)
    for offset in product((-1, 0, 1), repeat=cells.ndim):
        steps = sum(map(abs, offset))
        if steps == 0 or (rule.neighbourhood == "von_neumann" and steps > 1):
            continue
        padded = np.pad(cells, 1, mode="wrap" if topology == "torus" else "constant")
        look = tuple(slice(1 + o, 1 + o + n) for o, n in zip(offset, cells.shape, strict=True))
        count += padded[look]
    born = (cells == 0) & np.isin(count, list(rule.birth))
    stays = (cells == 1) & np.isin(count, list(rule.survival))
    return (born | stays).astype(np.uint8)


def after(model, cells, steps: int = 1, **options) -> torch.Tensor:
    """The cells after some steps, from given ones, uncompiled."""
    cells = torch.as_tensor(cells)
    sim = Simulation(
        model, tuple(cells.shape), state={"cells": cells}, compiled=False, **options
    )
    sim.run(steps, progress=False)
    return sim.state["cells"]


def rules(neighbourhood: Neighbourhood = "moore", rank: int = 2) -> st.SearchStrategy[Rule]:
    most = Rule((), (), neighbourhood, rank).most
    counts = st.frozensets(st.integers(0, most))
    return st.builds(Rule, counts, counts, st.just(neighbourhood), st.just(rank))


def random_cells(seed: int, *size: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(size, generator=generator) < 0.45).to(torch.uint8)
