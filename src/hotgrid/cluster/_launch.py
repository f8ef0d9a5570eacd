"""Starting ranks of this very program on this machine, through torchrun."""

import os
import subprocess
import sys
from collections.abc import Sequence


def launched() -> bool:
    """Whether this process is one of several that a launcher started.

    Example:
        >>> launched()
        False
    """
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def speaks() -> bool:
    """Whether it is for this process to talk: the first rank, or the only one.

    Example:
        >>> speaks()
        True
    """
    return int(os.environ.get("RANK", "0")) == 0


def launch(ranks: int, arguments: Sequence[str]) -> int:
    """Run `hotgrid` with these arguments as several ranks on this machine, to the end.

    Cores are shared out among the ranks, unless `OMP_NUM_THREADS` says otherwise.

    Args:
        ranks: How many.
        arguments: What follows `hotgrid` on the command line.

    Returns:
        The exit code: 0 if all ranks ended well.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = str(max(1, (cores or 1) // ranks))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={ranks}", "-m", "hotgrid", *arguments]
    environment = {"OMP_NUM_THREADS": threads, **os.environ}
    with subprocess.Popen(command, env=environment) as started:
        try:
            return started.wait()
        except KeyboardInterrupt:
            # The ranks got it too; they are given the time to leave in order.
            return started.wait()
