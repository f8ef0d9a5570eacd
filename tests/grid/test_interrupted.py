"""The state after a run that is interrupted, or that diverges between two checks."""

import pytest
import torch

from hotgrid.errors import UnstableError
from hotgrid.grid import Field, Model, Simulation, pde
from hotgrid.grid.life import Life


@pytest.mark.parametrize("form", ["roll", "padded", "strips"])
def test_an_interrupt_leaves_state_and_step_count_together(form: str, monkeypatch):
    sim = Simulation(pde.Heat(), size=(16, 16), compiled=False, form=form)
    sim.run(20, progress=False)
    run, calls = sim._form.run, []

    def cut_off(steps: int) -> None:
        calls.append(steps)
        run(max(1, steps // 2))
        raise KeyboardInterrupt

    monkeypatch.setattr(sim._form, "run", cut_off)
    with pytest.raises(KeyboardInterrupt):
        sim.run(100, progress=False)
    monkeypatch.undo()
    whole = Simulation(pde.Heat(), size=(16, 16), compiled=False, form=form)
    whole.run(sim.step_count, progress=False)
    assert calls
    assert torch.equal(sim.state["u"], whole.state["u"])


class Doubling(Model):
    fields = (Field("u"),)

    def initial(self, size, generator):
        return {"u": torch.ones(size)}

    def step(self, state, inputs, params):
        return {"u": state["u"][0, 0] * 1e4}


def test_callbacks_never_see_what_is_not_finite():
    sim = Simulation(Doubling(), size=(4, 4), compiled=False)
    seen = []
    sim.every(3, lambda sim: seen.append(bool(sim.state["u"].isfinite().all())))
    with pytest.raises(UnstableError, match="after step 10"):
        sim.run(1000, progress=False)
    assert seen == [True] * 3
    assert sim.step_count == 9


@pytest.mark.parametrize(
    ("model", "form", "storage"),
    [
        (Life(), "native", None),
        (pde.Heat(), "padded", None),
        (pde.Heat(), "padded", torch.bfloat16),
        (pde.Heat(), "padded", torch.float64),
    ],
)
def test_an_interrupt_cannot_fall_into_a_call_of_the_core(model, form, storage, monkeypatch):
    """What is raised while the core takes a tensor is lost, so it takes none in a run."""
    size = (32, 64)
    sim = Simulation(model, size=size, form=form, storage=storage, compiled=False, device="cpu")
    taken = []
    plain = torch.Tensor.__dlpack__

    def take(self: torch.Tensor, **options: object) -> object:
        taken.append(self.shape)
        return plain(self, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(torch.Tensor, "__dlpack__", take)
    sim.run(20, progress=False)
    assert taken == []
