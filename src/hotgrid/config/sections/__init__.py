"""The sections of `hotgrid.toml`: one file each, in the order of the file."""

from ._autotune import Autotune as Autotune, AutotuneLevel as AutotuneLevel
from ._cluster import Cluster as Cluster
from ._compile import Compile as Compile
from ._kernels import Kernels as Kernels
from ._logging import (
    LEVELS as LEVELS,
    ComponentLogging as ComponentLogging,
    Level as Level,
    Logging as Logging,
    LogTarget as LogTarget,
)
from ._memory import Memory as Memory
