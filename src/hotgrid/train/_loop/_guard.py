"""`LossGuard`: find the step, the batch and the group with which a run went wrong."""

import math
import statistics
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from hotgrid.errors import ArgumentError
from hotgrid.train._optimizers import local_part


@dataclass(frozen=True)
class LossGuard:
    """How to handle losses that are not finite, or that jump.

    Losses and gradient norms of all steps are examined whenever metrics are shown, and
    before every checkpoint, which is not written if a parameter is not finite. A loss or a
    norm that is not finite always ends the run, or rolls it back.

    Args:
        spike: A loss above this many times the median of the last steps is a fault too.
        window: How many steps the median is of; there are no spikes before half of them.
        rollback: Go back to the last checkpoint and leave out the batch, instead of ending.
        most: How many batches may be left out in a run.

    Example:
        >>> LossGuard(spike=4.0, rollback=True)
        LossGuard(spike=4.0, window=100, rollback=True, most=3)
    """

    spike: float | None = None
    window: int = 100
    rollback: bool = False
    most: int = 3

    def __post_init__(self) -> None:
        if self.spike is not None and not self.spike > 1:
            raise ArgumentError(
                f"`spike` is {self.spike!r}; expected a factor above 1, or None"
            )
        for name, least in (("window", 2), ("most", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ArgumentError(f"`{name}` is {value!r}; expected a number from {least}")


@dataclass(frozen=True)
class Fault:
    """The first fault that was found.

    Attributes:
        step: The step, counted from 1.
        positions: The batches that are suspected: one, or all of the step.
        what: The quantity: `loss`, or `gradient`.
        value: Its value.
        rank: The rank on which a loss was bad; None if all are concerned.
        group: The first group with a gradient that is not finite; None if all are finite.
    """

    step: int
    positions: tuple[int, ...]
    what: str
    value: float
    rank: int | None
    group: str | None

    def __str__(self) -> str:
        many = len(self.positions) > 1
        places = ", ".join(map(str, self.positions))
        text = f"the {self.what} is {self.value:g} in step {self.step}, "
        text += f"batch{'es' if many else ''} {places}"
        if self.rank is not None:
            text += f", rank {self.rank}"
        if self.group is not None:
            text += f"; the first gradient that is not finite is in group `{self.group}`"
        return text


@dataclass(frozen=True)
class StepLosses:
    """The data of a step that has been copied to the host.

    Attributes:
        step: The step, counted from 1.
        positions: Its batches.
        losses: For each rank the losses of its micro-batches.
        norms: The norm of the gradient of every group.
    """

    step: int
    positions: tuple[int, ...]
    losses: Sequence[Sequence[float]]
    norms: Mapping[str, float]


class Watch:
    """The guard of one run, which remembers the last losses."""

    def __init__(self, guard: LossGuard) -> None:
        self._guard = guard
        self._last: deque[float] = deque(maxlen=guard.window)

    def first_fault(self, steps: Sequence[StepLosses]) -> Fault | None:
        """The first fault of some steps; None if there is none."""
        for each in steps:
            fault = _not_finite(each) or self._spike(each)
            if fault is not None:
                return fault
            self._last.append(_mean(each))
        return None

    def state(self) -> list[float]:
        """The last losses, as JSON."""
        return list(self._last)

    def load(self, state: Any) -> None:
        """Continue with losses that were saved."""
        self._last = deque(map(float, state), maxlen=self._guard.window)

    def _spike(self, step: StepLosses) -> Fault | None:
        spike = self._guard.spike
        if spike is None or 2 * len(self._last) < self._guard.window:
            return None
        middle, now = statistics.median(self._last), _mean(step)
        if middle <= 0 or now <= spike * middle:
            return None
        rank, place = max(
            ((r, p) for r, row in enumerate(step.losses) for p in range(len(row))),
            key=lambda at: step.losses[at[0]][at[1]],
        )
        worst = step.losses[rank][place]
        # All ranks leave out the same batch, so it is named without the rank.
        return Fault(step.step, (step.positions[place],), "loss", worst, None, None)


def _not_finite(step: StepLosses) -> Fault | None:
    group = next((name for name, x in step.norms.items() if not math.isfinite(x)), None)
    for rank, row in enumerate(step.losses):
        for place, loss in enumerate(row):
            if not math.isfinite(loss):
                of = rank if len(step.losses) > 1 else None
                return Fault(step.step, (step.positions[place],), "loss", loss, of, group)
    if group is None:
        return None
    return Fault(step.step, step.positions, "gradient", step.norms[group], None, group)


def _mean(step: StepLosses) -> float:
    losses = [loss for row in step.losses for loss in row]
    return math.fsum(losses) / len(losses)


def not_finite(module: nn.Module) -> list[str]:
    """The paths of parameters of this rank with numbers that are not finite."""
    named = [(name, local_part(p.detach())) for name, p in module.named_parameters()]
    if not named:
        return []
    fine = torch.stack([x.isfinite().all().to(named[0][1].device) for _, x in named])
    return [name for (name, _), good in zip(named, fine.tolist(), strict=True) if not good]
