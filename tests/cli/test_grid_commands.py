"""`hotgrid models` and `hotgrid run`, in this process, on tiny grids, uncompiled."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hotgrid as hg
from hotgrid.config import case_of, read_case
from hotgrid.errors import ArgumentError
from hotgrid.grid.run import _perform as _run
from hotgrid.kernels import Bandwidth
from hotgrid.store import Checkpoints

from .command import run

HEAT = ["run", "heat", "--size", "8x12", "--device", "cpu"]
OWN_MODEL = """
from hotgrid.grid import Field, Model, observable

class Growth(Model):
    fields = (Field("u"),)
    time_step = 0.25
    def __init__(self, factor: int = 2) -> None:
        super().__init__()
        self.factor = factor
    def step(self, state, inputs, params):
        return {"u": state["u"][0, 0] * self.factor + 1}
    @observable
    def largest(self, state):
        return state["u"].max()
"""


@pytest.fixture(autouse=True)
def a_known_copy_bandwidth(monkeypatch: pytest.MonkeyPatch):
    """Measuring takes a second, and another figure each time."""
    known = Bandwidth(device="cpu", bytes_per_second=2e10, method="torch")
    monkeypatch.setattr(hg.kernels, "kept_bandwidth", lambda device: known)


def hotgrid(*arguments: str) -> int:
    return run(["-c", "compile.enabled=off", *arguments])


def outcome(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert hotgrid(*arguments, "--json") == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def saved_steps(out: str) -> list[int]:
    return Checkpoints(Path(out) / "checkpoints").steps()


def test_models_are_listed_with_a_line_each(capsys: pytest.CaptureFixture[str]):
    assert hotgrid("models") == 0
    lines = capsys.readouterr().out.splitlines()
    [heat] = [line for line in lines if line.startswith("heat ")]
    assert "Heat spreads" in heat
    assert "--set rate=" in lines[lines.index(heat) + 1]


def test_models_as_json(capsys: pytest.CaptureFixture[str]):
    assert hotgrid("models", "--json") == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    heat = rows["heat"]
    assert heat["class"] == "hotgrid.grid.pde.Heat"
    assert 2 in heat["ranks"]
    [rate] = heat["options"]
    assert rate["name"] == "rate"
    assert rate["low"] == 0
    assert not rate["needed"]
    assert rate["meaning"]
    # What a flow is made with sets its size.
    assert rows["karman"]["size"] == [200, 800]
    assert rows["body-flow"]["ranks"] == [3]


def test_help_of_the_commands_imports_no_torch():
    program = (
        "import sys; from hotgrid.cli._main import run\n"
        "codes = run(['--help']), run(['run', '--help']), run(['models', '--help'])\n"
        "assert 'torch' not in sys.modules\n"
        "sys.exit(max(codes))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("--size", "--record", "--resume", "hotgrid run case.toml", "[set]"):
        assert word in done.stdout


def test_a_run_reports_observables_and_speed(capsys: pytest.CaptureFixture[str]):
    assert hotgrid(*HEAT, "--steps", "20") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Heat on 8x12, float32 on cpu"
    rows = {line[:10].strip(): line[10:] for line in lines[1:]}
    assert rows["step"] == "20"
    assert {"time", "heat", "speed", "memory", "start-up"} <= {*rows}
    assert "steps/s" in rows["speed"]
    assert "MLUPS" in rows["speed"]
    assert rows["memory"].endswith("of the 20.0 GB/s of a copy")


def test_a_short_or_stopped_run_does_not_measure_a_copy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    measured = Bandwidth(device="cpu", bytes_per_second=1e10, method="torch")
    monkeypatch.setattr(hg.kernels, "kept_bandwidth", lambda device: None)
    monkeypatch.setattr(hg.kernels, "copy_bandwidth", lambda device: measured)
    speed = outcome(capsys, *HEAT, "--steps", "20")["speed"]
    assert (speed["copy_gigabytes_per_second"], speed["share_of_copy"]) == (None, None)
    assert hotgrid(*HEAT, "--steps", "20") == 0
    assert "of a copy" not in capsys.readouterr().out
    # Any run is long enough now.
    monkeypatch.setattr(_run, "_WORTH_MEASURING", 0.0)
    speed = outcome(capsys, *HEAT, "--steps", "20")["speed"]
    assert speed["copy_gigabytes_per_second"] == 10
    monkeypatch.setattr(_run, "_unfinished", lambda case, simulation: True)
    speed = outcome(capsys, *HEAT, "--steps", "20")["speed"]
    assert speed["copy_gigabytes_per_second"] is None


PEAK = r"""
import re
from pathlib import Path
import hotgrid.grid.run._perform, hotgrid.grid, torch
from hotgrid.cli._main import run
def peak():
    # Not `ru_maxrss`, which begins with that of the process that started this one.
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024
before = peak()
assert run(["run", "life", "--size", "64x64", "--steps", "10"]) == 0
print(peak() - before)
"""


def test_a_small_run_takes_little_memory(tmp_path: Path):
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", PEAK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert float(done.stdout.splitlines()[-1]) < 100  # MB


def test_a_run_without_a_folder_writes_nothing(tmp_path: Path):
    assert hotgrid(*HEAT, "--steps", "3") == 0
    assert list(tmp_path.iterdir()) == []


def test_json_holds_the_same_facts(capsys: pytest.CaptureFixture[str]):
    found = outcome(capsys, *HEAT, "--steps", "20", "--set", "rate=0.1", "--seed", "3")
    assert found["model"] == "Heat"
    assert (found["size"], found["step"], found["time"]) == ([8, 12], 20, 20)
    assert found["parameters"] == {"rate": 0.1}
    assert found["seed"] == 3
    speed = found["speed"]
    assert speed["steps"] == 20
    assert speed["mlups"] == pytest.approx(speed["steps_per_second"] * 96 / 1e6)
    assert speed["gigabytes_per_second"] == pytest.approx(speed["mlups"] * 8 / 1e3)
    assert speed["share_of_copy"] == pytest.approx(speed["gigabytes_per_second"] / 20)
    assert found["files"] == []


def test_the_seed_decides(capsys: pytest.CaptureFixture[str]):
    runs = [outcome(capsys, *HEAT, "--steps", "2", "--seed", seed) for seed in "112"]
    heats = [found["observables"]["heat"] for found in runs]
    assert heats[0] == heats[1] != heats[2]


def test_export_writes_what_it_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    found = outcome(
        capsys, *HEAT, "--steps", "20", "--out", "out", "--export", "npz,csv,png,vti",
        "--record", "film.gif", "--every", "5",
    )  # fmt: skip
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {
        "film.gif", "checkpoints", "fields.npz", "observables.csv", "u.png",
        "observables.png", "views", "views.pvd", "run.toml",
    }  # fmt: skip
    assert {Path(path).parts[1] for path in found["files"]} == names - {"run.toml", "views"}
    with np.load("out/fields.npz") as fields:
        assert fields["u"].shape == (8, 12)
        assert fields["u"].sum() == pytest.approx(found["observables"]["heat"], rel=1e-5)
    steps = [line.split(",")[0] for line in Path("out/observables.csv").read_text().split()]
    assert steps == ["step", "0", "5", "10", "15", "20"]


def test_a_film_with_a_folder_lies_there(tmp_path: Path):
    assert hotgrid(*HEAT, "--steps", "2", "--record", "films/u.gif", "--out", "out") == 0
    assert (tmp_path / "films" / "u.gif").is_file()


def test_resume_gives_the_bits_of_one_long_run(capsys: pytest.CaptureFixture[str]):
    options = ["--export", "npz,csv", "--every", "10"]
    assert hotgrid(*HEAT, "--steps", "50", "--out", "whole", *options) == 0
    assert hotgrid(*HEAT, "--steps", "30", "--out", "parts", *options) == 0
    capsys.readouterr()
    found = outcome(capsys, *HEAT, "--steps", "50", "--out", "parts", *options, "--resume")
    assert (found["step"], found["speed"]["steps"]) == (50, 20)
    with np.load("whole/fields.npz") as whole, np.load("parts/fields.npz") as parts:
        assert np.array_equal(whole["u"], parts["u"])
    assert (
        Path("whole/observables.csv").read_text() == Path("parts/observables.csv").read_text()
    )


def test_resume_after_a_crash_goes_on_from_the_last_saved_state(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    options = ["--out", "parts", "--export", "npz,csv", "--every", "10"]
    observe = hg.grid.Simulation.observe

    def fails_at_40(simulation: Any) -> dict[str, Any]:
        if simulation.step_count > 30:
            raise KeyboardInterrupt
        return observe(simulation)

    with monkeypatch.context() as patched:
        patched.setattr(hg.grid.Simulation, "observe", fails_at_40)
        assert hotgrid(*HEAT, "--steps", "50", *options) == 130
    assert saved_steps("parts") == [10, 20, 30]
    assert hotgrid(*HEAT, "--steps", "50", *options, "--resume") == 0
    options[1] = "whole"
    assert hotgrid(*HEAT, "--steps", "50", *options) == 0
    for name in ("fields.npz", "observables.csv"):
        assert Path("parts", name).read_bytes() == Path("whole", name).read_bytes()


def test_resume_of_a_finished_run_makes_no_step(capsys: pytest.CaptureFixture[str]):
    assert hotgrid(*HEAT, "--time", "5", "--out", "out") == 0
    capsys.readouterr()
    assert hotgrid(*HEAT, "--time", "5", "--out", "out", "--resume") == 0
    assert "no step was left to make" in capsys.readouterr().out


def test_a_model_of_your_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "mine.py").write_text(OWN_MODEL)
    options = ["--size", "4x4", "--time", "1", "--set", "factor=3", "--device", "cpu"]
    found = outcome(capsys, "run", "mine.py:Growth", *options)
    assert found["step"] == 4
    assert found["observables"] == {"largest": 40.0}


def test_a_case_file_is_the_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    cases = tmp_path / "cases"
    cases.mkdir()
    (cases / "mine.py").write_text(OWN_MODEL)
    (cases / "a.toml").write_text(
        'model = "mine.py:Growth"\nsize = [4, 6]\nsteps = 3\ndevice = "cpu"\n'
        'out = "out"\nexport = ["npz"]\nrecord = "u.gif"\n[set]\nfactor = 1\n'
    )
    found = outcome(capsys, "run", "cases/a.toml")
    assert found["observables"] == {"largest": 3.0}
    assert {path.name for path in (cases / "out").iterdir()} == {
        "fields.npz", "checkpoints", "u.gif", "run.toml",
    }  # fmt: skip
    found = outcome(capsys, "run", "cases/a.toml", "--set", "factor=2", "--time", "0.5")
    assert (found["step"], found["observables"]) == (2, {"largest": 3.0})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('model = "heat"\nstpes = 3\n', r"case.toml:2: `stpes` is an unknown key.*`steps`"),
        ('model = "heat"\n\n[sett]\nrate = 1\n', r"case.toml:3: `sett` .*did you mean `set`"),
        ('model = "heat"\nsteps = 3.5\n', r"case.toml:2: `steps` must be a whole number"),
        ('model = "heat"\nsize = "4y4"\n', r"case.toml:2: `size` must be whole numbers"),
        ('model = "heat"\nsize = [4, 0]\n', r"case.toml:2: `size` must be whole numbers"),
        ('model = "heat"\nset = 3\n', r"case.toml:2: `set` must be a table"),
        ('model = "heat"\ndtype = "f32"\n', r"case.toml:2: `dtype` must be one of float64"),
        ('model = "heat"\nexport = [1]\n', r"case.toml:2: `export` must be formats"),
        ('model = "heat"\ntime = true\n', r"case.toml:2: `time` must be a number"),
        ("steps = 3\n", "needs a model, such as"),
        ("steps = \n", r"is not valid TOML: .*line 1"),
        ('model = "heat"\nsteps = 1\ntime = 1\n', "`--steps` or `--time`, not both"),
    ],
)
def test_errors_in_a_case_file_are_reported(text: str, said: str, tmp_path: Path):
    (tmp_path / "case.toml").write_text(text)
    with pytest.raises(ArgumentError, match=said):
        case_of("case.toml", {})


def test_a_case_file_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(ArgumentError, match="cannot read `no"):
        read_case(Path("no.toml"))
    (tmp_path / "latin.toml").write_bytes(b'model = "\xe9"\n')
    with pytest.raises(ArgumentError, match="is not UTF-8"):
        read_case(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["heet"], 1, "there is no model `heet`; did you mean `heat`?"),
        (["heat", "--set", "rat=1"], 1, "Heat has no option `rat`; did you mean `rate`?"),
        (["heat", "--set", "rate=x"], 1, "`rate` must be a number, got 'x'"),
        (["heat", "--set", "rate"], 2, "`--set rate` must be NAME=VALUE"),
        (["heat", "--size", "8by8"], 1, "`--size` must be whole numbers"),
        (["heat", "--size", "0x5"], 1, "`--size` must be whole numbers of at least 1, such as"),
        (["heat", "--size", "2x2x2x2"], 1, "`size` (2, 2, 2, 2) has 4"),
        (["heat", "--size", "1000000x1000000"], 1, "needs about"),
        (
            ["heat", "--steps", "-3"],
            1,
            "`--steps` must be a whole number of at least 0, got -3",
        ),
        (["heat", "--time", "inf"], 1, "`--time` must be a number of at least 0"),
        (["heat", "--steps", "1", "--time", "1"], 1, "not both"),
        (["heat", "--every", "0"], 1, "`--every` must be a whole number of at least 1"),
        (["heat", "--export", "npz"], 1, "`--export` needs `--out DIR`"),
        (["heat", "--keep-every", "9"], 1, "`--keep-every` needs `--out DIR`"),
        (["heat", "--checkpoint-every", "0", "--out", "o"], 1, "`--checkpoint-every` must be"),
        (["heat", "--mesh", "2", "--restarts", "-1"], 1, "`--restarts` must be a whole number"),
        (["heat", "--mesh", "2", "--device", "cuda"], 1, "the device 'cuda' cannot be used"),
        (["heat", "--mesh", "2", "--device", "cud"], 1, "the device 'cud' cannot be used"),
        (["heat", "--export", "nzp", "--out", "o"], 1, "did you mean `npz`?"),
        (["heat", "--view", "w", "--out", "o"], 1, "Heat has no view `w`"),
        (["heat", "--record", "u.avi", "--out", "o"], 1, "must end in .mp4 or .gif"),
        (["heat", "--resume"], 1, "`--resume` needs `--out DIR`"),
        (["heat", "--resume", "--out", "o"], 1, "there is no checkpoint in `o/checkpoints`"),
        (["heat", "--out", "taken"], 1, "`--out taken` is a file; name a folder"),
        (["heat", "--dtype", "flot32"], 2, 'Did you mean "float32"?'),
        (["heat", "--stpes", "3"], 2, "Did you mean --steps?"),
        (["none.toml"], 1, "cannot read `none.toml`"),
    ],
)
def test_bad_input_is_one_message_and_writes_nothing(
    arguments: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    (tmp_path / "taken").write_text("")
    assert hotgrid("run", *arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("hotgrid: ")
    assert said in err
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_state_of_another_run_is_refused(capsys: pytest.CaptureFixture[str]):
    assert hotgrid(*HEAT, "--steps", "2", "--out", "out") == 0
    assert hotgrid(*HEAT, "--out", "out", "--resume", "--set", "rate=0.05") == 1
    assert "its parameters" in capsys.readouterr().err
    assert saved_steps("out") == [2]
