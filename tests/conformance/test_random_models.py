"""Random models in every form, batch and mesh, compared with a slow evaluation bit by bit."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from hotgrid.cluster import Communicator, Mesh, run_ranks
from hotgrid.grid import Simulation
from hotgrid.grid.forms._form import planes_of
from hotgrid.grid.forms._roll import planes_apart, shifting
from hotgrid.grid.forms._two_buffers import writing_step

from .random_models import BYTE, RandomModel, Recipe, recipe, slow_steps

MESHES = {1: ["2"], 2: ["2x1", "1x2", "2x2"], 3: ["2x1x1", "1x2x2"]}
STEPS = 3


def assert_bits(sim: Simulation, expected: list[np.ndarray], run: int | None = None) -> None:
    for name, x in zip(sim.state, expected, strict=True):
        found = sim.state[name] if run is None else sim.state[name][run]
        assert np.array_equal(found.numpy(), x), f"`{name}` differs"


def simulated(made: Recipe, **options) -> Simulation:
    sim = Simulation(RandomModel(made), device="cpu", **{"compiled": False, **options})
    sim.run(STEPS, progress=False)
    return sim


def check_plainly(seed: int) -> None:
    made = recipe(seed)
    expected = slow_steps(made, STEPS)
    for form in ("roll", "padded"):
        assert_bits(simulated(made, form=form), expected)
    check_batch(made, expected, "roll" if seed % 2 else "padded")
    check_mesh(made, seed, expected)


def check_batch(made: Recipe, expected: list[np.ndarray], form: str, **options) -> None:
    starts = [RandomModel(made).initial(made.size, torch.Generator().manual_seed(s))
              for s in (0, 5)]  # fmt: skip
    state = {name: torch.stack([start[name] for start in starts]) for name in starts[0]}
    both = simulated(made, form=form, batch=2, state=state, **options)
    assert_bits(both, expected, 0)
    assert_bits(both, slow_steps(made, STEPS, seed=5), 1)


def check_mesh(made: Recipe, seed: int, expected: list[np.ndarray], **options) -> None:
    mesh = random.Random(seed).choice(MESHES[len(made.size)])
    overlap = seed % 3 == 0

    def part(communicator: Communicator) -> list[np.ndarray]:
        sim = simulated(
            made, mesh=mesh, depth=1, overlap=overlap, communicator=communicator, **options
        )
        return [x.numpy() for x in sim.state.values()]

    for found in run_ranks(Mesh(mesh).ranks, part):
        for x, right in zip(found, expected, strict=True):
            assert np.array_equal(x, right)


@pytest.mark.parametrize("seed", range(50))
def test_a_random_model_is_the_same_in_every_form_batch_and_mesh(seed: int):
    check_plainly(seed)


@pytest.mark.compiles
@pytest.mark.parametrize("seed", [8])
def test_compiled_it_is_the_same(seed: int):
    check_compiled(seed)


def check_compiled(seed: int) -> None:
    made = recipe(seed)
    expected = slow_steps(made, STEPS)
    for form in ("roll", "padded"):
        assert_bits(simulated(made, form=form, compiled=True), expected)
    check_batch(made, expected, "padded", compiled=True)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(50, 300))
def test_some_hundred_more_are_the_same(seed: int):
    check_plainly(seed)


@pytest.mark.long
@pytest.mark.compiles
@pytest.mark.parametrize("seed", [3, 17, 500, 501])
def test_some_more_are_the_same_when_compiled(seed: int):
    check_compiled(seed)


def check_planes(seed: int) -> bool:
    """Plane by plane, as on a GPU, a step makes the same bits. Returns whether it stacks."""
    made = recipe(seed)
    batch = 2 if seed % 3 == 0 else None
    sim = Simulation(RandomModel(made), device="cpu", compiled=False, batch=batch, form="roll")
    setting = replace(sim._setting, compiled=True)
    kinds = (*setting.model.fields, *setting.model.inputs)
    step = writing_step(setting, [{kind.name: shifting(kind) for kind in kinds}])
    apart = planes_apart(setting, step)
    if apart is None:
        return False
    found, fields = [], list(sim._form.read().values())
    for call in (step, apart):
        after = [torch.zeros_like(x) for x in fields]
        outs = [[planes_of(x, setting.rank) for x in after]]
        fixed = [setting.inputs[known.name] for known in setting.model.inputs]
        call(fields, outs, fixed, list(setting.params.values()))
        found.append(after)
    assert all(map(torch.equal, *found))
    return True


def test_plane_by_plane_a_random_model_is_the_same():
    assert sum(map(check_planes, range(8))) == 4


@pytest.mark.long
def test_plane_by_plane_many_random_models_are_the_same():
    assert sum(map(check_planes, range(8, 60))) > 30


def test_the_generator_makes_models_of_every_kind():
    recipes = [recipe(seed) for seed in range(50)]
    assert {len(r.size) for r in recipes} == {1, 2, 3}
    assert {r.radius for r in recipes} == {1, 2, 3}
    assert {f.dtype for r in recipes for f in r.fields} == {torch.float32, BYTE}
    boundaries = {f.boundary for r in recipes for f in r.fields}
    assert {"periodic", 0.0, 1.0, "neumann", "mirror"} < boundaries
    assert any(isinstance(b, tuple) and "periodic" in b for b in boundaries)
    assert any(isinstance(b, tuple) and (1.0, "mirror") in b for b in boundaries)
    assert any(len(r.fields) > 1 and r.inputs for r in recipes)
    moved = sum(
        not all(
            np.array_equal(a, b)
            for a, b in zip(slow_steps(r, 1), slow_steps(r, 2), strict=True)
        )
        for r in recipes
    )
    assert moved > 40  # most of them do something
