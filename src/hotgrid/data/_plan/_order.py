"""In which order an epoch takes the samples."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hotgrid.errors import ArgumentError

from ._documents import build_document, document_fields


@dataclass(frozen=True)
class Order:
    """The order of samples in an epoch: a function of the seed and the epoch.

    Args:
        shuffle: False keeps the order of the source, in every epoch.
        seed: Another seed gives another order, and other random numbers to operators.
        samples: Draw this many samples with replacement in every epoch. None takes every
            sample once.
        buckets: Batches hold samples of similar length: a bucket for every one of these
            longest lengths, ascending. What is longer is an error.
        length: The column, a number, that is the length of a sample.

    Raises:
        ArgumentError: The settings contradict each other.

    Example:
        >>> Order(buckets=(64, 128), length="tokens").buckets
        (64, 128)
    """

    shuffle: bool = True
    seed: int = 0
    samples: int | None = None
    buckets: tuple[int, ...] = ()
    length: str = ""

    def __post_init__(self) -> None:
        if self.samples is not None and self.samples < 1:
            raise ArgumentError(f"`samples` {self.samples}: draw 1 or more in an epoch")
        if self.samples is not None and not self.shuffle:
            raise ArgumentError("`samples` are drawn at random; it needs `shuffle=True`")
        if bool(self.buckets) != bool(self.length):
            raise ArgumentError("`buckets` and `length`, the column, are given together")
        if list(self.buckets) != sorted({*self.buckets}):
            raise ArgumentError(f"`buckets` {self.buckets} are not ascending")
        if self.buckets and self.samples is not None:
            # The number of batches would be another in every epoch.
            raise ArgumentError("`buckets` and `samples` cannot be combined; choose one")

    @classmethod
    def from_plain(cls, document: Mapping[str, Any], where: str = "the order") -> "Order":
        """Read an order from JSON."""
        return build_document(cls, document, where)

    def to_plain(self) -> dict[str, Any]:
        """Return the settings that are not defaults, as JSON."""
        return document_fields(self)
