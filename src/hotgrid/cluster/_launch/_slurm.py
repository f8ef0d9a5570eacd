"""Ranks that srun started: what its variables say, in those of torchrun."""

import os
import re
from collections.abc import Mapping

from hotgrid.errors import ArgumentError

from ._launch import only_this_host

# Below the ports that systems give to clients, and above those of services.
_PORTS = range(20000, 30000)


def follow_slurm() -> None:
    """Make the tasks of a SLURM step ranks: of `world`, `is_primary`, `launched` and `job`.

    Without this, tasks of `srun` know nothing of each other, as those of a sweep should. It
    sets the variables that torchrun would set, if `srun` started several tasks and no other
    launcher started this process. `MASTER_ADDR` and `MASTER_PORT` stay if they are set.

    Raises:
        ArgumentError: Variables of SLURM are missing.

    Example:
        >>> follow_slurm()
    """
    # Only srun sets the tasks of a step; a batch script has those of its job.
    if "WORLD_SIZE" in os.environ or int(os.environ.get("SLURM_STEP_NUM_TASKS", "1")) < 2:
        return
    try:
        found = _variables(os.environ)
    except KeyError as missing:
        raise ArgumentError(
            f"srun has started several tasks, but {missing} is not set; start them with "
            "torchrun instead"
        ) from None
    os.environ.update({**found, **os.environ})


def _variables(slurm: Mapping[str, str]) -> dict[str, str]:
    alone = slurm["SLURM_STEP_NUM_NODES"] == "1"
    job, step = slurm["SLURM_JOB_ID"], slurm["SLURM_STEP_ID"]
    port = _PORTS[(31 * int(job) + int(step)) % len(_PORTS)]
    found = {
        "RANK": slurm["SLURM_PROCID"],
        "LOCAL_RANK": slurm["SLURM_LOCALID"],
        "WORLD_SIZE": slurm["SLURM_STEP_NUM_TASKS"],
        "MASTER_ADDR": "127.0.0.1" if alone else first_host(slurm["SLURM_STEP_NODELIST"]),
        "MASTER_PORT": str(port),
        # A job that is queued again has the same numbers.
        "TORCHELASTIC_RUN_ID": f"slurm-{job}.{step}",
    }
    return found | (only_this_host() if alone else {})


def first_host(nodes: str) -> str:
    """Return the first of hosts in the notation of SLURM.

    Example:
        >>> first_host("node[07-12,15],login")
        'node07'
    """
    found = re.match(r"([^\[,]+)(?:\[(\w+)[^]]*\]([^,]*))?", nodes)
    return "".join(found.groups("")) if found else nodes
