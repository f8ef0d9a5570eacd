"""Starting ranks, as processes or threads, and finding the world that a rank is in."""

from ._launch import (
    cores as cores,
    is_primary as is_primary,
    job as job,
    launch as launch,
    launched as launched,
    restarts as restarts,
)
from ._run_module import run_module as run_module
from ._slurm import follow_slurm as follow_slurm
from ._stop import StopRequest as StopRequest
from ._threads import run_ranks as run_ranks
from ._world import world as world
