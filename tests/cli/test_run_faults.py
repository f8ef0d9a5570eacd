"""Runs as real processes that are killed, stopped, or do not belong together.

`doomed.py` is the model: its second rank kills itself at the moment that a test asks for.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hotgrid.grid import Observations
from hotgrid.store import Checkpoints

from .command import run

MODEL = f"{Path(__file__).with_name('doomed.py')}:Doomed"
OFF = ["-c", "compile.enabled=off", "-c", "cluster.timeout=60"]
RUN = ["run", MODEL, "--size", "16x12", "--device", "cpu"]
RUN += ["--export", "npz,csv", "--every", "10"]
HOTGRID = [sys.executable, "-m", "hotgrid"]
MANY = ["--mesh", "2x1", "--depth", "1"]


def same_as_undisturbed(out: str, steps: int) -> bool:
    """Whether a run has left the bits of one that nothing happened to, in one process."""
    assert run([*OFF, *RUN, "--steps", str(steps), "--out", "whole"]) == 0
    seen, alone = (Observations.load(f"{each}/observables.csv").rows for each in (out, "whole"))
    # Sums of parts round differently.
    assert seen == [pytest.approx(row, rel=1e-12) for row in alone]
    return Path(out, "fields.npz").read_bytes() == Path("whole/fields.npz").read_bytes()


def saved_steps(out: str) -> list[int]:
    return Checkpoints(Path(out, "checkpoints")).steps()


@pytest.mark.long
def test_ranks_killed_at_any_moment_change_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """In a checkpoint, in an exchange, between exchanges; then a bit is changed as well.

    There are two restarts, so after the third kill another mesh goes on: a single process.
    """
    doom = tmp_path / "doom"
    doom.mkdir()
    for moment, step in (("1-checkpoint", 10), ("2-exchange", 20), ("3-run", 30)):
        (doom / moment).write_text(f"cut/checkpoints/step-{step:09d}")
    options = ["--steps", "40", "--out", "cut"]
    done = subprocess.run(
        [*HOTGRID, *OFF, *RUN, *MANY, *options, "--restarts", "2"],
        env={**os.environ, "DOOM": str(doom)},
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert list(doom.iterdir()) == []
    assert (done.returncode, done.stdout) == (75, ""), done.stderr
    for attempt in (1, 2):
        said = f"rank 1 was ended by SIGKILL; all ranks are restarted ({attempt} of 2)"
        assert said in done.stderr
    assert "rank 1 was ended by SIGKILL, and no restart is left; `--resume`" in done.stderr
    assert "continues from step 10" in done.stderr
    assert "continues from step 20" in done.stderr
    # The other one does not wait: it says whom it lost, in what, and what to do.
    lost = [line for line in done.stderr.splitlines() if "hotgrid: rank 0 of 2 lost" in line]
    assert len(lost) == 3
    assert all("Continue a run with checkpoints with `--resume`" in line for line in lost)
    assert "lost rank 1: a message" in done.stderr
    assert "Traceback" not in done.stderr

    assert saved_steps("cut") == [10, 20, 30]
    shard = Path("cut/checkpoints/step-000000030/rank-00001.safetensors")
    shard.write_bytes(shard.read_bytes()[:-4] + b"oops")
    assert run([*OFF, *RUN, *options, "--resume"]) == 0
    assert "step 30 is skipped" in capsys.readouterr().err
    assert same_as_undisturbed("cut", 40)


@pytest.mark.long
def test_sigterm_saves_on_all_ranks_and_ends_well():
    """The launcher passes it on, ranks stop after the same step, another mesh goes on."""
    options = ["--checkpoint-every", "5", "--keep", "2", "--out", "cut"]
    command = [*HOTGRID, *OFF, *RUN, *MANY, "--steps", "100000000", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as launcher:
        while not saved_steps("cut"):
            assert launcher.poll() is None
            time.sleep(0.1)
        launcher.send_signal(signal.SIGTERM)
        out, _ = launcher.communicate(timeout=60)
    assert launcher.returncode == 0
    assert "stopped   by SIGTERM; continue with the same command and --resume" in out
    assert not Path("cut/fields.npz").exists()
    steps = saved_steps("cut")[-1] + 7
    goal = ["--steps", str(steps)]
    assert run([*OFF, *RUN, *options, *goal, "--mesh", "1", "--resume"]) == 0
    assert same_as_undisturbed("cut", steps)


# Ranks started without hotgrid, as `srun` starts them; forked, because importing torch
# is most of what a rank does here.
FORKED = """
import os, socket, sys
import hotgrid._version, hotgrid.cluster, hotgrid.grid
from hotgrid.cli import main

def rank(number, port, version):
    os.environ.update(RANK=str(number), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{name}-{number}", os.O_WRONLY | os.O_CREAT), descriptor)
    hotgrid._version.__version__ = version
    main()

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
versions = sys.argv.pop(1).split(",")
children = []
for number, version in enumerate(versions):
    children.append(os.fork())
    if children[-1] == 0:
        rank(number, port, version)
for child in children:
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def said_by_ranks(versions: str, *arguments: str) -> list[str]:
    command = [sys.executable, "-c", FORKED, versions, *OFF, *RUN, "--out", "cut", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout.split(), done.stderr) == (["1", "1"], "")
    assert [Path(name).read_text() for name in ("out-0", "out-1")] == ["", ""]
    assert not Path("cut").exists()
    return [Path(name).read_text() for name in ("err-0", "err-1")]


def test_a_mesh_that_does_not_fit_the_ranks_is_reported_once():
    first, second = said_by_ranks("1,1", "--mesh", "3x1")
    assert first.startswith(
        "hotgrid: mesh `3x1` needs 3 ranks, but 2 were started: start 3, or"
    )
    assert second == ""


@pytest.mark.long
def test_ranks_of_different_versions_do_not_run_together():
    for err in said_by_ranks("1.4,99.1", "--mesh", "2"):
        assert "ranks run different versions: rank 0 has hotgrid 1.4 and torch 2." in err
        assert "rank 1 has hotgrid 99.1 and torch 2." in err
        assert err.endswith("install the same on all hosts\n")


def test_ranks_without_a_mesh_would_all_do_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert run([*OFF, *RUN, "--out", "cut"]) == 1
    assert "several ranks were started, and each would make the same run: use `--mesh`" in (
        capsys.readouterr().err
    )


LAUNCHER = """
import os, subprocess, sys, time
rank = "import sys; sys.argv = ['hotgrid', 'run', 'mine.py:Slow']; from hotgrid.cli import main; main()"
environment = {**os.environ, "LAUNCHER_OF_HOTGRID": str(os.getpid())}
subprocess.Popen([sys.executable, "-c", rank], env=environment)
time.sleep(600)
"""  # fmt: skip  # noqa: E501


def test_a_rank_that_is_still_importing_ends_after_its_launcher(tmp_path: Path):
    (tmp_path / "mine.py").write_text("import time; print('up', flush=True); time.sleep(600)")
    launcher = subprocess.Popen([sys.executable, "-c", LAUNCHER], stdout=subprocess.PIPE)
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == b"up\n"
    launcher.kill()
    # The pipe is closed when the rank, too, is gone.
    assert launcher.communicate(timeout=60)[0] == b""
