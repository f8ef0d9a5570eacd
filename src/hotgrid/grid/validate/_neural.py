"""Neural automata: matter stays, a picture grows and heals."""

from collections.abc import Iterator

import torch

from hotgrid.grid.neural import FlowLenia, GrowingCA

from ._check import Check, Terms
from ._row import Row, compared

# What was measured with the weights that come along, and a margin.
_GROWN, _HEALED = 0.016, 0.05


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


NEURAL = (
    Check("flow-lenia", True, _flow),
    Check("growing-ca", True, _growing),
)
