"""Entropies of a corpus: sums that add up, and histograms in the schema of BLT-Burn."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotgrid.errors import ArgumentError

from ._document_file import FINE, count_entropies

_PERCENTILES = (25, 50, 75, 90, 95, 99)


class EntropyTotals:
    """Adds up what documents say about their entropies."""

    def __init__(self) -> None:
        self.count, self._sum, self._squares = 0, 0.0, 0.0
        self.least, self.most = math.inf, -math.inf
        self._bins: Counter[int] = Counter()

    def add(self, counted: Mapping[str, Any]) -> None:
        """Add those of a document."""
        self.count += counted["count"]
        self._sum += counted["sum"]
        self._squares += counted["squares"]
        self.least = min(self.least, counted["least"])
        self.most = max(self.most, counted["most"])
        self._bins.update({int(each): count for each, count in counted["bins"].items()})

    def statistics(self) -> dict[str, Any]:
        """Smallest, largest, mean and standard deviation, in nats; exact."""
        if not self.count:
            return {"min": 0.0, "max": 0.0, "mean": 0.0, "std": 0.0, "total_tokens": 0}
        mean = self._sum / self.count
        spread = math.sqrt(max(0.0, self._squares / self.count - mean**2))
        return {
            "min": self.least,
            "max": self.most,
            "mean": mean,
            "std": spread,
            "total_tokens": self.count,
        }

    def percentiles(self) -> dict[str, float]:
        """Percentiles, to within a fine bin of 0.02 nats."""
        bins = sorted(self._bins)
        ends = np.cumsum([self._bins[each] for each in bins])
        found = {}
        for level in _PERCENTILES:
            at = int(np.searchsorted(ends, level / 100 * self.count)) if self.count else 0
            value = (bins[min(at, len(bins) - 1)] + 0.5) * FINE if bins else 0.0
            found[f"p{level}"] = min(max(value, self.least), self.most) if bins else 0.0
        return found

    def fine(self) -> tuple[list[float], list[int]]:
        """Edges and counts of the fine bins from 0 on."""
        last = max(self._bins, default=0)
        edges = [round(FINE * each, 6) for each in range(last + 2)]
        return edges, [self._bins[each] for each in range(last + 1)]

    def table(self, edges: list[float], counts: list[int]) -> dict[str, Any]:
        """All of it, in the schema of BLT-Burn."""
        return {
            "statistics": self.statistics(),
            "percentiles": self.percentiles(),
            "histogram": {
                "num_bins": len(counts),
                "bin_width": edges[1] - edges[0],
                "bin_edges": edges,
                "counts": counts,
            },
        }


def binned(
    entropies: Iterable[NDArray[np.floating]], span: tuple[float, float], bins: int
) -> dict[str, Any]:
    """A histogram with equal bins, in the schema of BLT-Burn.

    Args:
        entropies: The entropies of each document.
        span: The smallest and the largest of all.
        bins: How many bins.

    Raises:
        ArgumentError: There is less than one bin.
    """
    if not 1 <= bins <= 100_000:
        raise ArgumentError(f"`bins` must be from 1 to 100,000, got {bins}")
    low, high = span
    edges = np.linspace(low, high if high > low else low + 1.0, bins + 1)
    counts, totals = np.zeros(bins, np.int64), EntropyTotals()
    for each in entropies:
        totals.add(count_entropies(each))
        counts += np.histogram(each.astype(np.float64), edges)[0]
    return totals.table(edges.tolist(), counts.tolist())
