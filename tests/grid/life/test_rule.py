import pytest
from hypothesis import given

from hotgrid.errors import ArgumentError
from hotgrid.grid.life import RULES, Rule

from .life_twin import rules

LIFE = Rule([3], [2, 3])


@pytest.mark.parametrize(
    "text",
    ["B3/S23", "b3/s23", "B3S23", "s23b3", "23/3", " B3 / S23 ", "life", "Life", "B3/S2..3"],
)
def test_every_way_to_write_life_is_life(text):
    rule = Rule.parse(text)
    assert rule == LIFE
    assert hash(rule) == hash(LIFE)
    assert str(rule) == "B3/S23"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("/", "B/S"),
        ("/2", "B2/S"),
        ("b2s", "B2/S"),
        ("S/B", "B/S"),
        ("B63/S32", "B36/S23"),
        ("B1/S014v", "B1/S014V"),
        ("23/3V", "B3/S23V"),
    ],
)
def test_a_rule_prints_in_one_way(text, canonical):
    assert str(Rule.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("B4/S5..7", "B4/S5..7"),
        ("b4s5,6", "B4/S5,6"),
        ("5,6,7/6", "B6/S5..7"),
        ("B13,26/S0..26", "B13,26/S0..26"),
        ("B1..3,6/SV", "B1..3,6/SV"),
    ],
)
def test_three_dims_have_ranges(text, canonical):
    assert str(Rule.parse(text, rank=3)) == canonical


@given(rules() | rules("von_neumann") | rules(rank=3) | rules("von_neumann", rank=3))
def test_what_is_printed_reads_back(rule):
    assert Rule.parse(str(rule), rule.rank) == rule


def test_named_rules_are_written_canonically():
    for name, text in RULES.items():
        assert str(Rule.parse(name)) == text


def test_offsets_are_the_neighbours():
    assert Rule([], [], "von_neumann").offsets() == [(-1, 0), (0, -1), (0, 1), (1, 0)]
    for kind in ("moore", "von_neumann"):
        for rank in (2, 3):
            rule = Rule([], [], kind, rank)
            assert len(set(rule.offsets())) == rule.most
            assert (0,) * rank not in rule.offsets()


def test_masks_are_the_counts_in_bits():
    rule = Rule([3, 6], [0, 8])
    assert rule.mask(alive=False) == 0b1001000
    assert rule.mask(alive=True) == 0b100000001


@pytest.mark.parametrize(
    ("text", "rank", "reason", "column"),
    [
        ("C3/S23", 2, "expected `B`, `S`, a count or `/` here", 0),
        ("B3/T23", 2, "expected a count or the end here", 3),
        ("B3/S29", 2, "9 is too many: a cell has 8 neighbours", 5),
        ("B3/S15V", 2, "5 is too many: a cell has 4 neighbours in the von Neumann", 5),
        ("B3/S23/C4", 2, "expected a count or the end here", 6),
        ("B2-a/S12", 2, "expected `B`, `S`, a count or `/` here", 2),
        ("B3", 2, "expected both `B` and `S`, once each", 2),
        ("B3/B23", 2, "expected both `B` and `S`, once each", 6),
        ("", 2, "expected both `B` and `S`, once each", 0),
        ("B3./S2", 2, "expected `,` here", 2),
        ("B4,/S5", 3, "expected a count here", 3),
        ("B36/S5", 3, "36 is too many: .* separate counts by commas", 1),
        ("B4/S5..27", 3, "27 is too many", 7),
        ("B4/S7..5", 3, "the range goes down; write `5..7`", 4),
    ],
)
def test_a_bad_rule_is_shown_with_a_caret_under_the_place(text, rank, reason, column):
    with pytest.raises(ArgumentError, match=reason) as caught:
        Rule.parse(text, rank)
    message = str(caught.value)
    assert message.startswith(f"`{text}` is not a rule: ")
    assert f"\n  {text}\n  {' ' * column}^\n" in message


def test_a_misspelled_name_gets_the_right_one():
    with pytest.raises(ArgumentError, match="did you mean `highlife`"):
        Rule.parse("hihglife")


def test_counts_must_be_possible():
    with pytest.raises(ArgumentError, match="`birth` has the count 9, but a cell has 8"):
        Rule([9], [])
    with pytest.raises(ArgumentError, match="`survival` has the count -1"):
        Rule([], [-1], rank=3)
    said = r"'von_neuman' is unknown; .* or hexagonal; did you mean `von_neumann`\?$"
    with pytest.raises(ArgumentError, match=said):
        Rule([3], [2, 3], neighbourhood="von_neuman")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match="`neighbourhood` 'hexagons' is unknown"):
        Rule([], [], "hexagons")  # pyright: ignore[reportArgumentType]
