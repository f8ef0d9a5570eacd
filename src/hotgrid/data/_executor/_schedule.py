"""Which samples are in which batch: a function of the position."""

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotgrid.cluster import shard_of
from hotgrid.data._plan import Order, SampleDraws
from hotgrid.errors import ArgumentError

Numbers = NDArray[np.int64]


class BatchRows(NamedTuple):
    """The samples of a batch, of all ranks together.

    `repeats` counts how often a sample was in the epoch before; `longest` is the limit of the
    bucket.
    """

    epoch: int
    indices: Numbers
    repeats: Numbers | None
    longest: int | None


class Schedule:
    """The batches of all epochs, by number.

    Args:
        order: The order of the plan.
        samples: How many samples there are.
        size: Rows of a batch, of all ranks together.
        last: Whether batches that are not full are dropped.
        lengths: The length of every sample, for buckets.

    Raises:
        ArgumentError: There is no batch in an epoch, or a sample is too long.
    """

    def __init__(
        self,
        order: Order,
        samples: int,
        size: int,
        last: Literal["drop", "short"],
        lengths: Numbers | None = None,
    ) -> None:
        self._order, self._samples, self._size, self._last = order, samples, size, last
        self._bucket_of: Numbers | None = None
        if order.buckets and lengths is not None:
            self._bucket_of = np.searchsorted(np.array(order.buckets), lengths)
            if (self._bucket_of == len(order.buckets)).any():
                at = int(np.argmax(lengths))
                raise ArgumentError(
                    f"sample {at} has `{order.length}` {lengths[at]}, more than the last of "
                    f"`buckets` {order.buckets}"
                )
            counts = np.bincount(self._bucket_of, minlength=len(order.buckets))
            self._length = sum(self._batches(int(count)) for count in counts)
        else:
            self._length = self._batches(order.samples or samples)
        if not self._length:
            raise ArgumentError(
                f"an epoch of {order.samples or samples} samples has no batch of {size}; make "
                "the batch smaller, or use `last='short'`"
            )
        # A batch of the next epoch is prepared while this one is used.
        self._epoch = lru_cache(maxsize=2)(self._laid_out)

    def __len__(self) -> int:
        return self._length

    def rows(self, number: int) -> BatchRows:
        """The samples of a batch."""
        epoch, at = divmod(number, self._length)
        indices, repeats, batches = self._epoch(epoch)
        if batches is not None:
            begin, end, longest = batches[at]
        else:
            begin, longest = at * self._size, None
            end = begin + self._size
        chosen = None if repeats is None else repeats[begin:end]
        return BatchRows(epoch, indices[begin:end], chosen, longest)

    def _batches(self, samples: int) -> int:
        full, rest = divmod(samples, self._size)
        return full + (self._last == "short" and rest > 0)

    def _laid_out(self, epoch: int) -> tuple[Numbers, Numbers | None, Any]:
        order = self._order
        if order.samples is not None:
            generator = SampleDraws(order.seed, epoch).generator()
            indices = generator.integers(0, self._samples, order.samples)
            return indices, _occurrences(indices), None
        indices = shard_of(
            self._samples, 0, 1, epoch=epoch, seed=order.seed, shuffle=order.shuffle
        ).numpy()
        if self._bucket_of is None:
            return indices, None, None
        sorted_by = np.argsort(self._bucket_of[indices], kind="stable")
        indices = indices[sorted_by]
        batches, at = [], 0
        counts = np.bincount(self._bucket_of, minlength=len(order.buckets))
        for longest, count in zip(order.buckets, counts.tolist(), strict=True):
            for number in range(self._batches(count)):
                begin = at + number * self._size
                batches.append((begin, min(begin + self._size, at + count), longest))
            at += count
        if order.shuffle:
            mixed = shard_of(len(batches), 0, 1, epoch=epoch, seed=order.seed + 1)
            batches = [batches[each] for each in mixed.tolist()]
        return indices, None, batches


def _occurrences(indices: Numbers) -> Numbers:
    """How often each value was there before."""
    order = np.argsort(indices, kind="stable")
    values = indices[order]
    begins = np.r_[True, values[1:] != values[:-1]]
    starts = np.maximum.accumulate(np.where(begins, np.arange(len(values)), 0))
    found = np.empty_like(indices)
    found[order] = np.arange(len(values)) - starts
    return found
