"""What ranks learn from their launcher, and how they meet; nothing is started here."""

import inspect
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hotgrid.cluster import is_primary, job, launched, restarts, world
from hotgrid.errors import ArgumentError, CommunicationError


@pytest.fixture
def rank_of_two(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in {"RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_a_rank_knows_its_job_and_how_often_it_was_started(rank_of_two):
    assert launched()
    assert not is_primary()
    assert (job(), restarts()) == (None, 0)
    rank_of_two.setenv("TORCHELASTIC_RUN_ID", "none")
    assert job() is None
    rank_of_two.setenv("TORCHELASTIC_RUN_ID", "4711")
    rank_of_two.setenv("TORCHELASTIC_RESTART_COUNT", "2")
    assert (job(), restarts()) == ("4711", 2)


def test_hosts_that_would_not_meet_again_after_a_restart_do_not_start(rank_of_two):
    rank_of_two.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    rank_of_two.setenv("TORCHELASTIC_MAX_RESTARTS", "3")
    rank_of_two.setenv("GROUP_WORLD_SIZE", "2")
    with pytest.raises(ArgumentError, match="set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 on all"):
        world()


def test_a_rank_without_a_meeting_place_says_what_to_look_at(rank_of_two):
    rank_of_two.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(CommunicationError, match=r"rank 1 of 2 could not join .*MASTER_ADDR"):
        world()


def test_a_device_that_is_invalid_is_reported():
    with pytest.raises(ArgumentError, match="the device 'cdua' cannot be used here"):
        world("cdua")


def test_the_script_for_slurm_starts_a_torchrun_on_every_node(tmp_path: Path):
    page = Path(__file__).parents[2] / "docs" / "guide" / "cluster_jobs.md"
    [script] = re.findall(r"```bash\n(#!/bin/bash\n.*?)```", page.read_text("utf-8"), re.DOTALL)
    stand_ins = {"scontrol": "printf 'node7\\nnode8\\n'", "srun": 'printf "%s\\n" "$@"'}
    for name, does in stand_ins.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{does}\n")
        (tmp_path / name).chmod(0o755)
    slurm = {"JOB_NODELIST": "node[7-8]", "NNODES": "2", "JOB_ID": "4711", "SUBMIT_DIR": "/my"}
    done = subprocess.run(
        ["bash", "-eu", "-c", script],
        env={f"SLURM_{k}": v for k, v in slurm.items()} | {"PATH": f"{tmp_path}:{os.defpath}"},
        capture_output=True,
        text=True,
        check=True,
    )
    said = done.stdout.split()
    assert said[:2] == ["torchrun", "--nnodes=2"]
    assert {"--rdzv-endpoint=node7:29500", "--rdzv-id=4711", "/my/street"} <= {*said}
    options = run_options()
    assert {word for word in said[said.index("hotgrid") :] if word.startswith("--")} <= options


def run_options() -> set[str]:
    from hotgrid.cli.run._command import run

    return {f"--{name.replace('_', '-')}" for name in inspect.signature(run).parameters}


LAUNCHER = """
import os, subprocess, sys, time
rank = "import hotgrid.cluster._launch._launch as l, time; l.follow_launcher(); print('up', flush=True); time.sleep(600)"
environment = {**os.environ, "LAUNCHER_OF_HOTGRID": str(os.getpid())}
subprocess.Popen([sys.executable, "-c", rank], env=environment)
time.sleep(600)
"""  # fmt: skip  # noqa: E501


def test_a_rank_ends_after_its_launcher_was_killed():
    launcher = subprocess.Popen([sys.executable, "-c", LAUNCHER], stdout=subprocess.PIPE)
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == b"up\n"
    launcher.kill()
    # The pipe is closed when the rank, too, is gone.
    assert launcher.communicate(timeout=120)[0] == b""


# Stands for `hotgrid` in the ranks: importing torch is most of what a rank would do.
RANK = """
import os, signal, sys, time
if sys.argv[1] == "stubborn":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
rank = os.environ["RANK"]
try:
    os.write(1, f"up {rank} {os.getpid()}\\n".encode())
    time.sleep(600)
except KeyboardInterrupt:
    os.write(1, f"interrupted {rank}\\n".encode())  # one write: ranks share the pipe
    sys.exit(130)
"""

LAUNCH = """
import os, signal, sys
from hotgrid.cluster import launch
from hotgrid.cluster._launch import _launch
signal.signal(signal.SIGINT, signal.default_int_handler)
_launch._PATIENCE = 0.5 if sys.argv[2] == "stubborn" else 20
sys.executable = sys.argv[1] + "/python"
sys.exit(launch(2, sys.argv[2:], restarts=3))
"""


def launcher_of(folder: Path, manner: str) -> subprocess.Popen[str]:
    (folder / "rank.py").write_text(RANK)
    # In place of `python -m hotgrid`: an installed hotgrid comes before any path.
    python = folder / "python"
    python.write_text(
        f"#!/bin/sh\nshift 2\nexec '{sys.executable}' '{folder}/rank.py' \"$@\"\n"
    )
    python.chmod(0o755)
    command = [sys.executable, "-c", LAUNCH, str(folder), manner]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )


def ranks_up(launcher: subprocess.Popen[str]) -> list[int]:
    assert launcher.stdout is not None
    said = [launcher.stdout.readline().split() for _ in range(2)]
    assert sorted(words[:2] for words in said) == [["up", "0"], ["up", "1"]]
    return [int(words[2]) for words in said]


def test_an_interrupt_of_the_launcher_alone_ends_the_ranks_with_130(tmp_path: Path):
    launcher = launcher_of(tmp_path, "obedient")
    ranks_up(launcher)
    launcher.send_signal(signal.SIGINT)
    out, err = launcher.communicate(timeout=120)
    assert launcher.returncode == 130
    # Each rank gets the signal once; rank 0 prints, so the launcher need not.
    assert sorted(out.splitlines()) == ["interrupted 0", "interrupted 1"]
    assert "interrupted" not in err


def test_ranks_that_ignore_an_interrupt_are_killed_and_named(tmp_path: Path):
    launcher = launcher_of(tmp_path, "stubborn")
    ranks_up(launcher)
    launcher.send_signal(signal.SIGINT)
    out, err = launcher.communicate(timeout=120)
    assert (launcher.returncode, out) == (130, "")
    assert "interrupted; rank 0, 1 did not end within 0.5 s and was killed" in err


def test_ranks_pause_with_their_launcher(tmp_path: Path):
    launcher = launcher_of(tmp_path, "obedient")
    pids = ranks_up(launcher)
    for sent, state in ((signal.SIGTSTP, "T"), (signal.SIGCONT, "S")):
        launcher.send_signal(sent)
        while {state_of(pid) for pid in (launcher.pid, *pids)} != {state}:
            assert launcher.poll() is None
            time.sleep(0.02)
    launcher.send_signal(signal.SIGINT)
    launcher.communicate(timeout=120)
    assert launcher.returncode == 130


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
