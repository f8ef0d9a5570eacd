"""Random numbers of the samples of a batch, on its device, from keys alone."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_MASK = 0xFFFFFFFF
_FIRST, _SECOND = 0x21F0AAAD, 0x2CA5D269
_GOLDEN = 0x9E3779B9
# 24 bits are what a float32 holds.
_UNIT = 2.0**-24


class BatchDraws:
    """Random numbers for every sample of a batch: a function of the sample's key.

    A hash of key and counter (32-bit multiply and xor-shift, in int64), so a number depends on
    neither the batch, the device nor the rank, and `torch.compile` sees plain arithmetic.

    Args:
        keys: A number of 63 bits for each sample, as `sample_keys` makes them.
        path: Which stream of numbers; stages get one each by `stream`.

    Example:
        >>> keys = sample_keys(0, 1, torch.arange(4))
        >>> alone = BatchDraws(keys[2:3]).uniform()
        >>> torch.equal(BatchDraws(keys).uniform()[2:3], alone)
        True
    """

    def __init__(self, keys: Tensor, path: int = 0) -> None:
        self.keys = keys
        self._path, self._count = path, 0
        self._low, self._high = keys & _MASK, keys >> 32

    def stream(self, number: int) -> BatchDraws:
        """Return other numbers of the same samples."""
        return BatchDraws(self.keys, _mixed(self._path + _GOLDEN * (number + 1)))

    def bits(self, *shape: int) -> Tensor:
        """Return 32 random bits for each sample and place, as int64 `[batch, *shape]`."""
        self._count += 1
        word = _mixed(self._path ^ (self._count * _GOLDEN))
        view = (-1, *([1] * len(shape)))
        low, high = self._low.view(view), self._high.view(view)
        if not shape:
            return _hashed(_hashed(low ^ word) + high & _MASK)
        place = torch.arange(math.prod(shape), device=self.keys.device).view(shape)
        # Not a sum: Inductor would fold it into an index of 32 bits, which it does not fit.
        return _hashed(_hashed(low ^ _hashed(place ^ word)) + high & _MASK)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Return float32 numbers from `low` up to `high`, `[batch, *shape]`."""
        return low + (high - low) * ((self.bits(*shape) >> 8).to(torch.float32) * _UNIT)

    def below(self, count: int, *shape: int) -> Tensor:
        """Return whole numbers from 0 up to, without, `count`, as int64 `[batch, *shape]`."""
        return self.bits(*shape) * count >> 32

    def chance(self, probability: float) -> Tensor:
        """Return for each sample whether something of this probability happens."""
        return self.uniform() < probability

    def turn(self) -> Tensor:
        """Return for each sample a bit that changes from one epoch to the next."""
        return (self.keys >> 62).to(torch.bool)

    def sign(self) -> Tensor:
        """Return -1 or 1 for each sample, float32."""
        return (self.below(2) * 2 - 1).to(torch.float32)

    def normal(self, *shape: int) -> Tensor:
        """Return normal numbers, float32 `[batch, *shape]`; by Box and Muller."""
        radius = (-2.0 * torch.log(self.uniform(*shape) + 0.5 * _UNIT)).sqrt()
        return radius * torch.cos(2.0 * math.pi * self.uniform(*shape))

    def beta(self, alpha: float) -> Tensor:
        """Return numbers of the distribution Beta(alpha, alpha) for each sample.

        By way of Student's t with 2 alpha degrees of freedom, which needs no rejection
        (R. Bailey 1994; L. Devroye 1996).
        """
        u = self.uniform() + 0.5 * _UNIT
        t = torch.cos(2.0 * math.pi * self.uniform()) * (u ** (-1.0 / alpha) - 1.0).sqrt()
        return 0.5 + 0.5 * t / (1.0 + t * t).sqrt()

    def choice(self, weights: tuple[float, ...]) -> Tensor:
        """Return the index of a weight for each sample, drawn in proportion to the weights."""
        total = sum(weights)
        u = self.uniform()
        found = torch.zeros_like(self.keys)
        reached = 0.0
        for weight in weights[:-1]:
            reached += weight
            found = found + (u >= reached / total)
        return found


def sample_keys(seed: int, epoch: int | Tensor, index: Tensor) -> Tensor:
    """Return the keys of samples for `BatchDraws`: a hash of seed, epoch and index.

    Args:
        seed: The seed of the run.
        epoch: One number, or one for each sample.
        index: The number of each sample in the data set, int64 `[batch]`.

    Example:
        >>> len(set(sample_keys(0, 0, torch.arange(1000)).tolist()))
        1000
    """
    own = _hashed(index & _MASK ^ _mixed(seed))
    low = _hashed(own + epoch * _GOLDEN & _MASK)
    high = _hashed((index >> 32) + low + _mixed(seed ^ _GOLDEN) & _MASK)
    # The highest bit is random in the first epoch, and then alternates.
    return ((own ^ epoch) & 1) << 62 | (high & 0x3FFFFFFF) << 32 | low


def _hashed(x: Tensor) -> Tensor:
    """A bijection of 32-bit numbers (lowbias32). No product passes 63 bits."""
    x = x ^ x >> 16
    x = x * _FIRST & _MASK
    x = x ^ x >> 15
    # The second factor, 0xd35a2d97, would overflow; its negative does not.
    x = -(x * _SECOND) & _MASK
    return x ^ x >> 15


def _mixed(number: int) -> int:
    x = number & _MASK
    x = (x ^ x >> 16) * _FIRST & _MASK
    x = -((x ^ x >> 15) * _SECOND) & _MASK
    return x ^ x >> 15
