"""Tasks of srun as ranks, by the variables that it sets."""

import os

import pytest

from hotgrid.cluster import follow_slurm, is_primary, job, launched
from hotgrid.cluster._launch._slurm import first_host
from hotgrid.errors import ArgumentError

STEP = {
    "STEP_NUM_TASKS": "4", "STEP_NUM_NODES": "2", "STEP_NODELIST": "gpu[003-004]",
    "STEP_ID": "1", "JOB_ID": "4711", "PROCID": "3", "LOCALID": "1", "NTASKS": "4",
}  # fmt: skip
SET = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (*SET, "TORCHELASTIC_RUN_ID", "GLOO_SOCKET_IFNAME"):
        # Set first, so that it is taken out again in the end.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name, value in STEP.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    return monkeypatch


def test_a_task_becomes_a_rank(step: pytest.MonkeyPatch):
    assert not launched()
    follow_slurm()
    assert [os.environ[name] for name in SET[:4]] == ["3", "1", "4", "gpu003"]
    assert 20000 <= int(os.environ["MASTER_PORT"]) < 30000
    assert "GLOO_SOCKET_IFNAME" not in os.environ
    assert launched()
    assert not is_primary()
    assert job() == "slurm-4711.1"


def test_tasks_of_one_host_need_no_network(step: pytest.MonkeyPatch):
    step.setenv("SLURM_STEP_NUM_NODES", "1")
    step.setenv("MASTER_PORT", "4000")
    follow_slurm()
    assert (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]) == ("127.0.0.1", "4000")


@pytest.mark.parametrize(
    ("name", "value"), [("WORLD_SIZE", "1"), ("SLURM_STEP_NUM_TASKS", "1")]
)
def test_other_launchers_and_single_tasks_stay(step: pytest.MonkeyPatch, name: str, value: str):
    step.setenv(name, value)
    follow_slurm()
    assert "RANK" not in os.environ


def test_a_batch_script_is_not_a_task(step: pytest.MonkeyPatch):
    # It has the tasks of its job, and the number 0.
    step.delenv("SLURM_STEP_NUM_TASKS")
    step.setenv("SLURM_PROCID", "0")
    follow_slurm()
    assert not launched()


def test_what_is_missing_is_named(step: pytest.MonkeyPatch):
    step.delenv("SLURM_STEP_NODELIST")
    with pytest.raises(ArgumentError, match=r"SLURM_STEP_NODELIST.*torchrun"):
        follow_slurm()


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("node7", "node7"),
        ("a,b", "a"),
        ("node[7-8]", "node7"),
        ("node[08,11-12].site.org,x", "node08.site.org"),
        ("r1-n[003-004],r2", "r1-n003"),
    ],
)
def test_the_first_of_nodes(nodes: str, first: str):
    assert first_host(nodes) == first
