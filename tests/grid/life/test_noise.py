"""Noise: how often cells flip, what their flips depend on, and that runs can be repeated."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.life import Life, Life3D
from hotgrid.grid.model import next_random, random_numbers

from .life_twin import random_cells, twin

# Nothing is born and everything stays, so that only noise changes a cell.
STILL = {
    2: lambda noise: Life("B/S012345678", noise=noise),
    3: lambda noise: Life3D("B/S0..26", noise=noise),
}
FORMS = ["roll", "padded"]


def run(model, size, steps, **options):
    sim = Simulation(model, size, **{"compiled": False, **options})
    sim.run(steps, progress=False)
    return sim


def flips_of(noise, size, steps, **options):
    """Which cells flipped in which step, bool `[steps, *space]`."""
    model = STILL[len(size)](noise)
    sim = Simulation(model, size, compiled=False, **options)
    seen = [sim.state["cells"]]
    for _ in range(steps):
        sim.step()
        seen.append(sim.state["cells"])
    return torch.stack(seen).diff(dim=0) != 0


def assert_share(events, probability):
    """As many as independent events of this probability give, within five sigma."""
    n = events.numel()
    sigma = math.sqrt(n * probability * (1 - probability))
    assert abs(events.sum().item() - n * probability) < 5 * sigma


@pytest.mark.parametrize("noise", [0.002, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("size", [(128, 128), (16, 32, 32)])
def test_as_many_cells_flip_as_asked(noise, size):
    flips = flips_of(noise, size, 40)
    assert_share(flips, noise)
    assert_share(flips[0], noise)
    # No cell more than another, or the cells would differ more than chance lets them.
    per_cell = flips.double().mean(0)
    expected = noise * (1 - noise) / len(flips)
    assert per_cell.var().item() == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("noise", [0.05, 0.5])
def test_flips_of_neighbours_and_of_later_steps_are_independent(noise):
    flips = flips_of(noise, (128, 128), 40)
    for offset in [(0, 1), (1, 0), (1, 1), (0, 32)]:
        assert_share(flips & flips.roll(offset, (1, 2)), noise**2)
    for lag in (1, 2, 3, 7, 20):
        assert_share(flips[lag:] & flips[:-lag], noise**2)
    assert_share(flips[2:] & flips[1:-1] & flips[:-2], noise**3)


@settings(max_examples=30)
@given(
    topology=st.sampled_from(["torus", "plane"]),
    columns=st.integers(1, 9) | st.just(32),
    noise=st.floats(0.01, 1),
    form=st.sampled_from(FORMS),
    seed=st.integers(0, 2**31),
)
def test_a_noisy_step_is_the_rule_and_then_the_flips(topology, columns, noise, form, seed):
    cells = random_cells(seed, 6, columns)
    model = Life(topology=topology, noise=noise)
    options = {"form": form, "compiled": False, "seed": seed}
    sim = Simulation(model, (6, columns), state={"cells": cells}, **options)
    expected, random = cells.numpy(), sim.state["random"].numpy().view(np.uint32)
    for _ in range(5):
        random = random ^ (random << np.uint32(13))
        random = random ^ (random >> np.uint32(17))
        random = random ^ (random << np.uint32(5))
        # Signed numbers in order are unsigned ones with the highest bit turned over.
        low = (random ^ np.uint32(1 << 31)).astype(np.float64) < round(noise * 2**32)
        expected = twin(expected, model.rule, topology) ^ low.astype(np.uint8)
    sim.run(5, progress=False)
    np.testing.assert_array_equal(sim.state["cells"], expected)
    np.testing.assert_array_equal(sim.state["random"].numpy().view(np.uint32), random)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("model", "size"),
    [(Life(noise=0.01, age=True), (24, 32)), (Life3D(noise=0.01), (8, 9, 10))],
)
def test_every_form_gives_the_same_run_and_the_seed_decides_it(model, size, form):
    first = run(model, size, 20, seed=3, form="roll").state
    again = run(model, size, 20, seed=3, form=form).state
    other = run(model, size, 20, seed=4, form=form).state
    for name, x in first.items():
        assert torch.equal(x, again[name])
        assert not torch.equal(x, other[name])


@pytest.mark.parametrize("form", FORMS)
def test_a_saved_run_goes_on_with_the_same_flips(form, tmp_path):
    model = Life(pattern="acorn", noise=0.01)
    sim = run(model, (32, 64), 10, seed=1, form=form)
    path = sim.save(tmp_path / "state")
    sim.run(10, progress=False)
    again = run(model, (32, 64), 3, seed=2, form=form)
    again.load(path)
    again.run(10, progress=False)
    assert torch.equal(again.state["cells"], sim.state["cells"])
    quiet = Simulation(Life(pattern="acorn"), (32, 64), compiled=False)
    with pytest.raises(ArgumentError, match="its model: "):
        quiet.load(path)


def test_runs_of_a_batch_flip_different_cells():
    flips = flips_of(0.1, (32, 32), 5, batch=2)
    assert_share(flips[:, 0] & flips[:, 1], 0.01)


def test_age_starts_again_where_noise_killed():
    cells = random_cells(6, 32, 32)
    sim = Simulation(
        Life(age=True, noise=0.05), (32, 32), state={"cells": cells}, compiled=False
    )
    expected = torch.zeros(32, 32, dtype=torch.int16)
    for _ in range(6):
        sim.step()
        expected = (expected + 1) * sim.state["cells"]
        assert torch.equal(sim.view("age"), expected)


def test_certain_noise_flips_all_and_none_keeps_no_random_numbers():
    assert flips_of(1.0, (16, 16), 3).all()
    for noise in (0, 2**-40):
        assert [field.name for field in Life(noise=noise).fields] == ["cells"]
        assert [field.name for field in Life3D(noise=noise).fields] == ["cells"]


def test_no_random_number_is_zero(monkeypatch):
    """Zero would stay zero for ever."""
    assert next_random(torch.zeros(1, dtype=torch.int32)).item() == 0
    drawn = [-(2**31), -1, 0, 2**31 - 2]
    numbers = torch.tensor(drawn, dtype=torch.int32)
    monkeypatch.setattr(torch, "randint", lambda *_, **__: numbers)
    kept = random_numbers((4,), torch.Generator()).tolist()
    assert kept == [-(2**31), -1, 1, 2**31 - 1]


@pytest.mark.parametrize("family", [Life, Life3D])
@pytest.mark.parametrize(("noise", "text"), [(1.5, "1.5"), (-0.1, "-0.1"), (True, "a number")])
def test_noise_is_a_probability(family, noise, text):
    with pytest.raises(ArgumentError, match=f"`noise` must be .*{text}"):
        family(noise=noise)
