"""The sums of a window: on the device until they are needed, then on the host."""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
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

    Args:
        metrics: What is shown, in order.
        given: The names of metrics whose rows are given to `take`; they see nothing.
    """

    def __init__(self, metrics: Sequence[Metric], given: Collection[str] = ()) -> None:
        self.metrics = tuple(metrics)
        self._given = frozenset(given)
        self._waiting: list[list[Sums]] = [[] for _ in self.metrics]
        self._by = {
            per: [
                (each.sums, rows)
                for each, rows in zip(self.metrics, self._waiting, strict=True)
                if each.per == per and each.name not in self._given
            ]
            for per in ("batch", "step")
        }
        self.rows: list[list[Row]] = [[] for _ in self.metrics]

    def see(self, seen: Seen, per: str = "batch") -> None:
        """Add a row for every metric of a kind."""
        for sums, rows in self._by[per]:
            rows.append(sums(seen))

    def take(self, found: Mapping[str, Sequence[Row]]) -> None:
        """Add rows that are known on the host, by the name of their metric."""
        for metric, rows in zip(self.metrics, self.rows, strict=True):
            if metric.name in self._given:
                rows.extend(found[metric.name])

    def fetch(self, *beside: Sequence[Sums]) -> list[list[Row]]:
        """Bring what is on the device to the host, and other tables with the same copy.

        Returns:
            The other tables.
        """
        found = to_host([*self._waiting, *beside])
        for rows, waiting, new in zip(self.rows, self._waiting, found, strict=False):
            rows.extend(new)
            waiting.clear()
        return found[len(self.rows) :]

    def sums(self) -> list[Row]:
        """The sums of every metric on this rank; empty for one without rows."""
        self.fetch()
        return [tuple(math.fsum(column) for column in zip(*rows)) for rows in self.rows]  # noqa: B905

    def clear(self) -> None:
        """Begin a new window."""
        for waiting in self._waiting:
            waiting.clear()
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
    """Tables of 0-d tensors and numbers as numbers, with one copy from the device."""
    flat: list[Any] = [x for rows in tables for row in rows for x in row]
    kinds: dict[Any, list[int]] = {}
    for at, x in enumerate(flat):
        if isinstance(x, Tensor) and x.is_cpu:
            flat[at] = float(x)
        elif isinstance(x, Tensor):
            kinds.setdefault((x.dtype, x.device), []).append(at)
    joined = [torch.stack([flat[at] for at in places]).double() for places in kinds.values()]
    # One copy where all are on one device, as they nearly always are.
    if len({device for _, device in kinds}) == 1:
        joined = [torch.cat(joined)]
    numbers = (x for each in joined for x in each.tolist())
    for at, x in zip(itertools.chain(*kinds.values()), numbers, strict=True):
        flat[at] = x
    values = iter(flat)
    return [[tuple(itertools.islice(values, len(row))) for row in rows] for rows in tables]
