from pathlib import Path

import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.errors import ArgumentError
from hotgrid.grid.life import (
    Pattern,
    pattern,
    pattern_names,
    read_cells,
    read_rle,
    write_cells,
    write_rle,
)

from .life_twin import random_cells, rules

lines = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=30).map(
    lambda text: " ".join(text.split())
)
patterns = st.builds(
    lambda seed, rows, columns, thin, rule, name, comments: Pattern(
        random_cells(seed, rows, columns) * random_cells(seed + 1, rows, columns) ** thin,
        rule,
        name,
        comments,
    ),
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 12),
    columns=st.integers(1, 150),
    thin=st.sampled_from([0, 1]),
    rule=st.none() | rules() | rules("von_neumann"),
    name=lines,
    comments=st.lists(lines, max_size=3),
)
GLIDER = torch.tensor([[0, 1, 0], [0, 0, 1], [1, 1, 1]])


@settings(max_examples=60)
@given(patterns)
def test_rle_reads_back_as_written(one):
    text = write_rle(one)
    assert read_rle(text) == one
    body = text.splitlines()[1 + len(one.comments) + bool(one.name) :]
    assert max(map(len, body)) <= 70


@settings(max_examples=60)
@given(patterns)
def test_cells_read_back_as_written(one):
    found = read_cells(write_cells(one))
    assert found == Pattern(one.cells, None, one.name, one.comments)


@given(patterns)
@settings(max_examples=20)
def test_both_formats_show_the_same_cells(one):
    assert torch.equal(read_cells(write_cells(one)).cells, read_rle(write_rle(one)).cells)


@settings(max_examples=300)
@given(st.text(alphabet="bo$!0123456789 \nxy=,#N.A?", max_size=40))
def test_any_text_is_read_or_refused_in_words(text):
    for read in (read_rle, read_cells):
        try:
            found = read(text)
        except ArgumentError as problem:
            assert "line" in str(problem)
        else:
            assert found.cells.dtype == torch.uint8


def test_an_empty_grid_is_written_short_and_keeps_its_size():
    empty = Pattern(torch.zeros(3, 500))
    assert write_rle(empty) == "x = 500, y = 3\n!\n"
    assert read_rle(write_rle(empty)).cells.shape == (3, 500)


@pytest.mark.parametrize(
    "text",
    [
        "bob$2bo$3o!",
        "x = 3, y = 3\nbo$2bo$3o!",
        "X=3,Y=3,RULE=B3/S23\nbo$2b\no$3\no! and what follows does not count",
        "#N Glider\n#O someone\nx = 3, y = 3, rule = 23/3:T20,20\r\n.A.$..A$AAA!\r\n",
        "#CXRLE Pos=1,2\n#r 23/3\n\nx = 3, y = 3\n\n bo $ 2bo $ 3o !\n",
    ],
)
def test_rle_is_read_as_people_write_it(text):
    assert torch.equal(read_rle(text).cells, GLIDER)


def test_rle_keeps_name_rule_and_comments():
    found = read_rle(
        "#C one\n#N Glider\n#O me\n#CXRLE Pos=0,0\nx = 3, y = 3, rule = 2/1V\nbo$2bo$3o!"
    )
    assert (found.name, found.comments, str(found.rule)) == ("Glider", ("one", "me"), "B1/S2V")


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("", 1, 1, "it ends without `!`"),
        ("x = 3, y = 3\nbo$2bo$3o", 2, 10, "it ends without `!`"),
        ("x = 3, y = 3\nbo$2bo$3", 2, 9, "it ends without `!`"),
        ("#N a\nx = 3, z = 3\nbo!", 2, 1, "expected `x = ..., y = ..., rule = ...`"),
        ("x = 3, y = 3, rule = B9/S\nbo!", 1, 22, "`B9/S` is not a rule: 9 is too many"),
        ("x = 3, y = 3\nbo$2bq$3o!", 2, 6, "unexpected `q`: cells are `b` (dead)"),
        ("x = 3, y = 3\nbo$\n4o!", 3, 2, "these cells leave the 3 x 3 of the header"),
        ("x = 3, y = 3\n3$o!", 2, 3, "these cells leave the 3 x 3 of the header"),
        ("x = 3, y = 3\n0o!", 2, 2, "the count 0 is too small"),
        ("9999999999999o!", 1, 14, "the count 9999999999999 is too small or too large"),
        ("x = 3, y = 3\no3!", 2, 3, "unexpected `!`"),
        ("x = 99999999, y = 99999999\no!", 1, 1, "is too large"),
        ("4000000000$4000000000o!", 1, 1, "is too large"),
    ],
)
def test_corrupt_rle_is_refused_with_line_and_column(text, line, column, reason):
    with pytest.raises(ArgumentError) as caught:
        read_rle(text)
    message = str(caught.value)
    assert message.startswith(f"the text, line {line}, column {column}: ")
    assert reason in message
    assert message.endswith(f"\n  {' ' * (column - 1)}^")


def test_the_place_in_a_long_line_is_shown_with_what_is_around_it():
    with pytest.raises(ArgumentError) as caught:
        read_rle("bo" * 100 + "?" + "bo" * 100 + "!")
    _, shown, caret = str(caught.value).splitlines()
    assert len(shown) <= 72
    assert shown[caret.index("^")] == "?"


def test_cells_are_read_as_people_write_them():
    found = read_cells("!Name: Glider\n!\n! a remark\n.O\n..O\nO*O\n")
    assert torch.equal(found.cells, GLIDER)
    assert (found.name, found.comments, found.rule) == ("Glider", ("", "a remark"), None)


def test_corrupt_cells_are_refused_with_line_and_column():
    with pytest.raises(ArgumentError, match="the text, line 3, column 2: unexpected 'x'"):
        read_cells("! a\n.O.\n.x.\n")


def test_files_are_read_and_written(tmp_path: Path):
    glider = pattern("glider")
    for suffix, read, write in (
        (".rle", read_rle, write_rle),
        (".cells", read_cells, write_cells),
    ):
        path = tmp_path / f"glider{suffix}"
        assert write(glider, path) == path.read_text()
        assert torch.equal(read(path).cells, GLIDER)
        assert torch.equal(read(str(path)).cells, GLIDER)
        path.write_text("what?")
        with pytest.raises(ArgumentError, match=f"`{path}`, line 1, column 1: "):
            read(path)
        with pytest.raises(ArgumentError, match="cannot read `nowhere"):
            read(f"nowhere{suffix}")
        path.write_bytes(b"\xff\xfe\x00")
        with pytest.raises(ArgumentError, match="is not text"):
            read(path)
        with pytest.raises(ArgumentError, match="cannot write"):
            write(glider, path / "glider")


def test_the_library_is_named_described_and_tight():
    assert {"glider", "lwss", "gosper gun", "r pentomino", "acorn"} <= set(pattern_names())
    for name in pattern_names():
        one = pattern(name)
        assert one.name == name
        assert one.comments and one.rule
        assert one.cells[0].any() and one.cells[-1].any()
        assert one.cells[:, 0].any() and one.cells[:, -1].any()


def test_names_of_patterns_are_forgiving():
    assert pattern("R-pentomino") == pattern("r_pentomino") == pattern("r pentomino")
    said = r"no pattern `gosper-gum`; `pattern_names\(\)` .*; did you mean `gosper gun`\?$"
    with pytest.raises(ArgumentError, match=said):
        pattern("gosper-gum")


def test_a_pattern_is_placed_in_the_middle_or_at_a_given_place():
    block = Pattern(torch.ones(2, 2), name="block")
    assert block.placed((4, 6)).nonzero().tolist() == [[1, 2], [1, 3], [2, 2], [2, 3]]
    assert block.placed((3, 3), at=(1, 0)).nonzero().tolist() == [
        [1, 0],
        [1, 1],
        [2, 0],
        [2, 1],
    ]
    for size, at in (((4, 1), None), ((4, 4), (3, 0)), ((4, 4), (-1, 0))):
        with pytest.raises(ArgumentError, match="block has 2 x 2 cells and does not fit"):
            block.placed(size, at)


def test_a_pattern_is_a_table_of_zeros_and_ones():
    assert Pattern(torch.tensor([[0.0, -3.0]])).cells.tolist() == [[0, 1]]
    with pytest.raises(ArgumentError, match=r"\[rows, columns\], got the shape \(3,\)"):
        Pattern(torch.ones(3))
    for name, comments in (("two\nlines", []), ("", [" a blank"])):
        with pytest.raises(ArgumentError, match="one line without blanks at its ends"):
            Pattern(torch.ones(1, 1), name=name, comments=comments)


def test_patterns_are_equal_by_what_they_hold():
    glider = pattern("glider")
    assert glider == read_rle(write_rle(glider))
    assert glider != Pattern(glider.cells)
    assert glider != Pattern(1 - glider.cells, glider.rule, glider.name, glider.comments)
    assert glider != "glider"
