"""Rules of Generations, Larger than Life, Hensel and Margolus, and bounds, as text."""

import pytest
from hypothesis import given, strategies as st

from hotgrid.errors import ArgumentError
from hotgrid.grid import life
from hotgrid.grid.life import Bounds, GenerationsRule, IsotropicRule, LargerRule, Rule

counts = st.frozensets(st.integers(0, 8))
ranges = st.tuples(st.integers(0, 200), st.integers(0, 200)).map(
    lambda pair: tuple(sorted(pair))
)
# The number of classes by living neighbours: orbits of the square's symmetries.
ORBITS = {0: 1, 1: 2, 2: 6, 3: 10, 4: 13, 5: 10, 6: 6, 7: 2, 8: 1}


@given(birth=counts, survival=counts, states=st.integers(2, 255))
def test_generations_read_what_they_write(birth, survival, states):
    rule = GenerationsRule(Rule(birth, survival), states)
    assert GenerationsRule.parse(str(rule)) == rule


@pytest.mark.parametrize(
    "text", ["B2/S345/C4", "345/2/4", "b2s345/4", "star wars", "B2/S345/G4"]
)
def test_star_wars_is_written_in_many_ways(text):
    rule = GenerationsRule.parse(text)
    assert (set(rule.rule.birth), set(rule.rule.survival), rule.states) == ({2}, {3, 4, 5}, 4)
    assert str(rule) == "B2/S345/C4"


def test_a_suffix_of_generations_is_a_neighbourhood():
    assert GenerationsRule.parse("B2/S34/C5H").neighbourhood == "hexagonal"
    assert str(GenerationsRule.parse("B2/S34/C5V")) == "B2/S34/C5V"


@given(
    radius=st.integers(1, 50), birth=ranges, survival=ranges, states=st.integers(2, 255),
    middle=st.booleans(), area=st.sampled_from(["box", "diamond", "disc"]),
)  # fmt: skip
def test_larger_rules_read_what_they_write(radius, birth, survival, states, middle, area):
    rule = LargerRule(radius, birth, survival, states, middle, area)
    assert LargerRule.parse(str(rule)) == rule


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("R5,C0,M1,S34..58,B34..45,NM", 121),
        ("R5,C0,M0,S34..58,B34..45,NM", 120),
        ("R3,C2,M1,S1..2,B1..2,NN", 25),
        ("R2,C2,M0,S1..2,B1..2,NC", 20),
    ],
)
def test_larger_neighbourhoods_have_the_cells_they_should(text, cells):
    assert LargerRule.parse(text).most == cells


def orbit_of(neighbours: tuple[tuple[int, int], ...]) -> frozenset[frozenset[tuple[int, int]]]:
    """Places around a cell under all turns and mirrors, by arithmetic on their offsets."""
    turns = [
        lambda y, x: (y, x),
        lambda y, x: (x, -y),
        lambda y, x: (-y, -x),
        lambda y, x: (-x, y),
    ]
    return frozenset(
        frozenset((a, m * b) for a, b in (turn(y, x) for y, x in neighbours))
        for turn in turns
        for m in (1, -1)
    )


def windows_of(text: str) -> frozenset[frozenset[tuple[int, int]]]:
    """The neighbourhoods that give birth under a rule of one class."""
    table = IsotropicRule((text,), ()).table()
    return frozenset(
        frozenset((i // 3 - 1, i % 3 - 1) for i in range(9) if w >> i & 1)
        for w in range(512)
        if table[w]
    )


def test_every_class_is_an_orbit_and_all_make_up_the_neighbourhoods():
    names = [
        name for count in range(9) for name in sorted(IsotropicRule.parse(f"B{count}/S").birth)
    ]
    assert {n: sum(name[0] == str(n) for name in names) for n in range(9)} == ORBITS
    seen = set()
    for name in names:
        windows = windows_of(name)
        assert windows == orbit_of(tuple(next(iter(windows))))
        assert all(len(w) == int(name[0]) for w in windows)
        assert not windows & seen
        seen |= windows
    assert len(seen) == 256


@pytest.mark.parametrize(
    ("name", "neighbours"),
    [
        # Read from the published chart of the notation.
        ("2a", ((-1, -1), (-1, 0))),
        ("2k", ((-1, 0), (1, 1))),
        ("3i", ((-1, -1), (-1, 0), (-1, 1))),
        ("3r", ((-1, -1), (0, -1), (0, 1))),
        ("3q", ((-1, 0), (-1, 1), (1, -1))),
        ("4w", ((-1, 0), (-1, 1), (0, -1), (1, -1))),
        ("4z", ((-1, 1), (0, -1), (0, 1), (1, -1))),
        ("4t", ((-1, -1), (0, -1), (1, -1), (0, 1))),
    ],
)
def test_letters_mean_what_the_chart_says(name, neighbours):
    assert windows_of(name) == orbit_of(neighbours)


@given(st.data())
def test_isotropic_rules_read_what_they_write(data):
    every = sorted(IsotropicRule.parse("B012345678/S").birth)
    rule = IsotropicRule(*(data.draw(st.frozensets(st.sampled_from(every))) for _ in range(2)))
    assert IsotropicRule.parse(str(rule)) == rule


@given(
    birth=counts, survival=counts, kind=st.sampled_from(["moore", "von_neumann", "hexagonal"])
)
def test_the_table_of_a_rule_counts_its_neighbours(birth, survival, kind):
    most = {"moore": 8, "von_neumann": 4, "hexagonal": 6}[kind]
    rule = Rule({n for n in birth if n <= most}, {n for n in survival if n <= most}, kind)
    if kind == "moore":
        said = str(rule).replace("B", "B").split("/")
        assert IsotropicRule.parse("/".join(said)).table() == rule.table()
    table = rule.table()
    for window in range(0, 512, 7):
        cells = {(i // 3 - 1, i % 3 - 1) for i in range(9) if window >> i & 1}
        alive = (0, 0) in cells
        n = len(cells & set(rule.offsets()))
        assert table[window] == (n in (rule.survival if alive else rule.birth))


@pytest.mark.parametrize(
    ("text", "topology", "size"),
    [
        ("T30,20", "torus", (20, 30)),
        ("P30", "plane", (30, 30)),
        ("K30*,20", "klein", (20, 30)),
        ("K30,20*", "klein_sideways", (20, 30)),
        ("C30,20", "cross_surface", (20, 30)),
        ("S30", "sphere", (30, 30)),
    ],
)
def test_bounds_are_read_and_written(text, topology, size):
    found = Bounds.parse(text)
    assert found == Bounds(topology, size)
    assert Bounds.parse(str(found)) == found
    model = life.Life(f"B3/S23:{text}")
    assert (model.topology, tuple(model.size)) == (topology, size)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: life.Life("B3/S23:T30+5,20"), "shifted edges .* are not supported"),
        (lambda: life.Life("B3/S23:T0,20"), "unbounded along a side"),
        (lambda: life.Life("B3/S23:S30,20"), "a sphere is square"),
        (lambda: life.Life("B3/S23:K30,20"), "one side of a Klein bottle has a `*`"),
        (lambda: life.Life("B3/S23:T8,8", topology="plane"), "leave one of them out"),
        (lambda: life.HexLife("B2/S34H:C8,8"), "'cross_surface' is not one of HexLife"),
        (lambda: life.HexLife("B3/S23"), "is not for hexagons"),
        (lambda: life.Life3D(topology="klein"), "'klein' is not one of Life3D"),
        (lambda: life.Generations("B2/S345"), "not a rule of Generations"),
        (lambda: life.Generations("B2/S345/C999"), "from 2 to 255 states, got 999"),
        (lambda: life.LargerThanLife("R5,C0,M1"), "not a rule of Larger than Life"),
        (lambda: life.LargerThanLife("R5,C0,M1,S3..5,B3..5,NX"), "`NX` is not supported"),
        (lambda: life.LargerThanLife("R99,C0,M1,S3..5,B3..5,NM"), "from 1 to 50 cells"),
        (lambda: life.Isotropic("B2z/S"), "2 has the letters aceikn"),
        (lambda: life.Isotropic("B2-/S"), "expected the letters that are left out"),
        (lambda: life.Isotropic("B9/S"), "expected a count from 0 to 8"),
        (lambda: life.Elementary(256), "from 0 to 255, got 256"),
        (lambda: life.Elementary("thirty"), "must be a whole number, got 'thirty'"),
        (lambda: life.Margolus("critter"), "did you mean `critters`"),
        (lambda: life.Margolus((1, 2)), "16 numbers from 0 to 15"),
        (lambda: life.Margolus((0,) * 16).inverse(), "is not reversible"),
        (lambda: life.FHP(kind="II"), "`kind` must be `I` or `III`"),  # pyright: ignore
        (lambda: life.Life(pattern="wireworld clock"), "made for the rule WireWorld"),
    ],
)
def test_what_is_wrong_is_said(make, said):
    with pytest.raises(ArgumentError, match=said):
        make()


@pytest.mark.parametrize("name", sorted(life.RULES))
def test_the_header_of_a_pattern_may_name_its_rule(name):
    found = life.read_rle(f"x = 1, y = 1, rule = {name}\no!")
    assert found.rule == Rule.parse(name)


@pytest.mark.parametrize(
    ("joined", "text"),
    [("b2-as12", "B2-a/S12"), ("S2-i34qB3", "B3/S2-i34q"), ("B2cS", "B2c/S")],
)
def test_isotropic_rules_may_lack_the_slash(joined, text):
    assert str(IsotropicRule.parse(joined)) == text
