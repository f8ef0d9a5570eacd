"""Directions of points: three principal axes of their features."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError

BUCKETS = 256
_LENGTHS = (1, 2, 3)
_BLOCK = 1 << 20
_GOLDEN = math.pi * (3 - math.sqrt(5))


def ngram_features(texts: Sequence[bytes]) -> Tensor:
    """Return how often n-grams of 1 to 3 bytes are in each text, hashed, with length 1.

    An n-gram adds 1 or -1 to one of 256 buckets, so that those which share one cancel out on
    average. Counts are damped: an n-gram twice as frequent does not count twice.
    """
    sizes = np.array([len(each) for each in texts], dtype=np.int64)
    ends = np.cumsum(sizes)
    data = np.frombuffer(b"".join(texts), np.uint8)
    found = np.zeros((len(texts), BUCKETS))
    longest = max(_LENGTHS)
    for begin in range(0, len(data), _BLOCK):
        block = data[begin : begin + _BLOCK + longest - 1].astype(np.uint32)
        places = np.arange(begin, min(begin + _BLOCK, len(data)))
        owners = np.searchsorted(ends, places, side="right")
        left = ends[owners] - places
        gram = np.zeros(len(places), np.uint32)
        for length in _LENGTHS:
            inside = np.flatnonzero(left >= length)
            last = block[inside + length - 1]
            gram[inside] = gram[inside] * np.uint32(257) + last + np.uint32(1)
            key = gram[inside] * np.uint32(2654435761)
            key ^= key >> np.uint32(15)
            bucket = owners[inside] * BUCKETS + (key % BUCKETS).astype(np.int64)
            signs = np.where((key >> np.uint32(16)) & np.uint32(1), 1.0, -1.0)
            counts = np.bincount(bucket, signs, minlength=found.size)
            found += counts.reshape(found.shape)
    found = np.sign(found) * np.log1p(np.abs(found))
    return unit(torch.from_numpy(found))


def unit(vectors: Tensor) -> Tensor:
    """Vectors of length 1 in float64; zero stays zero."""
    exact = vectors.double()
    size = exact.norm(dim=-1, keepdim=True)
    return exact / size.where(size > 0, torch.ones_like(size))


@dataclass(frozen=True)
class Projection:
    """A projection of features to directions.

    Attributes:
        mean: The mean, which is subtracted, of shape `(d,)`.
        axes: Three rows to multiply with, of shape `(3, d)`.
    """

    mean: Tensor
    axes: Tensor

    @checked(features="n d", returns="n 3")
    def units(self, features: Tensor) -> Tensor:
        """Return directions; features equal to the mean point along x."""
        found = (features - self.mean.to(features)) @ self.axes.to(features).T
        size = found.norm(dim=1, keepdim=True)
        ahead = found.new_tensor([1.0, 0.0, 0.0])
        return torch.where(size > 1e-9, found / size.clamp(min=1e-9), ahead)

    def to_table(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"mean": self.mean.tolist(), "axes": self.axes.tolist()}

    @classmethod
    def from_table(cls, table: dict[str, Any]) -> "Projection":
        """Return the projection that `to_table` described."""
        mean, axes = (
            torch.tensor(table[name], dtype=torch.float64) for name in ("mean", "axes")
        )
        return cls(mean, axes)


class PrincipalAxes:
    """The mean and the covariance of features that come in parts.

    Args:
        device: Where the sums are kept.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._count = 0
        self._sum: Tensor | None = None
        self._squares: Tensor | None = None

    def add(self, features: Tensor) -> None:
        """Add rows of features."""
        rows = features.to(self._device, torch.float64)
        total, squares = rows.sum(0), rows.T @ rows
        self._sum = total if self._sum is None else self._sum + total
        self._squares = squares if self._squares is None else self._squares + squares
        self._count += len(rows)

    def projection(self) -> Projection:
        """The three axes with the largest variance, each scaled to a variance of 1."""
        if self._sum is None or self._squares is None:
            raise ArgumentError("there are no features to find axes of")
        mean = (self._sum / self._count).cpu()
        covariance = self._squares.cpu() / self._count - torch.outer(mean, mean)
        values, vectors = torch.linalg.eigh(covariance)
        axes = vectors.T.flip(0)[:3]
        variance = values.flip(0)[:3]
        # An axis and its opposite are equally good: the largest part is positive.
        largest = axes.gather(1, axes.abs().argmax(1, keepdim=True))
        used = (variance > 1e-9 * variance[:1].clamp(min=1e-12))[:, None]
        axes = torch.where(
            used, axes * largest.sign() / variance.clamp(min=1e-30).sqrt()[:, None], 0.0
        )
        missing = 3 - len(axes)
        return Projection(mean, torch.cat([axes, axes.new_zeros(missing, axes.shape[1])]))


def spiral(count: int) -> NDArray[np.float64]:
    """Directions in order along a spiral from pole to pole, evenly over the sphere."""
    place = np.arange(count)
    height = 1 - (2 * place + 1) / max(count, 1)
    wide = np.sqrt(np.maximum(0, 1 - height**2))
    angle = place * _GOLDEN
    return np.stack([wide * np.cos(angle), wide * np.sin(angle), height], axis=1)
