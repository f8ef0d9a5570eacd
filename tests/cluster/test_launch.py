"""What ranks learn from their launcher, and how they meet; nothing is started here."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hotgrid.cluster import job, launched, restarts, speaks, world
from hotgrid.errors import ArgumentError, CommunicationError


@pytest.fixture
def rank_of_two(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in {"RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_a_rank_knows_its_job_and_how_often_it_was_started(rank_of_two):
    assert launched()
    assert not speaks()
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


def test_a_device_that_is_none_is_said():
    with pytest.raises(ArgumentError, match="the device 'cdua' cannot be used here"):
        world("cdua")


def test_the_script_for_slurm_starts_a_torchrun_on_every_node(tmp_path: Path):
    page = Path(__file__).parents[2] / "docs" / "cluster.md"
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
    from hotgrid.cli._grid import run

    return {f"--{name.replace('_', '-')}" for name in inspect.signature(run).parameters}


LAUNCHER = """
import os, subprocess, sys, time
rank = "import hotgrid.cluster._launch as l, time; l.follow_launcher(); print('up', flush=True); time.sleep(600)"
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
