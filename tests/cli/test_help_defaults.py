"""Help shows the default of each option that has one, and fits a terminal."""

from collections.abc import Iterator

import pytest
from cyclopts import App

from hotgrid.cli._app import build

from .command import run


def commands(app: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name in app:
        if not name.startswith("-"):
            yield from commands(app[name], (*path, name))


@pytest.mark.parametrize(
    ("command", "defaults"),
    [
        (("tune",), {"--k": "1", "--dim": "-1", "--dtype": "float32", "--device": "cpu"}),
        (("config", "init"), {"PATH": "hotgrid.toml"}),
    ],
)
def test_defaults_are_reported(command, defaults, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    run([*command, "--help"])
    lines = capsys.readouterr().out.splitlines()
    for option, default in defaults.items():
        [line] = [line for line in lines if line.startswith(f"│ {option} ")]
        assert f"by default {default}" in line


def test_descriptions_do_not_break_where_docstrings_do(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    run(["tune", "--help"])
    assert "with nothing else given, only its winners are shown." in capsys.readouterr().out


def test_text_around_the_panels_fits_80_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    for words in commands(build()):
        run([*words, "--help"])
        lines = capsys.readouterr().out.splitlines()
        plain = [line for line in lines if not line.startswith(("╭", "│", "╰"))]
        assert len(plain) > 3
        assert [line for line in plain if len(line) > 80] == [], words
