"""The sums of a window: on the device until they are needed, then on the host."""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ._metric import Metric, Seen, Sums, Window

Row: TypeAlias = "tuple[float, ...]"


class Ledger:
    """What metrics have found since they were last shown.

    Nothing is computed when a row is added. `fetch` brings all rows to the host with one
    copy. Rows are summed when they are shown, with one rounding, so that it does not
    matter how often they were fetched.
    """

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.metrics = tuple(metrics)
        self._by = {
            per: [(at, each) for at, each in enumerate(self.metrics) if each.per == per]
            for per in ("batch", "step")
        }
        self._waiting: list[tuple[int, Sums]] = []
        self.rows: list[list[Row]] = [[] for _ in self.metrics]

    def see(self, seen: Seen, per: str = "batch") -> None:
        """Add a row for every metric of a kind."""
        for at, metric in self._by[per]:
            self._waiting.append((at, metric.sums(seen)))

    def fetch(self) -> None:
        """Bring what is on the device to the host."""
        waiting, self._waiting = self._waiting, []
        for (at, _), row in zip(waiting, to_host([row for _, row in waiting]), strict=True):
            self.rows[at].append(row)

    def sums(self) -> list[Row]:
        """The sums of every metric on this rank; empty for one without rows."""
        self.fetch()
        return [tuple(math.fsum(column) for column in zip(*rows)) for rows in self.rows]  # noqa: B905

    def clear(self) -> None:
        """Begin a new window."""
        self._waiting.clear()
        self.rows = [[] for _ in self.metrics]

    def state(self) -> list[list[Row]]:
        """The rows of this rank, as JSON."""
        self.fetch()
        return self.rows

    def load(self, state: Any) -> None:
        """Go on with rows that were saved."""
        self.clear()
        self.rows = [[tuple(row) for row in rows] for rows in state]

    def values(self, of_ranks: Sequence[Sequence[Row]], window: Window) -> dict[str, Any]:
        """The values of all metrics, from the sums of all ranks."""
        found: dict[str, Any] = {}
        for metric, each in zip(self.metrics, zip(*of_ranks, strict=True), strict=True):
            rows = [row for row in each if row]
            total = [math.fsum(column) for column in zip(*rows, strict=True)]
            found[metric.name] = metric.value(total, window) if total else None
        return found


def to_host(rows: Sequence[Sums]) -> list[Row]:
    """Rows of 0-d tensors and numbers as numbers, with one copy for each dtype."""
    tensors: dict[Any, list[Tensor]] = {}
    for row in rows:
        for each in row:
            if isinstance(each, Tensor):
                tensors.setdefault((each.dtype, each.device), []).append(each)
    stacked = [torch.stack(each).double() for each in tensors.values()]
    # One copy where all are on one device, as they nearly always are.
    devices = {each.device for each in stacked}
    if len(devices) == 1:
        flat = torch.cat(stacked).tolist()
    else:
        flat = [number for each in stacked for number in each.tolist()]
    iterators = {}
    at = 0
    for key, each in tensors.items():
        iterators[key] = iter(flat[at : at + len(each)])
        at += len(each)
    return [
        tuple(
            next(iterators[each.dtype, each.device]) if isinstance(each, Tensor) else each
            for each in row
        )
        for row in rows
    ]
