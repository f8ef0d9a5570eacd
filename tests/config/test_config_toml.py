"""The locator: fast tokens against the slow twin that lets tomllib decide."""

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from hotgrid.config._toml import UnreadableError, parse, statements


def slow_statements(text: str):
    """Grow a piece line by line until tomllib can parse it."""
    found, start, piece = [], 1, ""
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        piece += line
        try:
            tomllib.loads(piece)
        except tomllib.TOMLDecodeError:
            continue
        found.append((start, piece))
        start, piece = number + 1, ""
    assert piece == ""
    return found


quoted = st.sampled_from(
    [
        *('"plain"', "'literal # [ { '", r'"esc \" \\ # ]"', '""', "''", '"""\nlines\n"""'),
        *('"""two \\\n  joined "" quotes"""', '"""ends with quote\n"""""', "'''\n[x]\n# no'''"),
        *("'''it''s\n''''", '"""\\""" [ \n"""'),
    ]
)
scalar = st.one_of(
    quoted, st.sampled_from(["1", "-2.5e3", "true", "1979-05-27", "0xff", "nan"])
)


def _list(items: st.SearchStrategy[str]):
    separator = st.sampled_from([", ", ",\n", ", # ] comment {\n", "\n,\n"])
    return st.builds(
        lambda xs, s: "[\n" + s.join(xs) + "]", st.lists(items, max_size=3), separator
    )


def _table(items: st.SearchStrategy[str]):
    return st.lists(items, max_size=3).map(
        lambda xs: "{" + ", ".join(f"k{i} = {x}" for i, x in enumerate(xs)) + "}"
    )


value = st.recursive(scalar, lambda items: _list(items) | _table(items), max_leaves=5)
noise = st.sampled_from(["", "# comment \" ' [ {\n", "\n", "  \t\n"])
tail = st.sampled_from(["\n", " # tail ' \" [\n"])


@st.composite
def documents(draw: st.DrawFn):
    text = ""
    for index in range(draw(st.integers(0, 4))):
        header = draw(
            st.sampled_from([f"[t{index}]", f"[ t{index} . 'x y' ]", f"[[t{index}]]"])
        )
        text += draw(noise) + header + draw(tail)
        for key in range(draw(st.integers(0, 3))):
            name = draw(
                st.sampled_from([f"k{key}", f'"k.{key}"', f"k{key} . sub", f"'#{key}'"])
            )
            text += draw(noise) + f"{name} = {draw(value)}{draw(tail)}"
    return text


@given(documents())
@settings(deadline=None, max_examples=150)
def test_statements_are_those_that_tomllib_sees(text: str):
    tomllib.loads(text)
    assert list(statements(text)) == slow_statements(text)
    assert "".join(piece for _, piece in statements(text)) == text


@given(documents())
@settings(deadline=None, max_examples=100)
def test_every_key_of_the_document_has_a_line(text: str):
    document = parse(text)

    def paths(table: dict[str, Any], above: tuple[str, ...] = ()):
        for key, below in table.items():
            yield (*above, key)
            if isinstance(below, dict):
                yield from paths(below, (*above, key))

    found = {path for path in paths(document.table) if len(path) <= 8}
    assert found <= set(document.lines)
    assert all(1 <= line <= text.count("\n") + 1 for line in document.lines.values())


def test_lines_of_dotted_quoted_inline_and_multiline_keys():
    text = (
        "# head\n"
        "a.b.c = 1\n"
        "[x]\n"
        "list = [\n  1, # ]\n  2,\n]\n"
        "'quoted key' = {in = {side = 1}}\n"
        '"multi" = """\n[no.header]\nk = 1\n"""\n'
        '[x."y z"] # comment\n'
        "last = 1\n"
        "[[many]]\n"
        "m = 1"
    )
    lines = parse(text).lines
    assert lines["a",] == lines["a", "b", "c"] == 2
    assert lines["x", "list"] == 4
    assert lines["x", "quoted key", "in", "side"] == 8
    assert lines["x", "multi"] == 9
    assert lines["x", "y z"] == 13
    assert lines["x", "y z", "last"] == 14
    assert lines["many",] == 15
    assert lines["many", "m"] == 16
    assert ("no",) not in lines


def test_windows_line_ends_count_once():
    assert parse("[a]\r\n\r\nb = 1\r\n").lines["a", "b"] == 3


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a = 1\nb = \n", 2, 5),
        ("a = 1\n\n[b\n", 3, 3),
        ("a = [1,\n2", 2, 2),
        ("a = 1\na = 2\n\n", 2, 6),
        ("a = '\0'", 1, 6),
    ],
)
def test_syntax_errors_show_line_and_column(text: str, line: int, column: int):
    with pytest.raises(UnreadableError, match="not valid TOML") as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_number_of_too_many_digits_is_located():
    with pytest.raises(UnreadableError, match="number that is too long") as caught:
        parse("# first\na = 1\nb = " + "9" * 5000)
    assert caught.value.line == 3


def test_deep_nesting_is_refused_and_long_dotted_keys_stay_cheap():
    with pytest.raises(UnreadableError, match="nested too deeply"):
        parse("a = " + "[" * 5000 + "]" * 5000)
    dotted = ".".join("k" * 3000)
    assert len(parse(f"{dotted} = 1").lines) == 8
    assert len(parse(f"[{dotted}]").lines) == 8
