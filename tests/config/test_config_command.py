"""`hotgrid config show | init | check` as functions."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hotgrid.cli import _config as command
from hotgrid.config import Config, default_toml, load, override, use
from hotgrid.errors import ConfigError


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOTGRID_CONFIG", raising=False)
    with use(Config()):
        yield


def test_show_tells_value_and_origin(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "hotgrid.toml").write_text("\nmemory.limit = 0.5\n")
    with use(load(flags={"autotune.cache": "file:/x/[y]"}, environ={})):
        assert command.show() == 0
    text = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if " " in line}
    assert rows["autotune.level"] == ['"balanced"', "default"]
    assert rows["memory.limit"][0] == "0.5"
    assert '{"file": "/x/[y]"}' in text
    assert "hotgrid.toml:2" in "".join(text.split())


def test_show_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with override({"logging.targets": ["stdout", {"file": tmp_path / "ü.log"}]}):
        assert command.show(json=True) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["file"] is None
    assert [row["key"] for row in printed["settings"]] == [s.key for s in Config().settings()]
    [row] = [row for row in printed["settings"] if row["key"] == "logging.targets"]
    assert row["value"] == ["stdout", {"file": str(tmp_path / "ü.log")}]
    assert row["origin"] == {"kind": "override", "where": "override"}


def test_init_writes_the_default_file_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert command.init() == 0
    assert (tmp_path / "hotgrid.toml").read_text() == default_toml()
    assert capsys.readouterr().out.startswith("Wrote hotgrid.toml.")
    with pytest.raises(ConfigError, match=r"`hotgrid\.toml` exists"):
        command.init()
    assert command.init(force=True) == 0


def test_check_prints_every_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "hotgrid.toml"
    path.write_text("autotune.levl = 1\nautotune.samples = 0\n")
    assert command.check() == 1
    expected = [
        f"{path}:1: `autotune.levl` is an unknown key; did you mean `level`?",
        f"{path}:2: `autotune.samples` is 0; expected an integer from 1 to 10000",
    ]
    assert capsys.readouterr().out.splitlines() == expected
    assert command.check(json=True) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["ok"] is False
    assert [f"{row['where']}: {row['message']}" for row in printed["problems"]] == expected
    assert printed["problems"][1]["line"] == 2


def test_check_when_all_is_fine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    assert command.check() == 0
    assert "no hotgrid.toml" in capsys.readouterr().out
    command.init()
    assert command.check() == 0
    assert f"{tmp_path / 'hotgrid.toml'} is fine." in capsys.readouterr().out
    assert command.check(json=True) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "problems": []}


def test_check_of_a_named_file_leaves_the_variables_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "other.toml").touch()
    monkeypatch.setenv("HOTGRID_MEMORY_LIMIT", "nonsense")
    assert command.check(tmp_path / "other.toml") == 0
    assert command.check() == 1
    assert command.check(tmp_path / "missing.toml") == 1
    assert "missing.toml: cannot be read" in capsys.readouterr().out


def test_the_package_and_its_commands_do_not_import_torch():
    code = "import sys, hotgrid.config, hotgrid.cli._config; print('torch' in sys.modules)"
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    line = [sys.executable, "-c", code]
    ran = subprocess.run(line, env=environ, capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
