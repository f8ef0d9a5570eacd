"""Two hosts on one machine: network namespaces, joined by a cable that can be pulled."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CABLE = "hotgrid0"
NETWORK = "10.231.7"


def obstacle() -> str:
    """Why there can be no two hosts here; empty where there can."""
    if sys.platform != "linux":
        return f"network namespaces are a part of Linux, and this is {sys.platform}"
    if shutil.which("ip") is None:
        return "`ip` is missing; it comes with iproute2"
    if os.geteuid() != 0:
        return f"only root may make network namespaces, and this is user {os.geteuid()}"
    name = f"hotgrid-{os.getpid()}-try"
    tried = subprocess.run(
        ["ip", "netns", "add", name], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        return f"the system refuses network namespaces: {tried.stderr.strip()}"
    ip("netns", "delete", name)
    return ""


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


class Host:
    """One of the hosts; programs in it see no network but the cable."""

    def __init__(self, number: int) -> None:
        self.name = f"hotgrid-{os.getpid()}-{number}"
        self.address = f"{NETWORK}.{number}"

    def cable(self, state: str) -> None:
        ip("-n", self.name, "link", "set", CABLE, state)

    def start(self, command: list[str], said: Path) -> subprocess.Popen[bytes]:
        """Start a program; what it says goes to the end of a file."""
        variables = {"GLOO_SOCKET_IFNAME": CABLE, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        with said.open("ab") as file:
            return subprocess.Popen(
                ["ip", "netns", "exec", self.name, *command],
                env={**os.environ, **variables, "OMP_NUM_THREADS": "1"},
                stdout=file,
                stderr=file,
            )


@contextlib.contextmanager
def two_hosts() -> Iterator[tuple[Host, Host]]:
    first, second = hosts = Host(1), Host(2)
    try:
        for host in hosts:
            ip("netns", "add", host.name)
        end = ["name", CABLE, "netns"]
        ip("link", "add", *end, first.name, "type", "veth", "peer", *end, second.name)
        for host in hosts:
            ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", CABLE)
            ip("-n", host.name, "link", "set", "lo", "up")
            host.cable("up")
        yield hosts
    finally:
        for host in hosts:
            subprocess.run(
                ["ip", "netns", "delete", host.name], capture_output=True, check=False
            )
