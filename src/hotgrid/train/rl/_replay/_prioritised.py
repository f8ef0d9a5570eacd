"""`Prioritised`: transitions whose values were wrong are sampled more often."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.train.rl._draws import Draws

from ._ring import Ring, Uniform
from ._rows import Batch
from ._wide_tree import WideTree

# Where all errors are zero, something must still be found.
_LEAST = 1e-30


@dataclass(frozen=True)
class Prioritised(Uniform):
    """Prioritised replay of Schaul and others 2016, proportional.

    Attributes:
        alpha: How much priorities count; 0 is uniform.
        beta: How much of the bias is taken back by the weights of a batch; 1 is all.
        least: Added to every error, so that no transition is lost.

    Example:
        >>> Prioritised(capacity=1000).alpha
        0.6
    """

    alpha: float = 0.6
    beta: float = 0.4
    least: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("alpha", "beta"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value <= 1:
                raise ArgumentError(f"`{name}` is {value!r}; expected 0 to 1")
        if not isinstance(self.least, int | float) or not 0 <= self.least < math.inf:
            raise ArgumentError(f"`least` is {self.least!r}; expected a number from 0")


class PrioritisedRing(Ring):
    """A ring with a priority for every transition; new ones have the largest so far."""

    def __init__(self, settings: Prioritised, *given: Any, **options: Any) -> None:
        super().__init__(settings, *given, **options)
        self._how, device = settings, self._memory.device
        self._tree = WideTree(self.seeds, settings.capacity, device)
        self._largest = torch.ones(self.seeds, 1, dtype=torch.float64, device=device)

    def sample(self, batch: int, draws: Draws) -> Batch:
        """Return transitions in proportion to their priorities, with their weights.

        Shares are spread evenly over the sum of priorities, which is what proportional
        sampling does on average, with less variance.
        """
        even = torch.arange(batch, device=self._memory.device, dtype=torch.float64)
        chance = draws.uniform(self.seeds, batch, dtype=torch.float64)
        index = self._tree.find((even + chance) / batch)
        share = self._tree.at(index) / self._tree.total[:, None]
        weight = (share * self.size).pow(-self._how.beta)
        weight = weight / weight.amax(-1, keepdim=True)
        return self._taken(index, weight.float())

    def batches(self, count: int, batch: int, draws: Draws) -> Iterator[Batch]:
        """Yield samples one after the other, each by the priorities that the last has left."""
        for _ in range(count):
            yield self.sample(batch, draws)

    def reprioritise(self, batch: Batch, errors: Tensor) -> None:
        """Set the priorities of a batch to the size of its errors, `[seeds, rows]`."""
        if batch.index is None:
            raise ArgumentError("the batch was not sampled from this ring; it has no index")
        errors = errors.detach().double().abs() + self._how.least
        priority = errors.clamp(min=_LEAST) ** self._how.alpha
        self._tree.set(batch.index, priority)
        largest = priority.amax(-1, keepdim=True)
        torch.maximum(self._largest, largest, out=self._largest)

    def tensors(self) -> dict[str, Tensor]:
        """Return the transitions and their priorities."""
        return super().tensors() | self._tree.tensors() | {"largest": self._largest}

    def _wrote(self, place: Tensor) -> None:
        index = place.expand(self.seeds, -1)
        self._tree.set(index, self._largest.expand(-1, place.shape[0]))


def replay_of(settings: Uniform, *given: Any, **options: Any) -> Ring:
    """Return the ring that settings describe."""
    if isinstance(settings, Prioritised):
        return PrioritisedRing(settings, *given, **options)
    return Ring(settings, *given, **options)
