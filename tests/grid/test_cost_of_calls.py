"""What a run does beside its steps, counted in operations of torch."""

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hotgrid.errors import UnstableError
from hotgrid.grid import Field, Model, Simulation, pde


class Counted(TorchDispatchMode):
    """Counts operations by name."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.found[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def beside_steps(sim: Simulation, steps: list[int], work: Callable[[], object]) -> dict:
    """The operations of some work, without those of steps made several at a time."""
    with Counted() as alone:
        for n in steps:
            sim._form.run(n)
    with Counted() as whole:
        work()
    return dict(whole.found - alone.found)


def heat(form: str) -> Simulation:
    sim = Simulation(pde.Heat(), size=(8, 8), device="cpu", compiled=False, form=form)
    sim.run(2, progress=False)
    return sim


# One sum and one read for the check at the end.
CHECK = {"sum": 1, "_local_scalar_dense": 1}


@pytest.mark.parametrize(("form", "copies"), [("roll", {}), ("padded", {"clone": 1})])
def test_a_run_copies_the_state_at_most_once_and_checks_it_once(form: str, copies: dict):
    sim = heat(form)
    sim._form.depth = 1  # a margin that is refreshed before every step, always alike
    found = beside_steps(sim, [10], lambda: sim.run(10, progress=False))
    assert found == {**CHECK, **copies}


def test_a_callback_after_every_step_costs_a_check_and_a_copy():
    sim = heat("padded")
    sim._form.depth = 1
    sim.every(1, lambda sim: None)
    found = beside_steps(sim, [1] * 6, lambda: sim.run(6, progress=False))
    # The last state is not copied: no step follows.
    assert found == {"sum": 6, "_local_scalar_dense": 6, "clone": 1, "copy_": 5}


@pytest.mark.parametrize(
    ("storage", "value"),
    [(torch.float32, 3e38), (torch.float16, 6e4), (torch.float64, 1.5e308)],
)
def test_large_numbers_whose_sum_overflows_are_finite(storage: torch.dtype, value: float):
    sim = Simulation(
        Still(), size=(8, 8), device="cpu", compiled=False, dtype=storage, storage=storage
    )
    sim.state = {"u": torch.full((8, 8), value, dtype=storage)}
    sim.run(2, progress=False)
    assert sim.step_count == 2


class Still(Model):
    fields = (Field("u"),)

    def step(self, state, inputs, params):
        return {"u": state["u"].here}


class Growing(Model):
    fields = (Field("u"),)

    def initial(self, size, generator):
        return {"u": torch.ones(size)}

    def step(self, state, inputs, params):
        return {"u": state["u"].here * 1e6}


@pytest.mark.parametrize("form", ["roll", "padded"])
def test_after_several_runs_the_last_finite_state_is_held(form: str):
    sim = Simulation(Growing(), size=(4, 4), device="cpu", compiled=False, form=form)
    sim.run(2, progress=False)
    sim.run(2, progress=False)
    with pytest.raises(UnstableError, match="after step 7"):
        sim.run(9, progress=False)
    assert sim.step_count == 6
    assert sim.state["u"].allclose(torch.tensor(1e36))


@pytest.mark.parametrize("form", ["roll", "padded"])
def test_an_interrupt_goes_back_to_the_last_callback(form: str, monkeypatch):
    sim = heat(form)
    seen = []
    sim.every(4, lambda sim: seen.append(sim.state["u"]))
    sim.run(6, progress=False)
    run = sim._form.run

    def cut_off(steps: int) -> None:
        run(1)
        raise KeyboardInterrupt

    monkeypatch.setattr(sim._form, "run", cut_off)
    before = sim.state["u"]
    with pytest.raises(KeyboardInterrupt):
        sim.run(10, progress=False)
    assert sim.step_count == 8
    assert torch.equal(sim.state["u"], before)
    assert torch.equal(sim.state["u"], seen[-1])
