"""Looking at a state: what is shared is computed once, and what is large goes in parts."""

from collections import Counter
from typing import Any

import pytest
import torch

from hotgrid.grid import Simulation, lbm, life, pde, total
from hotgrid.grid.lbm import _moments as moments, _observed
from hotgrid.grid.life._words import _packed


def karman(**options: Any) -> Simulation:
    return Simulation(lbm.Karman(), size=(48, 64), compiled=False, device="cpu", **options)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often moments and forces were computed."""
    seen: Counter[str] = Counter()

    def counted(name: str, function: Any) -> Any:
        def call(*args: Any) -> Any:
            seen[name] += 1
            return function(*args)

        return call

    monkeypatch.setattr(_observed, "moments", counted("moments", _observed.moments))
    force = counted("force", lbm.HalfWay.force)
    monkeypatch.setattr(lbm.HalfWay, "force", force)
    return seen


def test_one_look_computes_moments_and_forces_once(calls: Counter[str]):
    sim = karman()
    found = sim.observe()
    assert {"mass", "enstrophy", "lift_coefficient"} <= found.keys()
    assert calls == {"moments": 1, "force": 1}
    karman(batch=3).observe()
    assert calls == {"moments": 4, "force": 4}


def test_the_next_look_sees_the_next_state(calls: Counter[str]):
    sim = karman()
    before = sim.observe()
    sim.run(3)
    model, state = sim.model, sim.state
    alone = {name: each(state).item() for name, each in model.observables().items()}
    assert sim.observe() == alone != before
    assert calls["moments"] > 3


def test_views_of_a_batch_are_those_of_its_runs():
    both = torch.rand(2, 8, 8)
    sim = Simulation(pde.Heat(), size=(8, 8), batch=2, state={"u": both}, compiled=False)
    assert torch.equal(sim.view("u"), both)


def test_the_length_of_a_vector_is_its_norm():
    parts = list(torch.randn(3, 5, 7))
    torch.testing.assert_close(_observed._length(parts), torch.stack(parts).norm(dim=0))


@pytest.mark.parametrize("shape", [(40,), (3, 40), (40, 3), (1, 5, 1, 9), (2, 3, 4, 5)])
def test_sums_in_parts_are_the_sum(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch):
    x = torch.randint(-9, 9, shape, dtype=torch.int16)
    monkeypatch.setattr("hotgrid.grid.model._shown._AT_ONCE", 7)
    found = total(x)
    assert found.dtype == torch.float64
    assert found == x.sum()
    assert total(x.transpose(0, -1)) == x.sum()


def test_cells_are_packed_in_parts_as_at_once(monkeypatch: pytest.MonkeyPatch):
    cells = torch.randint(0, 3, (2, 1, 11, 96), dtype=torch.uint8)
    words = _packed.packed(cells)
    monkeypatch.setattr(_packed, "_AT_ONCE", 200)
    assert torch.equal(_packed.packed(cells), words)
    assert torch.equal(_packed.unpacked(words), (cells != 0).to(torch.uint8))
    assert words.shape == (2, 1, 11, 3)


def test_populations_begin_in_slabs_as_at_once(monkeypatch: pytest.MonkeyPatch):
    density = 1 + 0.1 * torch.rand(11, 6, dtype=torch.float64)
    velocity = [0.1 * torch.rand(11, 6, dtype=torch.float64) for _ in range(2)]
    whole = lbm.at_equilibrium(lbm.D2Q9, density, velocity)
    monkeypatch.setattr(moments, "_AT_ONCE", 25)
    assert torch.equal(lbm.at_equilibrium(lbm.D2Q9, density, velocity), whole)


def test_nothing_is_made_that_was_given(monkeypatch: pytest.MonkeyPatch):
    made = []
    initial = life.Life.initial
    monkeypatch.setattr(
        life.Life, "initial", lambda self, *a: made.append(self) or initial(self, *a)
    )
    size = (8, 32)
    given = Simulation(
        life.Life(), size=size, state={"cells": torch.ones(size)}, compiled=False, device="cpu"
    )
    given.reset()
    assert not made
    assert given.cells().all()
    Simulation(life.Life(), size=size, batch=3, compiled=False, device="cpu")
    assert len(made) == 3
