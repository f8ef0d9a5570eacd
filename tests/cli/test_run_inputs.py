"""The inputs of `hotgrid run` and `validate`, interrupts, and what is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import hotgrid as hg
from hotgrid.grid.forms._roll import RollForm
from hotgrid.kernels import Bandwidth
from hotgrid.store import Checkpoints

from .command import run

HEAT = ["run", "heat", "--size", "8x12", "--device", "cpu"]
LIFE = ["run", "life", "--size", "8x32", "--device", "cpu"]


@pytest.fixture(autouse=True)
def a_known_copy_bandwidth(monkeypatch: pytest.MonkeyPatch):
    known = Bandwidth(device="cpu", bytes_per_second=2e10, method="torch")
    monkeypatch.setattr(hg.kernels, "kept_bandwidth", lambda device: known)


def hotgrid(*arguments: str) -> int:
    return run(["-c", "compile.enabled=off", *arguments])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["validate", "--only"], "`--only` needs the names of checks, such as `--only glider`"),
        (["validate", "--only", "--quick"], "`--only` needs the names of checks"),
        (["run", "heat", "--steps", "1.5"], "--steps: `1.5` is not a whole number"),
        (["run", "heat", "--seed", "1e3"], "--seed: `1e3` is not a whole number"),
        (["run", "heat", "--every", "x"], "--every: `x` is not a whole number"),
        (["plan", "heat", "--depth", "2.5"], "--depth: `2.5` is not a whole number"),
    ],
)
def test_a_command_line_that_is_not_understood(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
):
    assert hotgrid(*arguments) == 2
    assert said in capsys.readouterr().err


def interrupt(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Press Ctrl-C, once, in the middle of the steps after `at`."""
    make = RollForm.run
    made = []

    def cut_off(form: Any, steps: int) -> None:
        if sum(made) == at:
            made.append(10**9)
            raise KeyboardInterrupt
        made.append(steps)
        make(form, steps)

    monkeypatch.setattr("hotgrid.grid.forms._roll.RollForm.run", cut_off)


def test_an_interrupted_run_says_where_it_stopped_and_goes_on_from_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    options = ["--steps", "50", "--every", "10", "--export", "csv"]
    with monkeypatch.context() as patched:
        interrupt(patched, at=20)
        assert hotgrid(*HEAT, *options, "--out", "parts") == 130
    out, err = capsys.readouterr()
    assert (out, err) == (
        "",
        "hotgrid: interrupted at step 20 of 50; the state of step 20 is kept in "
        "`parts/checkpoints`, and the same command with `--resume` continues from it\n",
    )
    assert hotgrid(*HEAT, *options, "--out", "parts", "--resume") == 0
    assert hotgrid(*HEAT, *options, "--out", "whole") == 0
    tables = [Path(out, "observables.csv").read_bytes() for out in ("parts", "whole")]
    assert tables[0] == tables[1]


def test_without_every_the_state_is_kept_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    interrupt(monkeypatch, at=1000)
    assert hotgrid(*HEAT, "--steps", "5000", "--out", "out", "--record", "u.gif") == 130
    assert Checkpoints(Path("out/checkpoints")).steps() == [1000]
    assert "step 1,000 of 5,000; the state of step 1,000" in (err := capsys.readouterr().err)
    assert "the film so far is `out/u.gif`" in err
    assert Path("out/u.gif").is_file()


def test_an_interrupted_run_without_a_folder_says_that_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    interrupt(monkeypatch, at=0)
    assert hotgrid(*HEAT, "--steps", "50") == 130
    assert "interrupted at step 0 of 50; no state is saved: with `--out DIR` it would be" in (
        capsys.readouterr().err
    )
    assert list(tmp_path.iterdir()) == []


SWALLOWING = """
import pathlib, time
pathlib.Path("importing").touch()
try:
    time.sleep(120)
except BaseException:
    pass
time.sleep(120)
"""


def test_an_interrupt_while_torch_is_imported_ends_the_command(tmp_path: Path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(SWALLOWING)
    source = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    source += "from hotgrid.cli import main; main()"
    importing = subprocess.Popen(
        [sys.executable, "-c", source, "run", "heat", "--steps", "1"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "importing").exists():
        assert importing.poll() is None
        time.sleep(0.02)
    importing.send_signal(signal.SIGINT)
    assert importing.communicate(timeout=60)[1] == "hotgrid: interrupted\n"
    assert importing.returncode == 130


def test_a_size_of_fewer_dims_than_usual_is_reported(capsys: pytest.CaptureFixture[str]):
    assert hotgrid("run", "heat", "--size", "5", "--steps", "2", "--device", "cpu") == 0
    assert "Heat on 5, float32 on cpu (1-D; `--size 5x5` is 2-D)" in capsys.readouterr().out


def test_other_commands_say_that_they_were_interrupted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def pressed() -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(hg.grid, "models", pressed)
    assert hotgrid("models") == 130
    assert capsys.readouterr().err == "hotgrid: interrupted\n"


@pytest.mark.parametrize("name", ["mine.rle", "mine.cells"])
def test_life_starts_from_a_file_of_cells(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    text = "bo$2bo$3o!" if name.endswith(".rle") else ".O\n..O\nOOO\n"
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / name).write_text(text)
    assert hotgrid(*LIFE, "--steps", "4", "--set", f"pattern=cases/{name}") == 0
    assert "population  5\n" in capsys.readouterr().out
    (tmp_path / "cases" / "a.toml").write_text(
        f'model = "life"\nsize = "8x32"\nsteps = 4\n[set]\npattern = "{name}"\n'
    )
    assert hotgrid("run", "cases/a.toml", "--device", "cpu") == 0
    assert "population  5\n" in capsys.readouterr().out
    assert hotgrid(*LIFE, "--set", "pattern=nothing.rle") == 1
    assert "cannot read `nothing.rle`" in capsys.readouterr().err


def test_the_start_up_mentions_compiling_only_where_steps_are_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert hotgrid(*HEAT, "--steps", "3") == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(" s, the first step")
    monkeypatch.setattr(hg.grid.Simulation, "compiled", True)
    assert hotgrid(*HEAT, "--steps", "3") == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(" s, compiling and the first step")


def test_the_umask_sets_the_permissions(tmp_path: Path):
    before = os.umask(0o022)
    try:
        assert hotgrid(*HEAT, "--steps", "2", "--out", "out", "--export", "png,npz,csv") == 0
        hg.Simulation(hg.pde.Heat(), size=(8, 8), compiled=False).save("out/state")
    finally:
        os.umask(before)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {".png", ".npz", ".csv", ".safetensors"} <= {path.suffix for path in files}
    assert {path.name: path.stat().st_mode & 0o777 for path in files} == {
        path.name: 0o644 for path in files
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--mesh", "64x1"], "use at most 8 ranks there"),
        (["--mesh", "2x1", "--depth", "5"], "a margin of 5 (`depth` 5) does not fit"),
        (["--mesh", "2x1x1"], "mesh `2x1x1` has 3 axes, but the grid has 2"),
    ],
)
def test_a_mesh_that_does_not_fit_is_reported_before_any_rank_is_started(
    options: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setattr(hg.cluster, "launch", lambda *_, **__: pytest.fail("ranks started"))
    assert hotgrid(*HEAT, *options) == 1
    assert said in capsys.readouterr().err
