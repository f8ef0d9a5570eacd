"""Runs that blow up: the step, the cell, the cause, and the last good state kept."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from hotgrid.errors import UnstableError
from hotgrid.grid import Field, Model, Parameter, Simulation

SIZE = (6, 7)


class Explosive(Model):
    """Heat without bounds on its rate; it counts its steps as well."""

    fields = (Field("count", dtype=torch.int32), Field("u"))
    rate = Parameter(3.0)

    def step(self, state: Mapping[str, Any], inputs: Mapping[str, Any], params: Any):
        u = state["u"]
        around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
        grown = u[0, 0] + params["rate"] * (around - 4 * u[0, 0])
        return {"count": state["count"][0, 0] + 1, "u": grown}

    def cause(self, state: dict[str, Tensor]) -> str:
        return f"the rate is too high; the largest number was {state['u'].abs().max():.2g}"


def spike() -> Tensor:
    u = torch.zeros(SIZE)
    u[2, 3] = 1
    return u


def exploded() -> tuple[int, tuple[int, ...], np.ndarray]:
    """By numpy: the first step that is not finite, its first such cell, the state before."""
    u, step, rate = spike().numpy(), 0, np.float32(3)
    with np.errstate(over="ignore", invalid="ignore"):
        while True:
            around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
            new, step = u + rate * (around - 4 * u), step + 1
            if not np.isfinite(new).all():
                cell = tuple(int(i) for i in np.argwhere(~np.isfinite(new))[0])
                return step, cell, u
            u = new


def simulation(**options: Any) -> Simulation:
    options = {"state": {"u": spike()}, "compiled": False, "device": "cpu", **options}
    return Simulation(Explosive(), size=SIZE, **options)


@pytest.mark.parametrize("form", ["roll", "padded"])
@pytest.mark.parametrize("check_every", [1, 7, 1000])
def test_it_stops_at_the_step_and_the_cell_and_keeps_the_state_before(
    form: str, check_every: int
):
    step, cell, before = exploded()
    assert step > 8
    sim = simulation(form=form)
    text = (
        f"the field `u` of Explosive is no longer finite after step {step}, first at cell "
        f"{cell}; the simulation holds the state of step {step - 1}. Likely cause: the rate "
        f"is too high; the largest number was {np.abs(before).max():.2g}"
    )
    with pytest.raises(UnstableError, match=re.escape(text)) as caught:
        sim.run(200, check_every=check_every)
    found = caught.value
    assert (found.step, found.cell) == (step, cell)
    assert found.cause.startswith("the rate is too high; the largest number was")
    assert sim.step_count == step - 1
    np.testing.assert_array_equal(sim.state["u"].numpy(), before)
    assert sim.state["count"].eq(step - 1).all()
    with pytest.raises(UnstableError, match=f"after step {step}, first at cell"):
        sim.run(1)


def test_it_is_seen_even_when_the_run_ends_before_the_next_look():
    step, _, _ = exploded()
    sim = simulation()
    sim.run(step - 1)
    with pytest.raises(UnstableError, match=f"after step {step},"):
        sim.run(1)


def test_one_bad_run_of_a_batch_is_enough():
    step, cell, _ = exploded()
    state = torch.stack([torch.zeros(SIZE), spike()])
    sim = simulation(state={"u": state}, batch=2)
    with pytest.raises(
        UnstableError, match=re.escape(f"after step {step}, first at cell {cell}")
    ):
        sim.run(200)


def test_what_a_callback_writes_is_not_forgotten():
    """The look back starts from what was written, not from before."""
    step, cell, _ = exploded()
    sim = simulation(state={"u": torch.zeros(SIZE)})
    sim.every(10, lambda s: s.step_count == 10 and setattr(s, "state", {"u": spike()}))
    text = re.escape(f"after step {10 + step}, first at cell {cell}")
    with pytest.raises(UnstableError, match=text):
        sim.run(500)
    assert sim.step_count == 10 + step - 1


def test_a_state_that_was_bad_to_begin_with_is_distinguished():
    u = spike()
    u[4, 1] = torch.nan
    with pytest.raises(
        UnstableError, match=r"was not finite .* step 0, first at cell \(4, 1\)"
    ) as caught:
        simulation(state={"u": u}).run(5)
    assert (caught.value.step, caught.value.cell) == (0, (4, 1))
    assert "began with" in caught.value.cause


def test_a_quiet_run_is_not_changed():
    sim = simulation(state={"u": torch.ones(SIZE)})
    sim.run(100, check_every=3)
    assert sim.step_count == 100
    assert sim.state["u"].eq(1).all()


class Still(Model):
    fields = (Field("u"),)

    def step(self, state: Mapping[str, Any], inputs: Mapping[str, Any], params: Any):
        return {"u": state["u"][0, 0] * 1.0}


def test_large_numbers_whose_sum_overflows_are_finite():
    largest = torch.full(SIZE, 1.5e308, dtype=torch.float64)
    options = {"dtype": torch.float64, "compiled": False, "device": "cpu"}
    sim = Simulation(Still(), size=SIZE, state={"u": largest}, **options)
    sim.run(3, progress=False)
    assert torch.equal(sim.state["u"], largest)
    largest[1, 2] = -torch.inf
    largest[3, 4] = torch.inf
    bad = Simulation(Still(), size=SIZE, state={"u": largest}, **options)
    with pytest.raises(UnstableError, match=r"first at cell \(1, 2\)"):
        bad.run(3, progress=False)
