"""Each rule on every kind of value, and each key of each section."""

import datetime
import math
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings, strategies as st

from hotgrid.config import Config, File, sections
from hotgrid.config._config import SECTIONS, keys
from hotgrid.config._rules import ListOf, Number, OneOf, RefusalError, Whole, WordOrFile, shown
from hotgrid.config._section import settings_of
from hotgrid.errors import ConfigError

RULES = {
    "word": OneOf(Literal["minimal", "full"]),
    "whole": Whole(1, 10),
    "auto": Whole(1, 10, auto=True),
    "number": Number(0.1, 1.0),
    "place": WordOrFile(Literal["none", "local"]),
    "targets": ListOf(WordOrFile(Literal["stdout", "stderr"])),
}


@pytest.mark.parametrize(
    ("rule", "value", "accepted"),
    [
        ("word", "full", "full"),
        ("whole", 1, 1),
        ("whole", 10, 10),
        ("auto", "auto", "auto"),
        ("number", 1, 1.0),
        ("number", 0.1, 0.1),
        ("place", "local", "local"),
        ("place", {"file": "/x/../y"}, File(Path("/y"))),
        ("place", File(Path("/y")), File(Path("/y"))),
        ("targets", [], ()),
        ("targets", ["stdout", {"file": "/y"}], ("stdout", File(Path("/y")))),
    ],
)
def test_accepted(rule: str, value: object, accepted: object):
    result = RULES[rule].accept(value)
    assert result == accepted
    assert type(result) is type(accepted)
    assert RULES[rule].accept(result) == result


@pytest.mark.parametrize(
    ("rule", "value", "text"),
    [
        ("word", "ful", 'is "ful"; expected one of minimal, full; did you mean `full`?'),
        ("word", "FULL", 'is "FULL"; expected one of minimal, full; did you mean `full`?'),
        ("word", True, "is true; expected one of minimal, full"),
        ("whole", True, "is true; expected an integer from 1 to 10"),
        ("whole", 3.0, "is 3.0; expected an integer from 1 to 10"),
        ("whole", "auto", 'is "auto"; expected an integer from 1 to 10'),
        (
            "auto",
            "aut",
            'is "aut"; expected an integer from 1 to 10 or auto; did you mean `auto`?',
        ),
        ("whole", 0, "is 0; expected an integer from 1 to 10"),
        ("number", math.nan, "is nan; expected a number from 0.1 to 1"),
        ("number", math.inf, "is inf; expected a number from 0.1 to 1"),
        ("number", False, "is false; expected a number from 0.1 to 1"),
        (
            "place",
            {"fil": "x"},
            'is {fil = "x"}; expected one of none, local or {file = "path"}',
        ),
        (
            "place",
            {"file": ""},
            'is {file = ""}; expected one of none, local or {file = "path"}',
        ),
        ("targets", "stdout", 'is "stdout"; expected a list in which each is one of stdout'),
        ("targets", ["stdout", "stder"], 'has an item that is "stder"; expected one of stdout'),
        (
            "targets",
            ["stder", "stdout", 5],
            'has 2 bad items: item 1 is "stder"; expected one of stdout, stderr or '
            '{file = "path"}; did you mean `stderr`? and item 3 is 5; expected one of stdout',
        ),
    ],
)
def test_refused(rule: str, value: object, text: str):
    with pytest.raises(RefusalError) as caught:
        RULES[rule].accept(value)
    assert str(caught.value).startswith(text)


def test_integers_that_python_cannot_write_are_refused():
    huge = 16**5000
    for rule in ("whole", "number"):
        with pytest.raises(RefusalError, match="is an integer of 20001 bits; expected a"):
            RULES[rule].accept(huge)
    with pytest.raises(
        RefusalError, match=r"is \[an integer of 20001 bits\]; expected a number"
    ):
        RULES["number"].accept([huge])


def test_what_is_nested_too_deeply_is_refused():
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(RefusalError, match="is a list too large to show; expected a number"):
        RULES["number"].accept(deep)


@pytest.mark.parametrize("path", ["a\0b", 3, None, "   "])
def test_invalid_paths(path: object):
    with pytest.raises(RefusalError):
        RULES["place"].accept({"file": path})


def test_relative_paths_start_at_the_given_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    place = RULES["place"]
    assert place.accept({"file": "a/../b"}, Path("/etc")) == File(Path("/etc/b"))
    monkeypatch.chdir(tmp_path)
    assert place.accept({"file": "b"}) == File(tmp_path / "b")
    monkeypatch.setenv("HOME", "/home/me")
    assert place.accept({"file": "~/b"}, Path("/etc")) == File(Path("/home/me/b"))
    with pytest.raises(RefusalError, match="no home folder is known"):
        place.accept({"file": "~no_such_user_here/b"})


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(anything, st.text())
@settings(deadline=None)
def test_any_value_is_accepted_for_good_or_refused(value: object, text: str):
    for rule in RULES.values():
        for candidate in (value, rule.read(text)):
            try:
                accepted = rule.accept(candidate, Path("/"))
            except RefusalError:
                continue
            assert rule.accept(accepted) == accepted


def test_long_values_are_cut():
    assert len(shown("x" * 1000)) == 80


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": 1, "b c": [True, "x\ny"]}, '{a = 1, "b c" = [true, "x\\ny"]}'),
        (datetime.date(2024, 5, 1), "2024-05-01"),
        ([datetime.time(7, 32)], "[07:32:00]"),
        ({"file": Path("/x")}, '{file = "/x"}'),
        (None, "None"),
    ],
)
def test_values_are_shown_as_toml_writes_them(value: object, text: str):
    assert shown(value) == text


@pytest.mark.parametrize("key", sorted(keys()))
def test_every_key_refuses_nonsense_and_accepts_its_default(key: str):
    rule = keys()[key]
    section, name = key.split(".")
    default = getattr(getattr(Config(), section), name)
    assert rule.accept(default) == default
    for nonsense in (object(), None, b"x", math.nan, -(10**30), "no such word"):
        with pytest.raises(RefusalError):
            rule.accept(nonsense)


@pytest.mark.parametrize("name", list(SECTIONS))
def test_every_section_names_its_owner_and_the_meaning_of_each_key(name: str):
    section = SECTIONS[name]
    assert "; owned by `hotgrid." in (section.__doc__ or "").splitlines()[0]
    declared = list(settings_of(section))
    assert len(declared) == len(fields(section)) > 0
    for _, _, meaning in declared:
        assert meaning.endswith(".")
        assert "\n" not in meaning
        assert len(meaning) < 100


def test_a_section_with_a_bad_value_cannot_exist():
    with pytest.raises(ConfigError, match=r"`level` is \"ful\".*did you mean `full`"):
        sections.Autotune(level="ful")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="`samples` is 0"):
        replace(sections.Autotune(), samples=0)


def test_component_sections_have_good_and_different_names():
    one = sections.ComponentLogging(name="grid", level="debug")
    with pytest.raises(ConfigError, match="each with another name"):
        sections.Logging(components=(one, one))
    with pytest.raises(ConfigError, match="bad name `No Good`"):
        sections.Logging(components=(sections.ComponentLogging(name="No Good"),))


def test_a_config_is_frozen_hashable_and_can_be_sent_to_another_process():
    config = Config()
    with pytest.raises(FrozenInstanceError):
        config.autotune.level = "full"  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(FrozenInstanceError):
        config.file = Path("x")  # pyright: ignore[reportAttributeAccessIssue]
    assert hash(config) == hash(Config())
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize("text", ["1_0", "\u0661", "1 0", "0x1", "1e1"])
def test_an_integer_in_text_is_made_of_digits(text: str):
    rule = Whole(1, 100)
    with pytest.raises(RefusalError, match="expected an integer from 1 to 100"):
        rule.accept(rule.read(text))
    assert [rule.accept(rule.read(each)) for each in ("10", " +10 ", "010")] == [10, 10, 10]


@pytest.mark.parametrize("text", ["0.1_5", "\u0661"])
def test_a_number_in_text_is_made_of_digits(text: str):
    rule = Number(0.1, 1.0)
    with pytest.raises(RefusalError, match="expected a number"):
        rule.accept(rule.read(text))
    assert rule.accept(rule.read(" 5e-1 ")) == 0.5
