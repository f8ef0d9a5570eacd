"""Which checkpoints are kept after a new one."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hotgrid.errors import ArgumentError


@dataclass(frozen=True)
class Keeping:
    """The rules for old checkpoints: one is kept if any rule applies."""

    last: int | None
    every: int | None
    best: str | None
    sense: Literal["lowest", "highest"]

    def __post_init__(self) -> None:
        for name, value in (("keep_last", self.last), ("keep_every", self.every)):
            if value is not None and (type(value) is not int or value < 1):
                raise ArgumentError(f"`{name}` is {value!r}; expected a number from 1, or None")
        if self.sense not in ("lowest", "highest"):
            raise ArgumentError(f"`best` is {self.sense!r}; expected lowest or highest")

    def score(self, extra: Mapping[str, Any]) -> float:
        """How good a checkpoint is, the lower the better. NaN is worse than anything.

        Raises:
            ArgumentError: `extra` does not have the number that `keep_best` names.
        """
        value = extra.get(self.best) if self.best else 0
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ArgumentError(
                f"`keep_best` is {self.best!r}, and `extra` has {value!r} there; expected a "
                "number"
            )
        value = -value if self.sense == "highest" else value
        return math.inf if math.isnan(value) else float(value)

    def surplus(
        self, steps: Sequence[int], written: int, score: Callable[[int], float]
    ) -> list[int]:
        """The steps to remove, now that the step `written` exists."""
        if self.last is None:
            return []
        kept = {written, *sorted(steps)[-self.last :]}
        if self.every:
            kept |= {step for step in steps if step % self.every == 0}
        if self.best:
            kept.add(min(steps, key=lambda step: (score(step), -step)))
        return [step for step in steps if step not in kept]
