"""What `hotgrid run --out` keeps: which checkpoints are kept, and what happens when saving
fails."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hotgrid as hg
from hotgrid.cli import _main
from hotgrid.kernels import Bandwidth
from hotgrid.store import Checkpoints, RunFolder

from .command import run

HEAT = ["run", "heat", "--size", "8x12", "--device", "cpu", "--out", "out"]


@pytest.fixture(autouse=True)
def a_known_copy_bandwidth(monkeypatch: pytest.MonkeyPatch):
    known = Bandwidth(device="cpu", bytes_per_second=2e10, method="torch")
    monkeypatch.setattr(hg.kernels, "kept_bandwidth", lambda device: known)


def hotgrid(*arguments: str) -> int:
    return run(["-c", "compile.enabled=off", *arguments])


def saved_steps(folder: str = "out/checkpoints") -> list[int]:
    return Checkpoints(folder).steps()


def names(folder: str) -> set[str]:
    return {path.name for path in Path(folder).iterdir()}


def test_the_newest_stay_and_every_so_many():
    options = ["--checkpoint-every", "5", "--keep", "2", "--keep-every", "20"]
    assert hotgrid(*HEAT, "--steps", "47", *options) == 0
    assert saved_steps() == [20, 40, 45, 47]


def test_a_new_run_moves_the_ones_before_aside_whole(capsys: pytest.CaptureFixture[str]):
    options = [["--export", "npz,csv", "--record", "a.gif"], ["--export", "vti"], []]
    for steps, more in zip(("10", "20", "30"), options, strict=True):
        assert hotgrid(*HEAT, "--steps", steps, *more) == 0
    for folder, step, files in (
        ("out/earlier-1", 10, {"fields.npz", "observables.csv", "a.gif"}),
        ("out/earlier-2", 20, {"views.vti"}),
        ("out", 30, {"earlier-1", "earlier-2"}),
    ):
        assert saved_steps(f"{folder}/checkpoints") == [step]
        assert names(folder) == {"run.toml", "checkpoints", *files}
    said = capsys.readouterr().err
    assert "this is a new run; the previous one is now in `out/earlier-2`" in said


def test_a_run_from_before_run_toml_is_moved_aside_too_and_can_be_resumed():
    assert hotgrid(*HEAT, "--steps", "10", "--export", "npz") == 0
    Path("out/run.toml").unlink()
    Path("out/old.gif").touch()
    Path("out/mine.txt").touch()
    # What does not fit is refused, and leaves no `run.toml` that would be in the way.
    assert hotgrid(*HEAT, "--steps", "15", "--resume", "--set", "rate=0.05") == 1
    assert hotgrid(*HEAT, "--steps", "15", "--resume") == 0
    assert saved_steps() == [10, 15]
    Path("out/run.toml").unlink()
    assert hotgrid(*HEAT, "--steps", "5") == 0
    assert names("out") == {"run.toml", "checkpoints", "earlier-1", "mine.txt"}
    assert names("out/earlier-1") == {"checkpoints", "fields.npz", "old.gif"}


def test_a_damaged_step_is_reported_once(capsys: pytest.CaptureFixture[str]):
    assert hotgrid(*HEAT, "--steps", "10", "--checkpoint-every", "5") == 0
    Path("out/checkpoints/step-000000010/manifest.json").unlink()
    assert hotgrid(*HEAT, "--steps", "15", "--resume") == 0
    assert capsys.readouterr().err.count("step 10 is skipped") == 1
    assert saved_steps()[0] == 5


def test_an_earlier_run_is_resumed_in_its_own_folder():
    assert hotgrid(*HEAT, "--steps", "10", "--seed", "1") == 0
    assert hotgrid(*HEAT, "--steps", "20", "--seed", "2") == 0
    assert hotgrid(*HEAT[:-1], "out/earlier-1", "--steps", "15", "--seed", "1", "--resume") == 0
    assert saved_steps("out/earlier-1/checkpoints") == [10, 15]


def test_resume_names_all_that_differs(capsys: pytest.CaptureFixture[str]):
    assert hotgrid(*HEAT, "--steps", "10", "--seed", "1") == 0
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    assert hotgrid(*HEAT, "--resume", "--seed", "2", "--set", "rate=0.05") == 1
    said = capsys.readouterr().err
    assert "`out` contains another run: its parameters: " in said
    assert "its seed: 1, here 2. Use the same settings" in said
    assert before == {p: p.read_bytes() for p in Path("out").rglob("*") if p.is_file()}


def test_resume_needs_the_same_planned_changes(capsys: pytest.CaptureFixture[str]):
    for out, start in (("out", "0.1 -> 0.2 @ 20"), ("plain", "0.1")):
        heat = [*HEAT[:-1], out, "--steps", "10", "--set", f"rate={start}"]
        assert hotgrid(*heat) == 0
        assert hotgrid(*heat[:-1], "rate=0.1 -> 0.05 @ 20", "--resume") == 1
        assert hotgrid(*heat, "--resume") == 0
    said = capsys.readouterr().err
    assert "its changes: rate=0.2 @ 20, here rate=0.05 @ 20" in said
    assert "its changes: None, here rate=0.05 @ 20" in said


def test_run_toml_says_what_was_asked_and_by_whom(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.argv", ["hotgrid", "run", "heat", 'a \\ "b"\x7f \udcff 😀'])
    options = ["--steps", "10", "--seed", "7", "--set", "rate=0.05"]
    # Not through `command.run`, which would set `sys.argv`.
    assert _main.run(["-c", "compile.enabled=off", *HEAT, *options]) == 0
    options[1] = "12"
    assert hotgrid(*HEAT, *options, "--resume") == 0
    record = tomllib.loads(Path("out/run.toml").read_text("utf-8"))
    assert (record["format"], record["version"], len(record["id"])) == ("hotgrid run", 1, 32)
    assert (record["asked"]["model"], record["asked"]["seed"]) == ("Heat", "7")
    assert record["asked"]["size"] == "8x12"
    assert record["options"]["steps"] == 12
    assert record["options"]["set"] == {"rate": "0.05"}
    assert record["begun"]["command"][3] == 'a \\ "b"\x7f \\udcff 😀'
    assert {*record["begun"]} == {"command", "hotgrid", "time", "host", "folder"}
    assert len(record["resumed"]) == 1


def test_a_folder_that_another_run_uses_is_refused(capsys: pytest.CaptureFixture[str]):
    with RunFolder("out"):
        assert hotgrid(*HEAT, "--steps", "10") == 1
        assert f"`out` is in use by process {os.getpid()} on " in capsys.readouterr().err
        assert names("out") == {".run.lock"}
    assert hotgrid(*HEAT, "--steps", "10") == 0


def test_checkpoints_of_a_simulation_do_not_trip_a_restart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    sim = hg.Simulation(hg.pde.Heat(), (8, 12), compiled=False)
    sim.run(7)
    hg.grid.SimulationCheckpoints(sim, "out/checkpoints").save()
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "4711")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert hotgrid(*HEAT, "--steps", "10") == 0
    assert (saved_steps(), saved_steps("out/earlier-1/checkpoints")) == ([10], [7])
    assert "continues from" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["4711", "none"])
def test_a_restart_goes_on_from_its_own_run_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
):
    """Even if the previous run had the same settings."""
    assert hotgrid(*HEAT, "--steps", "10") == 0
    # As torchrun does; without a name of the job it is known by its process.
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", name)
    for count, steps in enumerate(("15", "17"), 1):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", str(count))
        assert hotgrid(*HEAT, "--steps", steps) == 0
    assert "continues from step 15" in (said := capsys.readouterr().err)
    assert said.count("continues from") == 1
    assert (saved_steps(), saved_steps("out/earlier-1/checkpoints")) == ([15, 17], [10])
    assert hotgrid(*HEAT, "--steps", "17", "--seed", "1") == 0
    assert "continues from" not in capsys.readouterr().err
    assert saved_steps() == [17]


def test_a_restart_does_not_take_checkpoints_of_another_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert hotgrid(*HEAT, "--steps", "10") == 0
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "4711")
    assert hotgrid(*HEAT, "--steps", "5") == 0
    shutil.rmtree("out/checkpoints")
    Path("out/earlier-1/checkpoints").rename("out/checkpoints")
    assert hotgrid(*HEAT, "--steps", "20") == 1
    assert "`out/checkpoints` contains checkpoints of another run" in capsys.readouterr().err


def test_a_folder_that_is_removed_in_mid_run_is_not_made_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    observe = hg.grid.Simulation.observe

    def removed_at_20(simulation: Any) -> dict[str, Any]:
        if simulation.step_count == 20:
            # In one move: a checkpoint may just be written.
            Path("out").rename("gone")
        return observe(simulation)

    monkeypatch.setattr(hg.grid.Simulation, "observe", removed_at_20)
    options = ["--every", "10", "--export", "csv"]
    assert hotgrid(*HEAT, "--steps", "50", *options) == 1
    assert "`out` was removed or replaced while the run was writing" in capsys.readouterr().err
    assert not Path("out").exists()


def test_a_run_without_a_checkpoint_begins_again_when_resumed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def killed(self: Any, steps: int, **options: Any) -> None:
        raise SystemExit(9)

    with monkeypatch.context() as patched:
        patched.setattr(hg.grid.Simulation, "run", killed)
        assert hotgrid(*HEAT, "--steps", "10") == 9
    assert names("out") == {"run.toml"}
    assert hotgrid(*HEAT, "--steps", "10", "--resume") == 0
    assert "there is no checkpoint; the run starts again" in capsys.readouterr().err
    assert saved_steps() == [10]


def test_sigterm_before_the_first_step_saves_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    made = hg.grid.Simulation.__init__

    def told(simulation: Any, *arguments: Any, **options: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        made(simulation, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(hg.grid.Simulation, "__init__", told)
        assert hotgrid(*HEAT, "--steps", "50", "--export", "npz") == 0
    assert "stopped  by SIGTERM" in capsys.readouterr().out
    assert saved_steps() == [0]
    for out, more in (("out", ["--resume"]), ("whole", [])):
        assert hotgrid(*HEAT[:-1], out, "--steps", "50", "--export", "npz", *more) == 0
    assert Path("out/fields.npz").read_bytes() == Path("whole/fields.npz").read_bytes()


def test_a_job_that_is_started_again_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "4711")
    assert hotgrid(*HEAT, "--steps", "10") == 0
    assert hotgrid(*HEAT, "--steps", "15", "--checkpoint-every", "1") == 0
    assert "continues from step 10" in capsys.readouterr().err
    assert saved_steps() == [13, 14, 15]
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "4712")
    assert hotgrid(*HEAT, "--steps", "5") == 0
    assert saved_steps() == [5]


def test_sigterm_saves_the_present_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    observe = hg.grid.Simulation.observe

    def told_at_20(simulation: Any) -> dict[str, Any]:
        if simulation.step_count == 20:
            os.kill(os.getpid(), signal.SIGTERM)
        return observe(simulation)

    before = signal.getsignal(signal.SIGTERM)
    options = ["--every", "10", "--checkpoint-every", "1000", "--export", "npz,csv"]
    with monkeypatch.context() as patched:
        patched.setattr(hg.grid.Simulation, "observe", told_at_20)
        assert hotgrid(*HEAT, "--steps", "5000", *options) == 0
    assert "stopped   by SIGTERM" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGTERM) is before
    [step] = saved_steps()
    assert 20 <= step < 5000
    assert {path.name for path in Path("out").iterdir()} == {
        "run.toml", "checkpoints", "observables.csv",
    }  # fmt: skip
    assert hotgrid(*HEAT, "--steps", "60", *options, "--resume") == 0
    whole = [*HEAT[:-1], "whole"]
    assert hotgrid(*whole, "--steps", "60", *options) == 0
    for name in ("fields.npz", "observables.csv"):
        assert Path("out", name).read_bytes() == Path("whole", name).read_bytes()


@contextlib.contextmanager
def little_room(folder: Path) -> Iterator[str]:
    """A disk that is full after 1 MB where one may be mounted; else files of that size."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        if not mounted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, limits[1]))
        yield "No space left on device" if mounted else "File too large"
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_ends_the_run_and_costs_only_the_new_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    heat = ["run", "heat", "--device", "cpu", "--out", "out", "--checkpoint-every", "1"]
    with little_room(tmp_path / "out") as reason:
        # Two checkpoints of 400 kB have room on the disk, and the third has not.
        size = "320x320" if reason.startswith("No") else "400x400"
        assert hotgrid(*heat, "--size", size, "--steps", "9") == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert reason in err
        assert "earlier checkpoints are unchanged" in err
        assert "Traceback" not in err
        assert saved_steps() == ([] if reason.startswith("File") else [1, 2])
        if saved_steps():
            assert Checkpoints("out/checkpoints").load().step == 2


def test_a_folder_that_may_not_be_written_is_reported_before_the_run(
    capsys: pytest.CaptureFixture[str],
):
    """As an ordinary user: the superuser may write anywhere."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        uid = os.geteuid()
        try:
            if uid == 0:
                os.seteuid(65534)
            assert hotgrid(*HEAT[:-1], f"{folder}/out", "--steps", "100000000") == 1
        finally:
            os.seteuid(uid)
    assert f"cannot write into `{folder}/out`: Permission denied" in (capsys.readouterr().err)


def test_divergence_keeps_the_last_good_step(capsys: pytest.CaptureFixture[str]):
    Path("mine.py").write_text(
        "from hotgrid.grid import Field, Model\n"
        "import torch\n"
        "class Growth(Model):\n"
        "    fields = (Field('u'),)\n"
        "    def initial(self, size, generator):\n"
        "        return {'u': torch.ones(size)}\n"
        "    def step(self, state, inputs, params):\n"
        "        return {'u': state['u'][0, 0] * 1e4}\n"
    )
    command = ["run", "mine.py:Growth", "--size", "4x4", "--device", "cpu", "--out", "grown"]
    assert hotgrid(*command, "--steps", "100") == 1
    assert "no longer finite after step 10" in capsys.readouterr().err
    assert saved_steps("grown/checkpoints") == [9]
