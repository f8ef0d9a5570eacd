"""Help shows the default of each option that has one."""

import pytest

from .command import run


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
