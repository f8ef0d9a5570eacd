"""The result of tuning one key: every candidate that was tried, the best first."""

import datetime
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hotgrid.kernels.tune._measure._sampling import Timing

_NUMBERS = ("minimum", "median", "spread", "score", "share", "kernels")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of one candidate.

    Attributes:
        name: The candidate.
        group: Its family.
        minimum: The shortest sample in seconds; None when it was not timed.
        median: The middle sample in seconds.
        spread: How far its samples lie apart as a share of the median; see `Timing`.
        score: What candidates are ordered by, in seconds; lower is better.
        share: The part of the hardware limit that its shortest sample reaches.
        kernels: On a GPU, the seconds that its kernels take without launching them: what
            counts once calls are recorded in a graph.
        problem: Why it cannot win; empty when it can.

    Example:
        >>> Outcome(name="fast", group="native", problem="differs").able
        False
    """

    name: str
    group: str
    minimum: float | None = None
    median: float | None = None
    spread: float | None = None
    score: float | None = None
    share: float | None = None
    kernels: float | None = None
    problem: str = ""

    @property
    def able(self) -> bool:
        """Whether it may win."""
        return not self.problem and self.score is not None

    @classmethod
    def timed(
        cls,
        name: str,
        group: str,
        timing: Timing,
        limit: float,
        kernels: float | None = None,
    ) -> "Outcome":
        """Return the outcome of a candidate that agrees with the reference.

        Args:
            name: The candidate.
            group: Its family.
            timing: Its samples.
            limit: The seconds that the hardware needs at least.
            kernels: The seconds of its kernels alone, on a GPU.
        """
        return cls(
            name=name,
            group=group,
            minimum=timing.minimum,
            median=timing.median,
            spread=timing.spread,
            score=timing.score,
            share=limit / timing.minimum if timing.minimum else None,
            kernels=kernels,
        )


def _sound(outcome: Outcome) -> bool:
    """Whether a value that was read consists of words and numbers."""
    words = (outcome.name, outcome.group, outcome.problem)
    numbers = (getattr(outcome, name) for name in _NUMBERS)
    return all(map(_is_text, words)) and all(
        each is None or _is_measured(each) for each in numbers
    )


def _is_text(value: object) -> bool:
    """Whether it can be shown: no half characters, nothing that a terminal would obey."""
    return isinstance(value, str) and " ".join(value.split()).isprintable()


def _is_measured(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value >= 0


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """The outcome of tuning one key.

    Attributes:
        key: The call, with its sizes in buckets.
        stamp: The machine and the candidates it holds for.
        outcomes: One for each candidate that was tried: those that can win first, by score.
        limit: The seconds that the hardware needs at least for the call that was timed.
        date: The day it was made.

    Example:
        >>> fast = Outcome(name="fast", group="tensor", score=1.0)
        >>> Ranking.of("op n=4", "5e1f", [fast], 0.5).winner.name
        'fast'
    """

    key: str
    stamp: str
    outcomes: tuple[Outcome, ...]
    limit: float
    date: str

    @classmethod
    def of(cls, key: str, stamp: str, outcomes: Iterable[Outcome], limit: float) -> "Ranking":
        """Order outcomes and date them."""
        ordered = sorted(outcomes, key=lambda each: (not each.able, each.score or 0.0))
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        return cls(key=key, stamp=stamp, outcomes=tuple(ordered), limit=limit, date=today)

    @property
    def op(self) -> str:
        """The name of the op."""
        return self.key.partition(" ")[0]

    @property
    def winner(self) -> Outcome | None:
        """The best candidate, or None when all of them failed."""
        first = self.outcomes[0] if self.outcomes else None
        return first if first is not None and first.able else None

    def in_a_graph(self) -> list[Outcome]:
        """Return those that can win, ordered by the time of their kernels alone."""
        able = [each for each in self.outcomes if each.able]
        known = all(each.kernels is not None for each in able)
        return sorted(able, key=lambda each: each.kernels or 0.0) if known else able

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)

    @classmethod
    def from_plain(cls, found: Mapping[str, Any]) -> "Ranking":
        """Return the ranking that `plain` was made from.

        Raises:
            KeyError, TypeError, ValueError: It is something else.
        """
        outcomes = tuple(Outcome(**each) for each in found["outcomes"])
        ranking = cls(
            key=found["key"],
            stamp=found["stamp"],
            outcomes=outcomes,
            limit=found["limit"],
            date=found["date"],
        )
        words = (ranking.key, ranking.stamp, ranking.date)
        if not all(map(_is_text, words)) or not _is_measured(ranking.limit):
            raise ValueError("it is not made of words and numbers")
        if not all(map(_sound, outcomes)) or not ranking.winner:
            raise ValueError("a ranking without a winner is never kept")
        return ranking
