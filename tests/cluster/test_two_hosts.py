"""A cluster of two hosts with a network between them, which fails and comes back."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from hotgrid.grid import Simulation, pde

from .two_hosts import Host, obstacle, two_hosts

MODEL = f"{Path(__file__).with_name('patient.py')}:Patient"
KNOWN = ("network namespaces are", "`ip` is missing", "only root", "the system refuses")
RUN = ["-m", "hotgrid", "-c", "compile.enabled=off", "-c", "cluster.timeout=4", "run", MODEL]
RUN += ["--size", "16x12", "--steps", "40", "--mesh", "2", "--depth", "1", "--out", "out"]
RUN += ["--export", "npz", "--checkpoint-every", "10"]


def started(host: Host, leader: Host) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2"]
    command += ["--nproc-per-node=1", "--max-restarts=3", "--monitor-interval=0.1"]
    command += ["--rdzv-backend=c10d", "--rdzv-id=two-hosts", f"--local-addr={host.address}"]
    command += [f"--rdzv-endpoint={leader.address}:29400"]
    # The namespaces share one host name, by which torchrun would choose the leader.
    command += [f"--rdzv-conf=is_host={int(host is leader)}"]
    return host.start([*command, *RUN], Path(f"{host.address}.log"))


def wait_until(true: Callable[[], bool], hosts: tuple[Host, Host]) -> None:
    deadline = time.monotonic() + 150
    while not true():
        said = [Path(f"{host.address}.log").read_text() for host in hosts]
        assert time.monotonic() < deadline, "\n".join(said)
        time.sleep(0.1)


@pytest.mark.long
def test_a_pulled_cable_is_an_error_and_the_run_goes_on_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    reason = obstacle()
    if reason:
        # There is nothing to run here, but why must be one of the reasons we know of.
        print(f"two hosts were not tried: {reason}")
        assert reason.startswith(KNOWN)
        return
    monkeypatch.chdir(tmp_path)
    Path("wait").touch()
    with two_hosts() as hosts:
        agents = [started(host, hosts[0]) for host in hosts]
        try:
            wait_until(Path("waiting").exists, hosts)
            hosts[1].cable("down")
            Path("pulled").touch()
            logs = [Path(f"{host.address}.log") for host in hosts]
            wait_until(lambda: all(" of 2 lost " in log.read_text() for log in logs), hosts)
            hosts[1].cable("up")
            assert [agent.wait(200) for agent in agents] == [0, 0], logs[0].read_text()
        finally:
            for agent in agents:
                agent.terminate()
                agent.wait(60)
    for rank, log in enumerate(logs):
        said = log.read_text()
        # In a message to the other rank, or in a collective: the cable is pulled at any moment.
        assert f"hotgrid: rank {rank} of 2 lost " in said
        assert "Timed out waiting 4000ms" in said
    assert "continues from step 10" in logs[0].read_text()
    undisturbed = Simulation(pde.Heat(), size=(16, 12), compiled=False, device="cpu")
    undisturbed.run(40, progress=False)
    with np.load("out/fields.npz") as fields:
        assert torch.equal(torch.from_numpy(fields["u"]), undisturbed.state["u"])


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("linux", "network namespaces are a part of Linux, and this is darwin"),
        ("ip", "`ip` is missing; it comes with iproute2"),
        ("root", "only root may make network namespaces, and this is user 1000"),
        ("right", "the system refuses network namespaces: mount failed: Operation not"),
    ],
)
def test_where_there_can_be_no_two_hosts_the_reason_is_reported(
    missing: str, said: str, monkeypatch: pytest.MonkeyPatch
):
    refused = subprocess.CompletedProcess([], 1, "", "mount failed: Operation not permitted\n")
    monkeypatch.setattr(sys, "platform", "darwin" if missing == "linux" else "linux")
    monkeypatch.setattr(shutil, "which", lambda name: None if missing == "ip" else name)
    monkeypatch.setattr(os, "geteuid", lambda: 1000 if missing == "root" else 0)
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: refused)
    assert obstacle().startswith(said)
    assert obstacle().startswith(KNOWN)
