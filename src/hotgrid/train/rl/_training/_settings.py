"""`OffPolicy`: how much is collected, remembered, learned and evaluated."""

from dataclasses import dataclass, field

from hotgrid.errors import ArgumentError
from hotgrid.train.rl._replay import Uniform


@dataclass(frozen=True)
class OffPolicy:
    """The proportions of a run. Steps are those of one seed, over all of its copies.

    Attributes:
        copies: Copies of the environment for each seed.
        collect: Steps of every copy in a round.
        updates: Updates in a round.
        batch: Transitions in an update.
        warmup: Steps with random actions before the first update.
        replay: The kind of memory, and its size.
        evaluate_every: Steps between two evaluations.
        episodes: Episodes of an evaluation.
        final_episodes: Episodes of the last evaluation.

    Example:
        >>> OffPolicy(copies=16, collect=2).per_round
        32
    """

    copies: int = 16
    collect: int = 1
    updates: int = 4
    batch: int = 128
    warmup: int = 1000
    replay: Uniform = field(default_factory=Uniform)
    evaluate_every: int = 5000
    episodes: int = 20
    final_episodes: int = 100

    def __post_init__(self) -> None:
        for name in ("copies", "collect", "updates", "batch", "evaluate_every", "episodes",
                     "final_episodes"):  # fmt: skip
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ArgumentError(f"`{name}` is {value!r}; expected a whole number from 1")
        if not isinstance(self.replay, Uniform):
            raise ArgumentError(
                f"`replay` is {self.replay!r}; expected Uniform(...) or Prioritised(...)"
            )
        if type(self.warmup) is not int or self.warmup < 0:
            raise ArgumentError(f"`warmup` is {self.warmup!r}; expected a whole number from 0")

    @property
    def per_round(self) -> int:
        """Steps in a round."""
        return self.copies * self.collect
