"""The same plan on Ray Data, for jobs of many machines."""

import importlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from hotgrid.data._plan import Plan
from hotgrid.errors import MissingPartError

from ._plan_batches import PlanBatches


def ray_dataset(plan: Plan, size: int, *, epoch: int = 0) -> Any:
    """Run an epoch of a plan on Ray Data; the samples have the bits that `PlanBatches` gives.

    Every task makes whole batches, so the result does not depend on how many there are. All
    machines must see the files of the plan at the same paths, and operators of your own must
    be importable there. Needs `pip install 'hotgrid[ray]'`.

    Args:
        plan: The plan.
        size: Rows of a batch, as of `PlanBatches`; the last may be shorter.
        epoch: Which epoch.

    Returns:
        A `ray.data.Dataset` with the columns of the plan and `batch`, the number of the
        batch. With `preserve_order` set in Ray's execution options, rows come in the order of
        `PlanBatches`.

    Raises:
        MissingPartError: Ray is not installed.
    """
    try:
        # By name: Ray is too large to be installed wherever types are checked.
        ray_data = importlib.import_module("ray.data")
    except ImportError:
        raise MissingPartError("Ray Data needs ray: pip install 'hotgrid[ray]'") from None
    text = plan.to_json()
    with PlanBatches(plan, size, workers=1, last="short") as batches:
        first, count = epoch * len(batches), len(batches)

    def make(rows: Mapping[str, Any]) -> dict[str, Any]:
        return made_batches(text, size, [first + int(n) for n in rows["id"]])

    return ray_data.range(count).map_batches(make, batch_size=1)


def made_batches(text: str, size: int, numbers: list[int]) -> dict[str, Any]:
    """Batches of a plan by number, as numpy columns: what a task of Ray runs."""
    loader = _loader(text, size)
    parts = []
    for number in numbers:
        batch = loader.batch(number)
        rows = len(next(iter(batch.values())))
        columns = {name: _column(each) for name, each in batch.items()}
        parts.append({**columns, "batch": np.full(rows, number)})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@lru_cache(maxsize=4)
def _loader(text: str, size: int) -> PlanBatches:
    """A task opens the source once in a process. One batch ahead is one too many."""
    return PlanBatches(Plan.from_json(text), size, workers=1, ahead=1, last="short")


def _column(values: Any) -> Any:
    if not isinstance(values, list):
        return values.numpy()
    found = np.empty(len(values), object)
    found[:] = values
    return found
