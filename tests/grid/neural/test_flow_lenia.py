"""Flow Lenia: matter moves, and none is made or lost."""

import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.neural import FlowLenia


def simulation(model: FlowLenia, size=(24, 32), **options) -> Simulation:
    plain = {"compiled": False, "device": "cpu", "dtype": torch.float64}
    return Simulation(model, size=size, **{**plain, **options})


@settings(deadline=None, max_examples=6)
@given(
    kernel=st.integers(2, 4),
    window=st.integers(1, 3),
    rate=st.floats(0.01, 1),
    spread=st.floats(0.5, 1),
    seed=st.integers(0, 99),
)
def test_matter_is_conserved(kernel, window, rate, spread, seed):
    sim = simulation(FlowLenia(kernel, window=window, rate=rate, spread=spread), seed=seed)
    before = sim.observe()["mass"]
    sim.run(10)
    assert sim.observe()["mass"] == pytest.approx(before, rel=1e-13)
    assert sim.state["cells"].min() >= 0


@pytest.mark.parametrize("form", ["roll", "padded"])
def test_its_form_has_the_bits_of_the_step(form):
    model = FlowLenia(2, window=1)
    sims = [simulation(model, form=each) for each in (None, form)]
    assert sims[0].form == "flow_sums"
    for sim in sims:
        sim.run(4)
    assert torch.equal(sims[0].state["cells"], sims[1].state["cells"])


def test_without_flow_matter_stays_where_it_is():
    """A square no wider than a cell, on flat ground."""
    model = FlowLenia(3, spread=0.5)
    flat = torch.full((24, 32), 0.4, dtype=torch.float64)
    sim = simulation(model, state={"cells": flat})
    sim.run(5)
    torch.testing.assert_close(sim.state["cells"], flat)


def test_crowded_matter_spreads():
    cells = torch.zeros(24, 32)
    cells[12, 16] = 4.0
    sim = simulation(FlowLenia(3), state={"cells": cells})
    sim.run(20)
    assert sim.state["cells"].max() < 1


def test_matter_moves_no_further_than_the_window():
    cells = torch.zeros(24, 32)
    cells[10:14, 14:18] = torch.rand(4, 4) * 3
    sim = simulation(FlowLenia(3, window=2, rate=1.0), state={"cells": cells})
    sim.step()
    reached = (sim.state["cells"] != 0).nonzero()
    assert reached[:, 0].min() >= 8 and reached[:, 0].max() <= 15
    assert reached[:, 1].min() >= 12 and reached[:, 1].max() <= 19


@pytest.mark.parametrize(
    ("wrong", "said"), [({"kernel": 1}, "kernel"), ({"window": 0}, "window")]
)
def test_a_neighbourhood_that_is_too_small_is_refused(wrong, said):
    with pytest.raises(ArgumentError, match=f"`{said}`"):
        FlowLenia(**wrong)
