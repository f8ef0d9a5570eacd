import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.life import Life, Life3D, Rule, WindowRule, pattern
from hotgrid.grid.life._words import PackedCounts, PackedLife, packed, unpacked

from .life_twin import after, random_cells, rules, twin

few = settings(max_examples=40)
seeds = st.integers(0, 2**31)
topologies = st.sampled_from(["torus", "plane"])


@few
@given(
    rule=rules() | rules("von_neumann"),
    topology=topologies,
    rows=st.integers(1, 9),
    columns=st.integers(1, 9) | st.sampled_from([32, 64]),
    form=st.sampled_from(["roll", "padded"]),
    seed=seeds,
)
def test_every_rule_on_every_grid_is_the_definition(rule, topology, rows, columns, form, seed):
    cells = random_cells(seed, rows, columns)
    expected = cells.numpy()
    for _ in range(3):
        expected = twin(expected, rule, topology)
    found = after(Life(rule, topology=topology), cells, 3, form=form)
    np.testing.assert_array_equal(found, expected)


@few
@given(rule=rules(), topology=topologies, words=st.integers(1, 3), seed=seeds)
def test_the_packed_twin_gives_the_same_cells(rule, topology, words, seed):
    cells = random_cells(seed, 6, 32 * words)
    fast, slow = (Life(rule, topology=topology, packed=choice) for choice in (True, False))
    assert isinstance(fast.fitted((6, 32 * words)), PackedLife)
    assert slow.fitted((6, 32 * words)) is slow
    assert torch.equal(after(fast, cells, 4), after(slow, cells, 4))


@few
@given(
    rule=rules(rank=3) | rules("von_neumann", rank=3),
    topology=topologies,
    size=st.tuples(*[st.integers(1, 5)] * 3),
    seed=seeds,
)
def test_three_dims_are_the_definition(rule, topology, size, seed):
    cells = random_cells(seed, *size)
    expected = twin(twin(cells.numpy(), rule, topology), rule, topology)
    np.testing.assert_array_equal(after(Life3D(rule, topology=topology), cells, 2), expected)


@few
@given(
    rule=rules(rank=3) | rules("von_neumann", rank=3),
    topology=topologies,
    size=st.tuples(st.integers(1, 5), st.integers(1, 5), st.sampled_from([32, 64])),
    seed=seeds,
)
def test_words_in_three_dims_are_the_definition(rule, topology, size, seed):
    cells = random_cells(seed, *size)
    expected = twin(twin(cells.numpy(), rule, topology), rule, topology)
    model = Life3D(rule, topology=topology, packed=True)
    assert isinstance(model.fitted(size), PackedCounts)
    np.testing.assert_array_equal(after(model, cells, 2), expected)


@few
@given(rule=rules(), topology=topologies, seed=seeds)
def test_a_function_over_windows_says_the_same(rule, topology, seed):
    def over_windows(windows):
        cell = windows[..., 1, 1]
        count = windows.sum((-2, -1)) - cell
        alive = torch.zeros_like(cell, dtype=torch.bool)
        for n in range(9):
            alive |= (count == n) & (cell == 0 if n in rule.birth else False)
            alive |= (count == n) & (cell == 1 if n in rule.survival else False)
        return alive

    cells = random_cells(seed, 5, 7)
    slow = WindowRule(over_windows, topology=topology)
    assert torch.equal(after(slow, cells, 3), after(Life(rule, topology=topology), cells, 3))


def test_windows_serve_one_dim_and_a_wider_reach():
    """Rule 90 two cells away: from one cell, Pascal's triangle modulo two."""
    cells = torch.zeros(64)
    cells[32] = 1
    found = after(WindowRule(lambda w: w[..., 0] ^ w[..., 4], radius=2), cells, 8)
    assert found.nonzero().flatten().tolist() == [16, 48]


@given(words=st.integers(1, 4), seed=seeds)
def test_packing_and_unpacking_are_inverse(words, seed):
    cells = random_cells(seed, 2, 3, 32 * words)
    kept = packed(cells)
    assert (kept.dtype, kept.shape) == (torch.int32, (2, 3, words))
    assert torch.equal(unpacked(kept), cells)
    column = seed % (32 * words)
    bit = (kept[1, 2, column // 32].item() >> column % 32) & 1
    assert bit == cells[1, 2, column].item()


def test_packing_takes_any_type_and_any_layout():
    cells = random_cells(1, 64, 32)
    assert torch.equal(packed(cells.bool()), packed(cells))
    assert torch.equal(packed(cells * -2.5), packed(cells))
    assert torch.equal(unpacked(packed(cells.t())), cells.t())
    assert torch.equal(unpacked(packed(cells).t().contiguous().t()), cells)


@pytest.mark.parametrize("packed", [False, True])
def test_a_simulation_shows_cells_however_they_are_kept(packed):
    given = random_cells(2, 8, 64)
    sim = Simulation(
        Life(packed=packed), (8, 64), state={"cells": given.bool()}, compiled=False
    )
    state = sim.state
    assert state["cells"].dtype == torch.uint8
    assert torch.equal(state["cells"], given)
    assert torch.equal(sim.view("alive"), given)
    assert torch.equal(sim.view("cells"), given)
    assert torch.equal(Life(packed=packed).cells(state), given)
    assert sim.observe() == {"population": given.sum().item()}
    assert sim.size == (8, 64)
    assert sim.bytes_per_step() == 2 * 8 * 64 // (8 if packed else 1)
    assert sim.run(1, progress=False).cells == 8 * 64
    sim.state = {"cells": given * 7}
    assert torch.equal(sim.state["cells"], given)


@pytest.mark.parametrize("packed", [False, True])
def test_a_batch_is_many_runs_side_by_side(packed):
    given = random_cells(3, 5, 8, 32)
    model = Life(packed=packed)
    sim = Simulation(model, (8, 32), state={"cells": given}, batch=5, compiled=False)
    sim.run(6, progress=False)
    alone = torch.stack([after(model, cells, 6) for cells in given])
    assert torch.equal(sim.state["cells"], alone)
    assert sim.observe()["population"] == alone.sum((1, 2)).tolist()


@pytest.mark.parametrize("packed", [False, True])
def test_save_and_load_go_on_where_they_left(packed, tmp_path):
    sim = Simulation(Life(packed=packed), (8, 32), seed=4, compiled=False)
    sim.run(3, progress=False)
    path = sim.save(tmp_path / "state")
    sim.run(5, progress=False)
    again = Simulation(Life(packed=packed), (8, 32), seed=5, compiled=False)
    again.load(path)
    again.run(5, progress=False)
    assert torch.equal(again.state["cells"], sim.state["cells"])
    other = Simulation(Life(packed=not packed), (8, 32), compiled=False)
    with pytest.raises(ArgumentError, match="its model: "):
        other.load(path)


def test_a_start_is_random_by_the_seed_and_as_dense_as_asked():
    def start(seed, **options):
        return Simulation(Life(**options), (64, 64), seed=seed, compiled=False).state["cells"]

    assert torch.equal(start(1), start(1))
    assert not torch.equal(start(1), start(2))
    assert start(1, density=0).sum() == 0
    assert start(1, density=1).sum() == 64 * 64
    assert 0.2 < start(1, density=0.25).float().mean() < 0.3


def test_a_start_may_be_a_pattern_with_its_rule():
    by_name = Life(pattern="replicator")
    assert str(by_name.rule) == "B36/S23"
    assert str(Life("B3/S23", pattern="replicator").rule) == "B3/S23"
    for model in (by_name, Life(pattern=pattern("replicator"))):
        sim = Simulation(model, (32, 32), compiled=False)
        assert torch.equal(sim.state["cells"], pattern("replicator").placed((32, 32)))


@pytest.mark.parametrize("form", ["roll", "padded"])
def test_age_counts_the_steps_at_whose_end_a_cell_was_alive(form):
    cells = random_cells(6, 12, 32)
    model = Life(age=True)
    sim = Simulation(model, (12, 32), state={"cells": cells}, compiled=False, form=form)
    expected = torch.zeros(12, 32, dtype=torch.int16)
    assert torch.equal(sim.view("age"), expected)
    for _ in range(5):
        cells = torch.as_tensor(twin(cells.numpy(), model.rule, "torus"))
        expected = (expected + 1) * cells
        sim.step()
        assert torch.equal(sim.state["cells"], cells)
        assert torch.equal(sim.view("age"), expected)


def test_age_stops_at_the_largest_number():
    block = pattern("block").placed((6, 6))
    start = {"cells": block, "age": block.to(torch.int16) * 32766}
    sim = Simulation(Life(age=True), (6, 6), state=start, compiled=False)
    sim.run(3, progress=False)
    assert torch.equal(sim.view("age"), block.to(torch.int16) * 32767)


@pytest.mark.parametrize(
    ("options", "size", "reason"),
    [
        ({}, (8, 33), "33 columns are not a multiple of 32"),
        ({"age": True}, (8, 32), "ages do not fit into bits"),
        ({"noise": 0.1}, (8, 32), "random numbers do not fit into bits"),
    ],
)
def test_what_cannot_be_packed_is_kept_in_bytes_or_refused(options, size, reason):
    model = Life(**options)
    assert model.fitted(size) is model
    with pytest.raises(ArgumentError, match=f"`packed` is True, but .*{reason}"):
        Simulation(Life(packed=True, **options), size, compiled=False)


def test_a_cube_that_cannot_be_packed_is_kept_in_bytes_or_refused():
    for options, size in (({}, (4, 4, 33)), ({"noise": 0.1}, (4, 4, 32))):
        model = Life3D(**options)
        assert model.fitted(size) is model
        with pytest.raises(ArgumentError, match="`packed` is True, but"):
            Life3D(packed=True, **options).fitted(size)
    assert isinstance(Life3D(packed=False).fitted((4, 4, 32)), Life3D)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Life(topology="tours"), "did you mean `torus`"),  # pyright: ignore[reportArgumentType]
        (lambda: Life(neighbourhood="more"), "did you mean `moore`"),  # pyright: ignore[reportArgumentType]
        (lambda: Life(density=1.5), "from 0 to 1, got 1.5"),
        (lambda: Life(density=-0.1), "from 0 to 1, got -0.1"),
        (lambda: Life(pattern="glidr"), "did you mean `glider`"),
        (lambda: Life("B3/S23V", neighbourhood="moore"), "ends in V"),
        (lambda: Life(Rule([4], [5], rank=3)), "26 neighbours .* a rule of 2 dims is needed"),
        (
            lambda: Life(Rule([3], [2]), neighbourhood="von_neumann"),
            "with `neighbourhood` 'von_neumann' is needed",
        ),
        (lambda: WindowRule(torch.any, radius=0), "`radius` must be at least 1, got 0"),
    ],
)
def test_wrong_arguments_are_named(make, text):
    with pytest.raises(ArgumentError, match=text):
        make()
