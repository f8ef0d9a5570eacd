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
        self._waiting: list[list[Sums]] = [[] for _ in self.metrics]
        self.rows: list[list[Row]] = [[] for _ in self.metrics]

    def see(self, seen: Seen, per: str = "batch") -> None:
        """Add a row for every metric of a kind."""
        for at, metric in self._by[per]:
            self._waiting[at].append(metric.sums(seen))

    def fetch(self, beside: Sequence[Sums] = ()) -> list[Row]:
        """Bring what is on the device to the host, and other rows with the same copy.

        Returns:
            The other rows.
        """
        waiting, self._waiting = self._waiting, [[] for _ in self.metrics]
        *found, others = to_host([*waiting, beside])
        for rows, new in zip(self.rows, found, strict=True):
            rows.extend(new)
        return others

    def sums(self) -> list[Row]:
        """The sums of every metric on this rank; empty for one without rows."""
        self.fetch()
        return [tuple(math.fsum(column) for column in zip(*rows)) for rows in self.rows]  # noqa: B905

    def clear(self) -> None:
        """Begin a new window."""
        self._waiting = [[] for _ in self.metrics]
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


def to_host(tables: Sequence[Sequence[Sums]]) -> list[list[Row]]:
    """Tables of 0-d tensors and numbers as numbers, with one copy from the device.

    Args:
        tables: Rows of equal length in each. A column usually has one dtype.
    """
    columns = [list(zip(*rows, strict=True)) for rows in tables]
    stacks: dict[Any, list[Tensor]] = {}
    places: list[list[tuple[Any, int] | None]] = []
    for table in columns:
        places.append([])
        for column in table:
            first = next((each for each in column if isinstance(each, Tensor)), None)
            if first is None:
                places[-1].append(None)
                continue
            stack = stacks.setdefault((first.dtype, first.device), [])
            places[-1].append(((first.dtype, first.device), len(stack)))
            if {*map(type, column)} == {Tensor}:
                stack += column
            else:
                stack += [torch.as_tensor(each, device=first.device) for each in column]
    numbers = _copied(stacks)
    found: list[list[Row]] = []
    for table, spots in zip(columns, places, strict=True):
        plain = [
            column if spot is None else numbers[spot[0]][spot[1] : spot[1] + len(column)]
            for column, spot in zip(table, spots, strict=True)
        ]
        found.append(list(zip(*plain, strict=True)))
    return found


def _copied(stacks: dict[Any, list[Tensor]]) -> dict[Any, list[float]]:
    joined = {key: torch.stack(each).double() for key, each in stacks.items()}
    if len({device for _, device in joined}) > 1:
        return {key: each.tolist() for key, each in joined.items()}
    # One copy where all are on one device, as they nearly always are.
    flat = torch.cat([*joined.values()]).tolist() if joined else []
    found: dict[Any, list[float]] = {}
    at = 0
    for key, each in joined.items():
        found[key] = flat[at : at + len(each)]
        at += len(each)
    return found
