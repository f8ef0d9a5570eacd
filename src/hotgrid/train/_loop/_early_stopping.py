"""`EarlyStopping`: end a run whose metric no longer improves."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hotgrid.config import logger
from hotgrid.errors import ArgumentError


@dataclass(frozen=True)
class EarlyStopping:
    """Stop when a metric has not improved for some evaluations.

    The best value is tracked from the first evaluation on. During the warm-up a run is
    never stopped. Only a value that is better by more than `least` is an improvement.

    Args:
        metric: The value to watch, such as `valid/loss`.
        patience: The number of evaluations without an improvement that end the run.
        warmup: The number of evaluations at the beginning that never end it.
        better: Whether the lowest or the highest value is the best; by default what the
            metric says, such as the highest accuracy, or else the lowest.
        least: How much better a value must be.

    Example:
        >>> rule = EarlyStopping("valid/loss", patience=2)
        >>> state = None
        >>> for loss in (1.0, 0.8, 0.9, 0.8):
        ...     state, stop = rule.after(state, {"valid/loss": loss})
        ...     print(state["best_at"], stop)
        1 False
        2 False
        2 False
        2 True
    """

    metric: str = "valid/loss"
    patience: int = 5
    warmup: int = 0
    better: Literal["lowest", "highest"] | None = None
    least: float = 0.0

    def __post_init__(self) -> None:
        if type(self.patience) is not int or self.patience < 1:
            raise ArgumentError(f"`patience` is {self.patience!r}; expected a number from 1")
        if type(self.warmup) is not int or self.warmup < 0:
            raise ArgumentError(f"`warmup` is {self.warmup!r}; expected a number from 0")
        if not 0 <= self.least < math.inf:
            raise ArgumentError(f"`least` is {self.least!r}; expected a number, 0 or more")
        if self.better not in ("lowest", "highest", None):
            raise ArgumentError(f"`better` is {self.better!r}; expected lowest or highest")

    def after(
        self, state: Mapping[str, Any] | None, values: Mapping[str, float | None]
    ) -> tuple[dict[str, Any], bool]:
        """Return the state after an evaluation, and whether to stop.

        Args:
            state: The state that this returned last; None at first. One of another metric,
                which a resumed run watched before, is forgotten.
            values: The values of the evaluation. Without the metric nothing changes, and
                a warning names it.
        """
        now = dict(self._own(state) or {**self._of, "seen": 0, "best": None, "best_at": 0})
        value = values.get(self.metric)
        if value is None:
            logger("train").warning(
                "early stopping watches `%s`, which was not evaluated; there are %s",
                self.metric,
                ", ".join(values) or "none",
            )
            return now, False
        now["seen"] += 1
        first = now["best"] is None and not math.isnan(value)
        if first or (now["best"] is not None and self._improves(value, now["best"])):
            now["best"], now["best_at"] = value, now["seen"]
        return now, self.ends(now)

    def ends(self, state: Mapping[str, Any] | None) -> bool:
        """Return whether a run with this state, which `after` returned, ends."""
        state = self._own(state)
        if state is None:
            return False
        late = state["seen"] - state["best_at"] >= self.patience
        return late and state["seen"] > self.warmup

    @property
    def _of(self) -> dict[str, str]:
        """What the best is the best of."""
        return {"metric": self.metric, "better": self.better or "lowest"}

    def _own(self, state: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """A state, unless it is of another metric; earlier versions did not say of which."""
        return state if {**self._of, **(state or {})}.items() >= self._of.items() else None

    def _improves(self, value: float, best: float) -> bool:
        if math.isnan(value):
            return False
        if self.better == "highest":
            return value > best + self.least
        return value < best - self.least
