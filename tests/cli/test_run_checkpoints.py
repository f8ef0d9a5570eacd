"""What `hotgrid run --out` keeps: which checkpoints stay, and what happens on bad days."""

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hotgrid as hg
from hotgrid.cli._main import run
from hotgrid.kernels import Bandwidth
from hotgrid.store import Checkpoints

HEAT = ["run", "heat", "--size", "8x12", "--device", "cpu", "--out", "out"]


@pytest.fixture(autouse=True)
def a_known_copy_bandwidth(monkeypatch: pytest.MonkeyPatch):
    known = Bandwidth(device="cpu", bytes_per_second=2e10, method="torch")
    monkeypatch.setattr(hg.kernels, "kept_bandwidth", lambda device: known)


def hotgrid(*arguments: str) -> int:
    return run(["-c", "compile.enabled=off", *arguments])


def saved_steps(folder: str = "out/checkpoints") -> list[int]:
    return Checkpoints(folder).steps()


def test_the_newest_stay_and_every_so_many():
    options = ["--checkpoint-every", "5", "--keep", "2", "--keep-every", "20"]
    assert hotgrid(*HEAT, "--steps", "47", *options) == 0
    assert saved_steps() == [20, 40, 45, 47]


def test_a_new_run_puts_the_checkpoints_of_the_old_one_aside(
    capsys: pytest.CaptureFixture[str],
):
    for steps in ("10", "20", "30"):
        assert hotgrid(*HEAT, "--steps", steps) == 0
    assert (saved_steps(), saved_steps("out/checkpoints.old")) == ([30], [20])
    said = capsys.readouterr().err
    assert said.count("this is a new run; the checkpoints of the one before are now in") == 2


def test_a_job_that_is_started_again_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "4711")
    assert hotgrid(*HEAT, "--steps", "10") == 0
    assert hotgrid(*HEAT, "--steps", "15", "--checkpoint-every", "1") == 0
    assert "goes on from step 10" in capsys.readouterr().err
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
    assert "stopped   as SIGTERM asked" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGTERM) is before
    [step] = saved_steps()
    assert 20 <= step < 5000
    assert {path.name for path in Path("out").iterdir()} == {"checkpoints", "observables.csv"}
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
        assert "earlier checkpoints are as they were" in err
        assert "Traceback" not in err
        assert saved_steps() == ([] if reason.startswith("File") else [1, 2])
        if saved_steps():
            assert Checkpoints("out/checkpoints").load().step == 2


def test_a_folder_that_may_not_be_written_is_said_before_the_run(
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
    assert f"cannot write into `--out {folder}/out`: Permission denied" in (
        capsys.readouterr().err
    )


def test_what_blows_up_leaves_its_last_good_step(capsys: pytest.CaptureFixture[str]):
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
