"""Flow Lenia: matter stays."""

from collections.abc import Iterator

from hotgrid.grid.neural import FlowLenia

from ._check import Check, Terms
from ._row import Row, compared


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


NEURAL = (Check("flow-lenia", True, _flow),)
