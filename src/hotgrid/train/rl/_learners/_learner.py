"""`Learner`: a way to learn, as data; `Agent`: a learner at work in an environment."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.train._schedules import StepSchedule
from hotgrid.train.rl._draws import Draws
from hotgrid.train.rl._environments import Actions
from hotgrid.train.rl._replay import Batch


def is_number(value: object) -> bool:
    """Whether it is a finite number; bools are not."""
    return type(value) in (int, float) and math.isfinite(value)  # pyright: ignore[reportArgumentType]


class Learnt(NamedTuple):
    """The results of one update, on the device.

    Attributes:
        errors: How wrong the values of the batch were, `[seeds, rows]`.
        values: Numbers to show, `[seeds]` each, by name, `loss` among them.
    """

    errors: Tensor
    values: dict[str, Tensor]


class Eyes:
    """Observations in units of their own, which networks see.

    Args:
        units: The unit of each number; None changes nothing.
        device: The device of observations.
    """

    def __init__(self, units: Sequence[float] | None, device: torch.device) -> None:
        self._factor: Tensor | None = None
        if units is not None and any(unit != 1 for unit in units):
            self._factor = 1 / torch.tensor(units, device=device)

    def __call__(self, observation: Tensor) -> Tensor:
        """Return observations as a network sees them."""
        return observation if self._factor is None else observation * self._factor


class Agent(ABC):
    """Weights of every seed, and the methods that use them. State changes in place."""

    @abstractmethod
    def explore(self, observation: Tensor, chance: Tensor, draws: Draws) -> Tensor:
        """Return actions to learn from.

        Args:
            observation: `[seeds, copies, observations]`.
            chance: The share of actions that are uniformly random, 0-d on the device.
            draws: The source of random numbers.
        """

    @abstractmethod
    def act(self, observation: Tensor) -> Tensor:
        """Return the actions that seem best; used in evaluation."""

    @abstractmethod
    def learn(self, batch: Batch, draws: Draws) -> Learnt:
        """Make one update of all seeds."""

    @abstractmethod
    def policy(self) -> dict[str, Tensor]:
        """Return the tensors that `act` depends on, with a leading axis of seeds."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Return everything that a checkpoint must hold; loading writes into these."""

    @property
    @abstractmethod
    def networks(self) -> Mapping[str, int]:
        """The number of weights of one seed, by network."""


@dataclass(frozen=True)
class Learner(ABC):
    """A way to learn: the base of all learners. Data, without weights.

    Attributes:
        hidden: The sizes of the hidden layers.
        rate: The learning rate.
        gamma: The discount of a reward one step later.
        n_steps: How many steps a transition has.
        tau: How far target networks move towards the others in every update.
        chance: The share of random actions, over steps of one seed.
    """

    name: ClassVar[str]

    hidden: tuple[int, ...] = (128, 128)
    rate: float = 1e-3
    gamma: float = 0.99
    n_steps: int = 1
    tau: float = 0.005
    chance: StepSchedule | float = 0.0

    def __post_init__(self) -> None:
        hidden: Any = self.hidden
        right = isinstance(hidden, tuple) and all(type(n) is int and n > 0 for n in hidden)
        self._expect("hidden", right, "sizes of layers from 1, such as (64, 64)")
        self._expect("rate", is_number(self.rate) and self.rate > 0, "a number above 0")
        for name in ("gamma", "tau"):
            value = getattr(self, name)
            right = is_number(value) and 0 < value <= 1
            self._expect(name, right, "a number above 0, at most 1")
        right = type(self.n_steps) is int and self.n_steps > 0
        self._expect("n_steps", right, "a whole number from 1")
        chance = self.chance
        if not isinstance(chance, StepSchedule):
            right = is_number(chance) and 0 <= chance <= 1
            self._expect("chance", right, "a number from 0 to 1, or a schedule")

    def _expect(self, name: str, right: bool, expected: str) -> None:
        if not right:
            raise ArgumentError(f"`{name}` is {getattr(self, name)!r}; expected {expected}")

    def chance_at(self, step: int) -> float:
        """Return the share of random actions at a step of one seed."""
        return self.chance(step) if isinstance(self.chance, StepSchedule) else self.chance

    @abstractmethod
    def begin(
        self,
        observations: int,
        actions: Actions,
        seeds: int,
        draws: Draws,
        units: Sequence[float] | None = None,
    ) -> Agent:
        """Return agents with fresh weights.

        Args:
            observations: The length of an observation.
            actions: The actions that the environment takes.
            seeds: The number of runs side by side.
            draws: The source of random numbers; also says which device.
            units: The unit of each number of an observation.

        Raises:
            ArgumentError: It cannot learn such actions.
        """
