"""Segmenters by entropy: a patch begins where the next byte is hard to predict."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from hotgrid.blt._entropy._byte_model import ByteModel
from hotgrid.contracts import assert_shape
from hotgrid.errors import ArgumentError

from ._segmenter import CausalSegmenter, Segmenter, SegmentStream


@dataclass(frozen=True)
class EntropySegmenter(Segmenter):
    """Cuts by the entropies of a model; subclasses say how.

    Args:
        model: Predicts bytes; an `EntropyModel` or an `NgramTable`.
    """

    model: ByteModel

    def starts(self, data: bytes) -> Tensor:
        """Return for each byte whether a patch begins with it, as bool of shape `(t,)`."""
        return self.starts_of(self.model.entropies(data))

    @abstractmethod
    def starts_of(self, entropies: Tensor) -> Tensor:
        """Return where patches begin, from entropies that were computed before."""


@dataclass(frozen=True)
class _Causal(EntropySegmenter, CausalSegmenter):
    """Rules that need the last two entropies.

    Args:
        threshold: In nats; by default the one that the model was calibrated with for `size`.
        size: The mean length of patches that the threshold was calibrated for.
    """

    kind: ClassVar[str]

    threshold: float | None = None
    size: float = 4.5

    def __post_init__(self) -> None:
        if self.threshold is None:
            object.__setattr__(self, "threshold", calibrated(self.model, self.kind, self.size))
        elif self.threshold != self.threshold:
            raise ArgumentError("`threshold` is not a number; it is in nats, such as 1.3")

    def starts(self, data: bytes) -> Tensor:
        """Return for each byte whether a patch begins with it, as bool of shape `(t,)`."""
        return self.starts_of(self.model.entropies(data))

    def starts_of(self, entropies: Tensor) -> Tensor:
        """Return where patches begin, from entropies that were computed before."""
        assert_shape("t", entropies)
        return self.continued(entropies.new_empty(0), 0, entropies)

    def stream(self) -> SegmentStream:
        """Return a stream for bytes that come in parts."""
        return _Stream(self)

    @abstractmethod
    def continued(self, last: Tensor, at: int, entropies: Tensor) -> Tensor:
        """Return where patches begin in bytes from position `at` on.

        Args:
            last: The entropy of the byte before; empty at the beginning.
            at: How many bytes there were before.
            entropies: The entropies of the bytes that follow.
        """


class _Stream(SegmentStream):
    def __init__(self, segmenter: _Causal) -> None:
        self._segmenter, self._entropies = segmenter, segmenter.model.stream()
        self._last, self._at = torch.empty(0), 0

    def push(self, data: bytes) -> Tensor:
        found = self._entropies.push(data)
        starts = self._segmenter.continued(self._last.to(found), self._at, found)
        self._at += len(data)
        self._last = torch.cat([self._last.to(found), found])[-1:]
        return starts


@dataclass(frozen=True)
class EntropyThreshold(_Causal):
    """A patch begins where the entropy is above a threshold: the global rule of BLT."""

    kind: ClassVar[str] = "threshold"

    def continued(self, last: Tensor, at: int, entropies: Tensor) -> Tensor:
        """Return where patches begin in bytes from position `at` on."""
        return _forced(entropies > _known(self.threshold), at, 1)


@dataclass(frozen=True)
class EntropyJump(_Causal):
    """A patch begins where the entropy grows by more than a threshold: the monotonic rule.

    It adapts to slow changes, as in repetitive text. As in BLT, the second byte begins one too.
    """

    kind: ClassVar[str] = "jump"

    def continued(self, last: Tensor, at: int, entropies: Tensor) -> Tensor:
        """Return where patches begin in bytes from position `at` on."""
        return _forced(_growth(last, entropies) > _known(self.threshold), at, 2)


@dataclass(frozen=True)
class EntropyThresholdAndJump(_Causal):
    """A patch begins where the entropy is above a threshold and grows by more than `jump`.

    As in BLT, the second byte begins one and the third does not.
    """

    kind: ClassVar[str] = "threshold"

    jump: float = 0.0

    def continued(self, last: Tensor, at: int, entropies: Tensor) -> Tensor:
        """Return where patches begin in bytes from position `at` on."""
        above = entropies > _known(self.threshold)
        found = above & (_growth(last, entropies) > self.jump)
        found[max(0, 2 - at) : max(0, 3 - at)] = False
        return _forced(found, at, 2)


@dataclass(frozen=True)
class EntropyBudget(EntropySegmenter):
    """Patches at the highest entropies of a document, as many as a mean length gives.

    It compares all entropies, so it is not causal. Of equal ones the first is taken.

    Args:
        model: Predicts bytes.
        size: Mean length of a patch in bytes.

    Raises:
        ArgumentError: The size is below 1.
    """

    size: float = 4.5

    def __post_init__(self) -> None:
        if not self.size >= 1:
            raise ArgumentError(f"`size` is {self.size}; expected a mean length from 1 byte")

    def starts_of(self, entropies: Tensor) -> Tensor:
        """Return where patches begin, from entropies that were computed before."""
        assert_shape("t", entropies)
        starts = torch.zeros(len(entropies), dtype=torch.bool, device=entropies.device)
        count = max(1, int(len(entropies) // self.size))
        order = entropies[1:].argsort(descending=True, stable=True)
        starts[order[: count - 1] + 1] = True
        starts[:1] = True
        return starts


def calibrated(model: ByteModel, kind: str, size: float) -> float:
    """Return the threshold of a model for a mean length of patches.

    Raises:
        ArgumentError: It was not calibrated for this.
    """
    table = model.thresholds.get(kind, {})
    key = f"{size:g}"
    if key not in table:
        sizes = sorted(table, key=lambda each: abs(float(each) - size))
        known = (
            f"; it was calibrated for {', '.join(table)}, of which {sizes[0]} is the nearest"
            if table
            else ": it was not calibrated"
        )
        raise ArgumentError(
            f"the model has no `{kind}` threshold for patches of {key} bytes{known}. Give a "
            "`threshold` in nats (--threshold), such as 1.3; or calibrate it: "
            "`model.thresholds = calibrate_thresholds(model, documents)`, then save it"
        )
    return table[key]


def _known(threshold: float | None) -> float:
    assert threshold is not None  # noqa: S101 - set when the segmenter was made
    return threshold


def _growth(last: Tensor, entropies: Tensor) -> Tensor:
    """Each entropy minus the one before; the first of all does not count."""
    first = last if len(last) else entropies[:1]
    return torch.diff(torch.cat([first, entropies]))


def _forced(starts: Tensor, at: int, count: int) -> Tensor:
    """Mark the first `count` bytes of all as beginnings of patches."""
    starts[: max(0, count - at)] = True
    return starts
