"""The automata besides Life, against their definitions written in NumPy."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation, life
from hotgrid.grid.life import (
    FHP,
    HPP,
    Elementary,
    Generations,
    HexLife,
    Isotropic,
    IsotropicRule,
    LargerThanLife,
    Life,
    Margolus,
    Pattern,
    Wireworld,
    pattern,
    read_rle,
    write_cells,
    write_rle,
)
from hotgrid.grid.life._gases._fhp import collisions

few = settings(max_examples=12, deadline=None)
every_class = sorted(IsotropicRule.parse("B012345678/S").birth)
rules = st.builds(
    IsotropicRule,
    st.frozensets(st.sampled_from(every_class[1:])),
    st.frozensets(st.sampled_from(every_class)),
)


def run(model, cells, steps, **options):
    """The cells after some steps; other fields as the model starts them."""
    sim = Simulation(model, size=cells.shape, compiled=False, **options)
    sim.state = {**sim.state, "cells": torch.as_tensor(cells.copy())}
    sim.run(steps, progress=False)
    return sim.state["cells"].numpy()


def random_cells(size, states=2, seed=0):
    return np.random.default_rng(seed).integers(0, states, size).astype(np.uint8)


def shifted(x, y, dx):
    """`x` seen at an offset, on a torus."""
    return np.roll(x, (-y, -dx), (0, 1))


def next_generation(cells, rule, offsets, states):
    """One step of an aging automaton, by the words of its definition."""
    n = sum(shifted(cells == 1, y, x).astype(int) for y, x in offsets)
    after = np.where(cells > 1, (cells + 1) % states, 0)
    born = (cells == 0) & np.isin(n, list(rule[0]))
    stays = (cells == 1) & np.isin(n, list(rule[1]))
    dies = (cells == 1) & ~stays
    return np.where(born | stays, 1, np.where(dies, 2 % states, after)).astype(np.uint8)


@pytest.mark.parametrize(
    "text", ["B2/S345/C4", "B2/S/C3", "B34/S12/C3H", "B13/S2/C21V", "B3/S23/C2"]
)
def test_generations_age_as_defined(text):
    model = Generations(text)
    rule, cells = model.rule.rule, random_cells((12, 20), model.states)
    expected = cells
    for _ in range(8):
        expected = next_generation(
            expected, (rule.birth, rule.survival), rule.offsets(), model.states
        )
    assert (run(model, cells, 8) == expected).all()


@pytest.mark.parametrize("form", ["box_sums", "roll", "padded"])
@pytest.mark.parametrize(
    "text",
    ["R2,C0,M1,S5..9,B6..8,NM", "R3,C4,M0,S12..20,B11..16,NM", "R8,C0,M1,S90..180,B80..150,NM"],
)
def test_larger_than_life_counts_its_box(text, form):
    model = LargerThanLife(text)
    rule, cells = model.rule, random_cells((18, 24), model.states, 1)
    ranges = [range(low, high + 1) for low, high in (rule.birth, rule.survival)]
    expected = next_generation(cells, ranges, rule.offsets(), model.states)
    expected = next_generation(expected, ranges, rule.offsets(), model.states)
    assert (run(model, cells, 2, form=form) == expected).all()


@pytest.mark.parametrize("area", ["NN", "NC"])
def test_other_areas_are_counted_too(area):
    model = LargerThanLife(f"R3,C0,M1,S8..13,B7..11,{area}")
    rule, cells = model.rule, random_cells((18, 24), 2, 2)
    ranges = [range(low, high + 1) for low, high in (rule.birth, rule.survival)]
    expected = next_generation(cells, ranges, rule.offsets(), 2)
    assert (run(model, cells, 1) == expected).all()


@pytest.mark.parametrize("form", ["box_sums", "roll"])
@pytest.mark.parametrize("radius", [1, 8])
def test_counts_that_no_cell_has_may_be_in_a_rule(radius, form):
    cells = random_cells((18, 24), 2, 3)
    most = (2 * radius + 1) ** 2
    within = LargerThanLife(f"R{radius},C0,M1,S2..{most},B4..{most},NM")
    beyond = LargerThanLife(f"R{radius},C0,M1,S2..99999,B4..300,NM")
    assert (run(within, cells, 2, form=form) == run(beyond, cells, 2, form=form)).all()
    never = LargerThanLife(f"R{radius},C0,M1,S300..99999,B{most + 1}..300,NM")
    assert run(never, cells, 1, form=form).sum() == 0


def test_a_plane_has_nothing_beyond_its_ends_in_every_form():
    model = LargerThanLife("R4,C0,M1,S20..40,B20..30,NM", topology="plane")
    cells = random_cells((20, 24), 2, 3)
    found = [run(model, cells, 5, form=form) for form in ("box_sums", "roll")]
    assert (found[0] == found[1]).all()


@few
@given(rule=rules, seed=st.integers(0, 99), topology=st.sampled_from(["torus", "plane"]))
def test_isotropic_cells_in_words_are_those_in_bytes(rule, seed, topology):
    cells = random_cells((10, 64), 2, seed)
    found = [run(Isotropic(rule, topology=topology, packed=p), cells, 4) for p in (False, True)]
    assert (found[0] == found[1]).all()


@few
@given(rule=rules, seed=st.integers(0, 99))
def test_isotropic_cells_follow_their_table(rule, seed):
    cells = random_cells((9, 11), 2, seed)
    window = sum(
        shifted(cells, y, x).astype(int) << (3 * (y + 1) + x + 1)
        for y in (-1, 0, 1)
        for x in (-1, 0, 1)
    )
    expected = np.array(rule.table())[window].astype(np.uint8)
    assert (run(Isotropic(rule), cells, 1) == expected).all()


@few
@given(rule=rules, seed=st.integers(0, 99))
def test_isotropic_rules_know_no_direction(rule, seed):
    cells = random_cells((12, 12), 2, seed)
    after = run(Isotropic(rule), cells, 3)
    for turn in (np.rot90, np.fliplr, np.flipud):
        assert (run(Isotropic(rule), turn(cells), 3) == turn(after)).all()


@pytest.mark.parametrize("text", ["B2/S34H", "B135/S0246H", "B1/S012V", "B13/S024V"])
def test_six_and_four_neighbours_in_words_are_those_in_bytes(text):
    cells = random_cells((10, 64), 2, 5)
    found = [run(Life(text, packed=p), cells, 5) for p in (False, True)]
    assert (found[0] == found[1]).all()


def test_hexagons_touch_six_cells():
    cells = np.zeros((7, 32), np.uint8)
    cells[3, 10] = 1
    after = run(HexLife("B1/SH"), cells, 1)
    assert {(y - 3, x - 10) for y, x in np.argwhere(after).tolist()} == {
        (-1, -1), (-1, 0), (0, -1), (0, 1), (1, 0), (1, 1),
    }  # fmt: skip


@pytest.mark.parametrize("rule", range(0, 256, 15))
def test_elementary_rules_follow_wolframs_numbers(rule):
    line = random_cells((64,), 2, rule)
    expected = line
    for _ in range(10):
        place = 4 * np.roll(expected, 1) + 2 * expected + np.roll(expected, -1)
        expected = (rule >> place.astype(int) & 1).astype(np.uint8)
    for packed in (False, True):
        assert (run(Elementary(rule, packed=packed), line, 10) == expected).all()


def test_two_dims_show_generations_below_each_other():
    sim = Simulation(Elementary(30, start="cell"), size=(20, 64), compiled=False)
    before = sim.state["cells"]
    sim.step()
    assert torch.equal(sim.state["cells"][:-1], before[1:])
    assert before[0].sum() == 1


def beyond(topology, y, x, rows, columns):
    """Where a cell beyond an end is, as Golly joins the ends."""
    up, side = y < 0 or y >= rows, x < 0 or x >= columns
    if up and side and topology in ("cross_surface", "sphere"):
        return min(max(y, 0), rows - 1), min(max(x, 0), columns - 1)
    if topology == "sphere" and (up or side):
        last = rows - 1
        return (x, 0 if y < 0 else last) if up else (0 if x < 0 else last, y)
    if up and topology in ("klein", "cross_surface"):
        x = columns - 1 - x
    if side and topology in ("klein_sideways", "cross_surface"):
        y = rows - 1 - y
    return y % rows, x % columns


@pytest.mark.parametrize("topology", ["klein", "klein_sideways", "cross_surface", "sphere"])
@pytest.mark.parametrize("size", [(12, 12), (16, 32)])
def test_ends_are_joined_as_golly_joins_them(topology, size):
    rows, columns = size
    if topology == "sphere" and rows != columns:
        with pytest.raises(ArgumentError, match="a sphere needs a square grid"):
            run(Life(topology=topology), random_cells(size), 1)
        return
    cells = random_cells(size, 2, 7)
    expected = cells
    for _ in range(6):
        n = np.array([
            [
                sum(
                    int(expected[beyond(topology, y + a, x + b, rows, columns)])
                    for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b
                )
                for x in range(columns)
            ]
            for y in range(rows)
        ])  # fmt: skip
        expected = ((n == 3) | (expected == 1) & (n == 2)).astype(np.uint8)
    assert (run(Life(topology=topology), cells, 6) == expected).all()
    assert (run(Isotropic("B3/S23", topology=topology), cells, 6) == expected).all()
    assert (run(Generations("B3/S23/C2", topology=topology), cells, 6) == expected).all()
    larger = LargerThanLife("R1,C0,M0,S2..3,B3..3,NM", topology=topology)
    for form in ("box_sums", "roll"):
        assert (run(larger, cells, 6, form=form) == expected).all()


@pytest.mark.parametrize(("backwards", "through"), [(False, 1), (True, 0)])
def test_a_diode_lets_electrons_pass_one_way(backwards, through):
    diode = pattern("wireworld diode")
    if backwards:
        cells = torch.where(diode.cells > 0, 3, 0)
        cells[1, -1], cells[1, -2] = 2, 1
        diode = replace(diode, cells=cells)
    sim = Simulation(Wireworld(diode), size=(9, 16), compiled=False)
    heads = 0
    for _ in range(14):
        sim.step()
        heads += int(sim.state["cells"][4, 3 if backwards else 12] == 1)
    assert heads == through


@few
@given(st.permutations(range(16)), st.integers(0, 99))
def test_every_permutation_of_blocks_can_be_undone(blocks, seed):
    model = Margolus(tuple(blocks), start="random")
    sim = Simulation(model, size=(8, 12), seed=seed, compiled=False)
    start = sim.state
    sim.run(9, progress=False)
    back = Simulation(
        model.inverse(), size=(8, 12), state=model.turned(sim.state), compiled=False
    )
    back.run(9, progress=False)
    assert torch.equal(back.state["cells"], start["cells"])


def test_blocks_are_replaced_as_the_table_says():
    model = Margolus("M0,8,4,3,2,5,9,7,1,6,10,11,12,13,14,15")
    cells = random_cells((6, 8), 2, 3)
    expected = cells.copy()
    for y in range(0, 6, 2):
        for x in range(0, 8, 2):
            block = [(y, x), (y, x + 1), (y + 1, x), (y + 1, x + 1)]
            after = model.rule[sum(int(cells[at]) << i for i, at in enumerate(block))]
            for i, at in enumerate(block):
                expected[at] = after >> i & 1
    assert (run(model, cells, 1) == expected).all()
    assert model.conserved == ("population",)
    assert Margolus("critters").conserved == ()


@pytest.mark.parametrize("kind", ["I", "III"])
def test_collisions_keep_what_they_must_and_lose_nothing(kind):
    table, bits = collisions(kind), 6 if kind == "I" else 7
    x = np.array([1, 0.5, -0.5, -1, -0.5, 0.5, 0])[:bits]
    y = np.array([0, 1, 1, 0, -1, -1, 0])[:bits]
    half, changed = 1 << bits, 0
    for choice in (0, 1):
        part = table[choice * half : (choice + 1) * half]
        assert sorted(part) == list(range(half))
        for before, after in enumerate(part):
            a, b = (np.array([n >> i & 1 for i in range(bits)]) for n in (before, after))
            assert (a.sum(), a @ x, a @ y) == (b.sum(), b @ x, b @ y)
            changed += before != after
    # Head on: three pairs; at equal angles: two triples. III has every one that is possible.
    assert changed == {"I": 2 * 5, "III": 2 * 76}[kind]


@pytest.mark.parametrize("model", [HPP(0.0, start="uniform"), FHP(0.0, start="uniform")])
def test_a_lonely_particle_flies_straight(model):
    for bit, (x, y) in enumerate(model.velocities):
        particles = torch.zeros(8, 12, dtype=torch.uint8)
        particles[4, 6] = 1 << bit
        sim = Simulation(model, size=(8, 12), compiled=False)
        sim.state = {**sim.state, "particles": particles}
        sim.run(2, progress=False)
        assert sim.state["particles"].nonzero().tolist() == [
            [4 + 2 * y, round(6 + 2 * x * model.units[0])]
        ]


def test_head_on_particles_leave_at_right_angles():
    particles = torch.zeros(8, 8, dtype=torch.uint8)
    particles[4, 3], particles[4, 5] = 1, 4
    sim = Simulation(HPP(0, start="uniform"), size=(8, 8), compiled=False)
    sim.state = {"particles": particles}
    sim.run(2, progress=False)
    assert sorted(sim.state["particles"].nonzero().tolist()) == [[3, 4], [5, 4]]


@given(
    st.integers(3, 256).flatmap(
        lambda states: st.tuples(
            st.just(states),
            st.lists(
                st.lists(st.integers(0, states - 1), min_size=5, max_size=5),
                min_size=1,
                max_size=6,
            ),
        )
    )
)
def test_rle_of_many_states_reads_what_it_writes(given_cells):
    states, rows = given_cells
    rule = "WireWorld" if states <= 4 else None
    first = Pattern(torch.tensor(rows), rule, "x", (), states)
    again = read_rle(write_rle(first))
    assert torch.equal(again.cells, first.cells)
    assert again.rule == rule


def test_states_have_the_letters_of_golly():
    found = read_rle("x = 6, y = 1, rule = 345/2/255\n.AXpAqAyN!").cells
    assert found.tolist() == [[0, 1, 24, 25, 49, 254]]


def test_a_pattern_brings_its_bounds():
    text = "x = 3, y = 3, rule = B3/S23:K20*,16\nbo$2bo$3o!"
    found = read_rle(text)
    model = Life(pattern=found)
    assert (model.topology, tuple(model.size)) == ("klein", (16, 20))
    assert write_rle(found).splitlines()[0] == "x = 3, y = 3, rule = B3/S23:K20*,16"
    assert Life(pattern=found, topology="plane").topology == "plane"


def test_cells_of_many_states_are_not_plain_text():
    with pytest.raises(ArgumentError, match="no letters for the 4 states"):
        write_cells(pattern("wireworld clock"))


def test_a_grid_must_have_the_size_of_the_bounds():
    with pytest.raises(ArgumentError, match=r"a grid of \(20, 30\), but `size` is \(8, 8\)"):
        Simulation(Life("B3/S23:T30,20"), size=(8, 8), compiled=False)
    assert Simulation(Life("B3/S23:T30,20"), compiled=False).size == (20, 30)


@pytest.mark.parametrize(
    ("rule", "cells", "states"),
    [
        ("WireWorld", "AB$D!", "0 to 3"),
        ("B2/S/C3", "AC!", "0 to 2"),
        ("B3/S23", "AB!", "0 to 1"),
    ],
)
def test_a_state_that_the_rule_lacks_is_refused(rule, cells, states):
    with pytest.raises(ArgumentError, match=f"but the rule .* has the states {states}"):
        life.read_rle(f"x = 3, y = 2, rule = {rule}\n{cells}")


def test_a_pattern_of_more_states_than_the_automaton_is_refused():
    clock = life.pattern("wireworld clock")
    with pytest.raises(ArgumentError, match="wireworld clock has cells of the state 3"):
        Life("B3/S23", pattern=clock)
    with pytest.raises(ArgumentError, match="has the states 0 to 2"):
        Generations("B2/S/C3", pattern=life.read_rle("ABC!"))


def test_wireworld_refuses_a_pattern_of_life():
    with pytest.raises(ArgumentError, match="glider was made for the rule B3/S23"):
        life.Wireworld("glider")
