"""Where batches come from: a function of the position, or a stream with a state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from hotgrid.cluster import shard_of
from hotgrid.errors import ArgumentError

Structure = TypeVar("Structure")


@runtime_checkable
class Batches(Protocol):
    """Batches by position: each batch is a function of its index.

    A source for evaluation also has `__len__`, the number of batches in one pass. A source
    may have an `identity`, a text that a resumed run must have too.
    """

    def batch(self, index: int, rank: int, ranks: int) -> Any:
        """Return one rank's part of batch `index`; all parts together are the batch."""
        ...


@runtime_checkable
class BatchStream(Protocol):
    """Batches in sequence, each rank its own, for sources that cannot jump.

    `state` returns a small JSON value, and `load` goes back to it exactly. A stream may have an
    `identity`, a text that a resumed run must have too.
    """

    def __next__(self) -> Any:
        """Return the next batch of this rank."""
        ...

    def state(self) -> Any:
        """Return the position of the stream, as JSON."""
        ...

    def load(self, state: Any) -> None:
        """Go back to a position that `state` returned."""
        ...


class TensorBatches:
    """Batches of tensors that are in memory, reshuffled in every pass.

    The order of a pass depends on the seed and the number of the pass alone. Batches
    follow each other without a gap, so one of 64 rows is two of 32, and the ranks share
    the rows of a batch. `len` is the number of batches in one pass.

    Args:
        tensors: A tensor, or a tuple or dict of them, with equally many rows.
        size: Rows of a batch, of all ranks together.
        seed: The random seed of the order.
        shuffle: False keeps the order of the rows.
        endless: True lets a batch continue into the next pass. False ends a pass with a
            shorter batch, as evaluation needs it.

    Raises:
        ArgumentError: Tensors have different numbers of rows, or a size is invalid.

    Example:
        >>> source = TensorBatches(torch.arange(5), size=2, shuffle=False)
        >>> [source.batch(index, rank=0, ranks=1).tolist() for index in range(3)]
        [[0, 1], [2, 3], [4, 0]]
        >>> source.batch(1, rank=1, ranks=2).tolist()
        [3]
    """

    def __init__(
        self,
        tensors: Any,
        size: int,
        *,
        seed: int = 0,
        shuffle: bool = True,
        endless: bool = True,
    ) -> None:
        _expect_tensors(tensors)
        rows = {len(each) for each in _leaves(tensors)}
        if len(rows) != 1 or not rows or 0 in rows:
            raise ArgumentError(
                f"`tensors` have {sorted(rows) or 'no'} rows; expected tensors with equally "
                "many, and at least one"
            )
        if type(size) is not int or size < 1:
            raise ArgumentError(f"`size` is {size!r}; expected a number of rows from 1")
        self.rows = rows.pop()
        self.size = size
        self.endless = endless
        self.identity = (
            f"{self.rows} rows, {size} in a batch, seed {seed}, "
            f"{'shuffled' if shuffle else 'in order'}{'' if endless else ', passes apart'}"
        )
        self._tensors = tensors
        device = next(iter(_leaves(tensors))).device

        # Two passes: a batch may begin in one and end in the next.
        @lru_cache(maxsize=2)
        def order(epoch: int) -> Tensor:
            found = shard_of(self.rows, 0, 1, epoch=epoch, seed=seed, shuffle=shuffle)
            return found.to(device)

        self._order = order

    def __len__(self) -> int:
        return (self.rows + self.size - 1) // self.size

    def batch(self, index: int, rank: int = 0, ranks: int = 1) -> Any:
        """Return one rank's part of a batch.

        Raises:
            ArgumentError: The rows of a batch cannot be shared equally by the ranks.
        """
        self._expect_shares(ranks)
        at = index * self.size
        parts: list[Tensor] = []
        left = self.size
        if not self.endless:
            left = min(left, self.rows - at % (len(self) * self.size))
            at = at % (len(self) * self.size) + (index // len(self)) * self.rows
        while left:
            epoch, row = divmod(at, self.rows)
            parts.append(self._order(epoch)[row : row + left])
            at, left = at + len(parts[-1]), left - len(parts[-1])
        places = parts[0] if len(parts) == 1 else torch.cat(parts)
        if ranks > 1:
            places = places[rank::ranks]
        return mapped(self._tensors, lambda x: x.index_select(0, places))

    def _expect_shares(self, ranks: int) -> None:
        """Refuse ranks that would have more rows than others, in any batch."""
        size, last = self.size, 0
        if not self.endless:
            size, last = min(size, self.rows), self.rows % size
        if size % ranks:
            raise ArgumentError(
                f"a batch of {size} rows cannot be shared equally by {ranks} ranks; use a "
                f"`size` that is a multiple of {ranks}"
            )
        if last % ranks:
            raise ArgumentError(
                f"the last batch of a pass has {last} rows, which cannot be shared equally by "
                f"{ranks} ranks; use `endless=True`, or leave out {last % ranks}"
            )


class Feed:
    """The batches of one rank, with their positions, without those that are skipped."""

    def __init__(self, source: Batches | BatchStream, rank: int, ranks: int) -> None:
        if not isinstance(source, Batches | BatchStream):
            raise ArgumentError(
                f"`batches` is a {type(source).__name__}; expected an object with "
                "`batch(index, rank, ranks)`, such as `TensorBatches`, or an iterator with "
                "`state()` and `load(state)`, which can be resumed exactly"
            )
        self.position = 0
        self.skipped: set[int] = set()
        self._rank, self._ranks = rank, ranks
        self._source = source if isinstance(source, Batches) else None
        self._stream = None if self._source else cast("BatchStream", source)

    def __next__(self) -> tuple[int, Any]:
        while self.position in self.skipped:
            if self._stream is not None:
                self._take()
            self.position += 1
        position, source = self.position, self._source
        if source is not None:
            found = source.batch(position, self._rank, self._ranks)
        else:
            found = self._take()
        self.position = position + 1
        return position, found

    def _take(self) -> Any:
        try:
            return next(cast("BatchStream", self._stream))
        except StopIteration:
            raise ArgumentError(
                f"the batches ended after {self.position}, before the last step; use a stream "
                "that begins again (`epochs=None`), or fewer `steps`"
            ) from None

    def state(self) -> Any:
        """The state of a stream; None for a function of the position."""
        return None if self._stream is None else self._stream.state()

    def load(self, position: int, skipped: Iterable[int], states: Sequence[Any]) -> None:
        """Go to a position; for a stream, to the state of this rank.

        Raises:
            ArgumentError: A stream had another number of ranks.
        """
        self.position, self.skipped = position, set(skipped)
        if self._stream is None:
            return
        if len(states) != self._ranks:
            raise ArgumentError(
                f"the batches are a stream, of which each of {len(states)} ranks had its own "
                f"part, and now there are {self._ranks}; continue on {len(states)}, or make "
                "batches by position (`batch(index, rank, ranks)`), which any number can share"
            )
        self._stream.load(states[self._rank])


def mapped(batch: Any, change: Any) -> Any:
    """A batch of the same structure with every tensor changed."""
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, Mapping):
        return {name: mapped(each, change) for name, each in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(mapped(each, change) for each in batch))
    if isinstance(batch, tuple | list):
        return type(batch)(mapped(each, change) for each in batch)
    return batch


def to_device(batch: Any, device: torch.device) -> Any:
    """A batch with its tensors on a device; the same object if they are."""
    # The usual batch first: this is done in every step.
    if type(batch) is tuple:
        for each in batch:
            if not isinstance(each, Tensor) or each.device != device:
                break
        else:
            return batch
    if all(_is_on(each, device) for each in _leaves(batch)):
        return batch
    return mapped(batch, lambda x: x.to(device, non_blocking=True))


def _expect_tensors(given: Any) -> None:
    """Refuse NumPy arrays, which batches would silently ignore."""
    if isinstance(given, np.ndarray):
        raise ArgumentError(
            f"`tensors` has a NumPy array of shape {given.shape}; expected tensors, such as "
            "torch.from_numpy(array)"
        )
    if isinstance(given, Mapping | tuple | list):
        for each in given.values() if isinstance(given, Mapping) else given:
            _expect_tensors(each)


def _is_on(tensor: Tensor, device: torch.device) -> bool:
    there = tensor.device
    return there == device or (there.type == device.type and device.index is None)


def _leaves(batch: Any) -> Iterator[Tensor]:
    if isinstance(batch, Tensor):
        yield batch
    elif isinstance(batch, Mapping | tuple | list):
        for each in batch.values() if isinstance(batch, Mapping) else batch:
            yield from _leaves(each)
