"""The newest checkpoint of a run that is good."""

from collections.abc import Callable

from hotgrid.config import logger
from hotgrid.errors import DamagedError
from hotgrid.store import Checkpoint, Checkpoints


def load_newest(
    checkpoints: Checkpoints, load: Callable[[Checkpoint], Checkpoint]
) -> Checkpoint:
    """Load the newest step; when that is damaged, the one before, with a warning.

    Which tensors to load depends on a step's notes, so `Checkpoints.load` alone cannot go back.

    Args:
        checkpoints: The checkpoints of the run.
        load: Loads the tensors of a step, whose notes it is given.

    Raises:
        StoreError: There is no checkpoint.
        DamagedError: Every checkpoint is damaged.
    """
    steps = checkpoints.steps()
    problem: DamagedError | None = None
    for step in reversed(steps):
        try:
            return load(checkpoints.load(step, ()))
        except DamagedError as found:
            problem = problem or found
            if step != steps[0]:
                logger("train").warning("step %d is skipped: %s", step, found)
    if problem is not None:
        raise problem
    return load(checkpoints.load(None, ()))
