"""Replay: past transitions, kept on the device."""

from ._n_steps import NSteps as NSteps
from ._prioritised import (
    Prioritised as Prioritised,
    PrioritisedRing as PrioritisedRing,
    replay_of as replay_of,
)
from ._ring import Ring as Ring, Uniform as Uniform, expect_memory as expect_memory
from ._rows import Batch as Batch, Rows as Rows
from ._wide_tree import WideTree as WideTree
