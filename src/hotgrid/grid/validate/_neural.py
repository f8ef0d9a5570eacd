"""Neural automata: a flower that heals, matter that stays."""

from collections.abc import Iterator

import torch

from hotgrid.grid.neural import FlowLenia, GrowingCA

from ._check import Check, Terms
from ._row import Row, compared


def _growing(terms: Terms) -> Iterator[Row]:
    """Grow for 160 steps, cut the upper half, heal for 200."""
    model, side = GrowingCA(), GrowingCA.tile
    target = model.target((side, side))
    sim = terms.simulation(model, (side, side), small=True, dtype=torch.float32)

    def off() -> float:
        return (sim.state["cells"][:4].cpu() - target).square().mean().item()

    sim.run(160, progress=False)
    grown = off()
    mask = torch.zeros(side, side, dtype=torch.bool)
    mask[: side // 2] = True
    sim.paint("erase", mask.to(sim.device), 1)
    cut = off()
    sim.run(200, progress=False)
    healed = off()
    source = "the picture it was trained on; an empty grid is off by "
    source += f"{target.square().mean().item():.3f}"
    yield compared(
        "Growing: grown from one cell, mean square error",
        0.0,
        grown,
        limit=0.01,
        source=source,
        setting=f"160 steps on {side} x {side}",
    )
    yield compared(
        "Growing: healed after a cut, mean square error",
        0.0,
        healed,
        limit=0.01,
        source=source,
        setting=f"upper half erased ({cut:.3f}), then 200 steps",
    )


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


NEURAL = (
    Check("growing", True, _growing, aliases=("growing-ca",)),
    Check("flow-lenia", True, _flow),
)
