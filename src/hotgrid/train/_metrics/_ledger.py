"""The sums of a window: on the device until they are needed, then on the host."""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

from ._metric import Metric, Sums, Window
from ._throughput import ModelFlops, Throughput

Row: TypeAlias = "tuple[float, ...]"


class Ledger:
    """The sums of metrics since they were last shown.

    Nothing is computed when a row is added. `fetch` brings all rows to the host with one
    copy. Rows are summed when they are shown, with one rounding, so that it does not
    matter how often they were fetched.

    Args:
        metrics: The metrics to show, in order.
        given: The names of metrics whose rows are given to `take`; they see nothing.

    Attributes:
        counting: The names of given metrics whose rows are the items of micro-batches.
        per_batch: For metrics that see every micro-batch, `sums` and the list for its rows.
        per_step: The same for those that see every step.
    """

    def __init__(self, metrics: Sequence[Metric], given: Collection[str] = ()) -> None:
        self.metrics = tuple(metrics)
        self._given = frozenset(given)
        self.counting = [
            each.name for each in self.metrics if counts(each) and each.name in self._given
        ]
        self._waiting: list[list[Sums]] = [[] for _ in self.metrics]
        asked = [
            (each.per, each.sums, rows)
            for each, rows in zip(self.metrics, self._waiting, strict=True)
            if each.name not in self._given
        ]
        self.per_batch = [(sums, rows) for per, sums, rows in asked if per == "batch"]
        self.per_step = [(sums, rows) for per, sums, rows in asked if per == "step"]
        self.rows: list[list[Row]] = [[] for _ in self.metrics]

    def take(self, found: Mapping[str, Sequence[Row]]) -> None:
        """Add rows that are known on the host, by the name of their metric."""
        for metric, rows in zip(self.metrics, self.rows, strict=True):
            if metric.name in self._given:
                rows.extend(found[metric.name])

    def fetch(self, *beside: Sequence[Tensor | float]) -> list[list[float]]:
        """Bring what is on the device to the host, and other numbers with the same copy.

        Returns:
            The other numbers.
        """
        try:
            flat = [x for waiting in self._waiting for row in waiting for x in row]
            numbers = iter(to_host([*flat, *itertools.chain(*beside)]))
        except (TypeError, RuntimeError):
            self._expect_rows()
            raise
        for rows, waiting in zip(self.rows, self._waiting, strict=True):
            if rows and waiting and len(rows[0]) != len(waiting[0]):
                rows.clear()  # they were loaded, and of another metric of this name
            rows.extend([tuple(itertools.islice(numbers, len(row))) for row in waiting])
            waiting.clear()
        return [list(itertools.islice(numbers, len(each))) for each in beside]

    def _expect_rows(self) -> None:
        """Name the metric whose sums are not a few numbers."""
        for metric, waiting in zip(self.metrics, self._waiting, strict=True):
            for row in waiting:
                if not isinstance(row, tuple | list) or not all(map(_is_number, row)):
                    raise ArgumentError(
                        f"`sums` of the metric `{metric.name}` returned {row!r}; expected a "
                        "tuple of numbers or tensors with one number, such as (hits, items)"
                    )

    def sums(self) -> list[Row]:
        """The sums of every metric on this rank; empty for one without rows."""
        self.fetch()
        return [tuple(math.fsum(column) for column in zip(*rows)) for rows in self.rows]  # noqa: B905

    def clear(self) -> None:
        """Begin a new window."""
        for waiting in self._waiting:
            waiting.clear()
        self.rows = [[] for _ in self.metrics]

    def state(self) -> dict[str, list[Row]]:
        """The rows of this rank by the name of their metric, as JSON."""
        self.fetch()
        return {each.name: rows for each, rows in zip(self.metrics, self.rows, strict=True)}

    def load(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Continue with rows that were saved, of one rank or more; unknown ones are dropped."""
        self.clear()
        for metric, rows in zip(self.metrics, self.rows, strict=True):
            for state in states:
                rows.extend(map(tuple, state.get(metric.name, ())))

    def values(self, of_ranks: Sequence[Sequence[Row]], window: Window) -> dict[str, Any]:
        """The values of all metrics, from the sums of all ranks."""
        found: dict[str, Any] = {}
        for metric, each in zip(self.metrics, zip(*of_ranks, strict=True), strict=True):
            rows = [row for row in each if row]
            total = [math.fsum(column) for column in zip(*rows, strict=True)]
            found[metric.name] = metric.value(total, window) if total else None
        return found


def counts(metric: Metric) -> bool:
    """Whether the rows of a metric are the items of micro-batches, and nothing else."""
    return type(metric) in (Throughput, ModelFlops)


def _is_number(x: object) -> bool:
    return x.numel() == 1 if isinstance(x, Tensor) else isinstance(x, int | float)


def to_host(given: list[Any]) -> list[float]:
    """0-d tensors and numbers as numbers, with one copy from the device."""
    found = given.copy()
    kinds: dict[Any, list[int]] = {}
    for at, x in enumerate(given):
        if isinstance(x, Tensor):
            if x.is_cpu:
                found[at] = float(x.item())  # which is faster than `float(x)`
            else:
                kinds.setdefault((x.dtype, x.device), []).append(at)
    joined = [torch.stack([given[at] for at in places]).double() for places in kinds.values()]
    # One copy where all are on one device, as they nearly always are.
    if len({device for _, device in kinds}) == 1:
        joined = [torch.cat(joined)]
    numbers = (x for each in joined for x in each.tolist())
    for at, x in zip(itertools.chain(*kinds.values()), numbers, strict=True):
        found[at] = x
    return found
