"""A streaming shuffle whose every draw is a function of the seed and of a number."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from hotgrid.errors import ArgumentError

T = TypeVar("T")


class ShuffleBuffer(Generic[T]):
    """Shuffle a stream through a buffer.

    The next item is drawn from the buffer at random. Before a draw, up to `fill_rate` items
    are added while the buffer is not full. A small rate yields the first item early, and the
    buffer fills up as the stream continues; `fill_rate=size` fills it first.

    Args:
        size: How many items the buffer holds. 1 keeps the order.
        fill_rate: How many items are added before each draw, 2 or more to fill the buffer.
        seed: Another seed gives another order.

    Attributes:
        items: What is in the buffer.
        draws: How many draws were made. With the items, it is the whole state.

    Raises:
        ArgumentError: `fill_rate` is not in 1 to `size`.

    Example:
        >>> buffer = ShuffleBuffer(size=4, fill_rate=4, seed=1)
        >>> sorted(buffer.shuffled(range(6)))
        [0, 1, 2, 3, 4, 5]
    """

    def __init__(self, size: int = 128, fill_rate: int = 2, seed: int = 0) -> None:
        if not 1 <= fill_rate <= size:
            raise ArgumentError(
                f"`fill_rate` {fill_rate} with a buffer of {size}: choose 1 to {size}"
            )
        self.size = size
        self.fill_rate = fill_rate
        self.seed = seed
        self.items: list[T] = []
        self.draws = 0

    def shuffled(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items in a random order. What is left in the buffer comes first."""
        source = iter(items)
        ended = False
        while True:
            for _ in range(self.fill_rate):
                if ended or len(self.items) >= self.size:
                    break
                try:
                    self.items.append(next(source))
                except StopIteration:
                    ended = True
            if not self.items:
                return
            yield self._draw()

    def _draw(self) -> T:
        chosen = _number(self.seed, self.draws) % len(self.items)
        self.draws += 1
        # The last one takes its place: no other item moves.
        self.items[chosen], self.items[-1] = self.items[-1], self.items[chosen]
        return self.items.pop()


def _number(seed: int, index: int) -> int:
    """Return 64 random bits, the same on every machine."""
    text = f"{seed},{index}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
