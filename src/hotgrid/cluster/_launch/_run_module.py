"""Run a module as several ranks on this machine, for what it prints."""

import os
import subprocess
import sys
from collections.abc import Sequence

from hotgrid.errors import HotgridError

from ._launch import cores


def run_module(ranks: int, module: str, arguments: Sequence[str], timeout: float) -> str:
    """Run a module as several ranks on this machine and return what it printed.

    Raises:
        HotgridError: A rank failed or it took too long; the message has its last output.

    Example:
        `run_module(2, "hotgrid", ["run", "heat", "--mesh", "2", "--json"], timeout=120)`
    """
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={ranks}", "-m", module, *arguments]
    threads = {"OMP_NUM_THREADS": str(max(1, cores() // ranks))}
    try:
        done = subprocess.run(
            command,
            env={**threads, **os.environ},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise HotgridError(
            f"{ranks} ranks of `{module}` did not end within {timeout:g} s"
        ) from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = next(
            (line for line in lines if line.startswith("hotgrid:")), "".join(lines[-1:])
        )
        raise HotgridError(f"{ranks} ranks of `{module}` failed: {reason}")
    return done.stdout
