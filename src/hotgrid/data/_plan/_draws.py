"""Random numbers of one sample: a function of its keys, whatever worker asks."""

import numpy as np

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


class SampleDraws:
    """Random numbers that depend on their keys alone, as (seed, epoch, index).

    SplitMix64: a counter and a hash, so that making one costs about a microsecond. The keys
    are hashed one after the other.

    Args:
        keys: Integers; other keys give unrelated numbers.

    Example:
        >>> SampleDraws(0, 1, 2).below(100) == SampleDraws(0, 1, 2).below(100)
        True
    """

    __slots__ = ("_state",)

    def __init__(self, *keys: int) -> None:
        state = 0
        for key in keys:
            state = _hashed((state ^ (key & _MASK)) + _STEP & _MASK)
        self._state = state

    def bits(self) -> int:
        """64 random bits, as a number from 0."""
        self._state = (self._state + _STEP) & _MASK
        return _hashed(self._state)

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """A number from `low` up to, but without, `high`."""
        return low + (high - low) * ((self.bits() >> 11) * 2.0**-53)

    def below(self, count: int) -> int:
        """A whole number from 0 up to, but without, `count`."""
        return (self.bits() * count) >> 64

    def generator(self) -> np.random.Generator:
        """A generator of numpy for whole arrays of numbers; takes longer to make."""
        return np.random.Generator(np.random.Philox(key=self.bits()))


def _hashed(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)
