"""`Ring`: the newest transitions on the device, sampled uniformly."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError
from hotgrid.grid.forms import free_memory
from hotgrid.train.rl._draws import Draws

from ._n_steps import NSteps
from ._rows import Batch, Rows


@dataclass(frozen=True)
class Uniform:
    """Replay in which every transition is as likely as any other.

    Attributes:
        capacity: The number of transitions kept for each seed.

    Example:
        >>> Uniform(capacity=50_000).capacity
        50000
    """

    capacity: int = 50_000

    def __post_init__(self) -> None:
        if type(self.capacity) is not int or self.capacity < 1:
            raise ArgumentError(
                f"`capacity` is {self.capacity!r}; expected a whole number from 1"
            )


class Ring:
    """Memory for transitions of several seeds; the oldest are overwritten.

    Nothing waits for the device: how much is written is counted there.

    Args:
        settings: How much is kept.
        rows: The columns of a transition.
        seeds: The number of runs side by side.
        copies: The number of transitions that each run writes at once.
        steps: How many steps are joined to one transition.
        gamma: The discount of one step.
        device: The device of the memory.

    Raises:
        ArgumentError: The copies do not fit into the ring.
    """

    def __init__(
        self,
        settings: Uniform,
        rows: Rows,
        seeds: int,
        copies: int,
        *,
        steps: int = 1,
        gamma: float = 0.99,
        device: torch.device | str = "cpu",
    ) -> None:
        if copies > settings.capacity:
            raise ArgumentError(
                f"{copies} copies do not fit into a `capacity` of {settings.capacity}"
            )
        self.settings, self.rows, self.seeds, self.copies = settings, rows, seeds, copies
        self.gamma, self.width = gamma, rows.width
        self.n_steps = NSteps(rows, seeds, copies, steps, device) if steps > 1 else None
        # Seeds follow each other, so that a sample is a choice of rows.
        self._memory = torch.zeros(seeds * settings.capacity, rows.width, device=device)
        self._first = settings.capacity * torch.arange(seeds, device=device)[:, None]
        self._span = torch.arange(copies, device=device)
        # The first rows that come out of a window of n steps are not transitions yet.
        self._written = torch.tensor((1 - steps) * copies, device=device)

    @property
    def size(self) -> Tensor:
        """How many transitions each seed has, 0-d on the device."""
        return self._written.clamp(0, self.settings.capacity)

    def least_steps(self, batch: int) -> int:
        """After how many steps of every copy there is a transition for each row of a batch."""
        late = 0 if self.n_steps is None else self.n_steps.steps - 1
        return late + -(-batch // self.copies)

    @checked(rows="seeds copies width", over="seeds copies", bind=["self.seeds", "self.width"])
    def write(self, rows: Tensor, over: Tensor) -> None:
        """Add one transition of every copy.

        Args:
            rows: The rows that `Rows.packed` returned.
            over: Whether the episode has ended, for any reason; bool.
        """
        if self.n_steps is not None:
            rows = self.n_steps.joined(rows, over)
        place = (self._written + self._span).clamp(min=0) % self.settings.capacity
        places = self._first + place
        self._memory.index_copy_(0, places.flatten(), rows.flatten(0, 1))
        self._written += self.copies
        self._wrote(place)

    def sample(self, batch: int, draws: Draws) -> Batch:
        """Return transitions with replacement, `[seeds, batch, ...]`."""
        return self._taken(draws.below(self.size, self.seeds, batch))

    def batches(self, count: int, batch: int, draws: Draws) -> Iterator[Batch]:
        """Yield samples to learn from one after the other; here they are drawn at once."""
        whole = self.sample(count * batch, draws)
        for first in range(0, count * batch, batch):
            yield whole.part(slice(first, first + batch))

    def reprioritise(self, batch: Batch, errors: Tensor) -> None:
        """Take note of how wrong the values of a batch were; here it does not matter."""

    def tensors(self) -> dict[str, Tensor]:
        """Return all transitions and counters; loading writes into the same tensors."""
        found = {"memory": self._memory, "written": self._written}
        return found | ({} if self.n_steps is None else self.n_steps.tensors())

    def _taken(self, index: Tensor, weight: Tensor | None = None) -> Batch:
        flat = (self._first + index).flatten()
        rows = self._memory.index_select(0, flat).view(self.seeds, -1, self.width)
        return self.rows.batch(rows, weight, index)

    def _wrote(self, place: Tensor) -> None:
        """Called after rows were written to the same places of every seed."""


def expect_memory(capacity: int, width: int, seeds: int, device: torch.device) -> None:
    """Refuse transitions that do not fit; missing memory would be noticed too late."""
    wanted, free = 4 * capacity * width * seeds, free_memory(device)
    if wanted > free:
        raise ArgumentError(
            f"a `capacity` of {capacity:,} transitions for {seeds:,} seeds takes "
            f"{wanted / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free on {device}; take a "
            "smaller `capacity`, or fewer `seeds`"
        )
