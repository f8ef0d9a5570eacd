"""`Environment`: the base of tensor environments, which are data and pure functions."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError


@dataclass(frozen=True)
class Discrete:
    """Actions that are whole numbers from 0.

    Attributes:
        count: How many there are.

    Example:
        >>> Discrete(2).width
        1
    """

    count: int

    def __post_init__(self) -> None:
        if type(self.count) is not int or self.count < 1:
            raise ArgumentError(f"`count` is {self.count!r}; expected a whole number from 1")

    @property
    def width(self) -> int:
        """How many numbers an action takes in replay."""
        return 1


@dataclass(frozen=True)
class Box:
    """Actions that are vectors of real numbers between limits.

    Attributes:
        low: The lower limit of each number.
        high: The upper limit of each number.

    Example:
        >>> Box((-2.0,), (2.0,)).width
        1
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        low, high = self.low, self.high
        for name, limits in (("low", low), ("high", high)):
            right = isinstance(limits, tuple | list)
            if not right or not all(isinstance(x, int | float) for x in limits):
                raise ArgumentError(
                    f"`{name}` is {limits!r}; expected numbers such as (-1.0, 1.0)"
                )
        if len(low) != len(high) or not all(a < b for a, b in zip(low, high, strict=True)):
            raise ArgumentError(
                f"`low` {low} must have as many numbers as `high` {high}, each below"
            )

    @property
    def width(self) -> int:
        """How many numbers an action has."""
        return len(self.low)


Actions = Discrete | Box
"""The actions that an environment takes."""


class Stepped(NamedTuple):
    """The result of a step of an environment, for every copy.

    Attributes:
        state: The next state, `[..., *shape]`.
        reward: The reward, `[...]`.
        terminated: Whether the episode has ended by its own rules, bool `[...]`. A limit of
            steps is not among them.
    """

    state: Tensor
    reward: Tensor
    terminated: Tensor


class Environment(ABC):
    """A task as pure functions over any number of copies at once.

    It is a frozen dataclass: its constants are fields, and it holds no state. The state of
    every copy is a row of one tensor, `[..., *shape]`, so thousands of copies take a step in
    the same few operations, on any device. Randomness comes in as numbers: `initial` is a
    function of uniform ones.

    Attributes:
        name: Its name on the command line.
        summary: The task in one line.
        actions: The actions that it takes.
        observations: The length of an observation.
        shape: The shape of the state of one copy.
        randoms: The number of uniform numbers that an initial state takes.
        dtype: The dtype of the state.
        limit: Steps after which an episode is truncated.
        rate: Steps in a second of a film.
        units: The unit of each number of an observation; a network learns soonest
            from numbers of about one. None is one for all.
        twin: The id of the Gymnasium environment that it equals step for step, or None.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Line(Environment):
        ...     name = "line"
        ...     summary = "Walk to 3."
        ...     actions = Discrete(2)
        ...     observations = 1
        ...     shape = (1,)
        ...     randoms = 1
        ...     limit: int = 20
        ...     def initial(self, random):
        ...         return random - 0.5
        ...     def observe(self, state):
        ...         return state.float()
        ...     def step(self, state, action):
        ...         state = state + (2 * action[..., None] - 1)
        ...         return Stepped(state, -torch.ones_like(state[..., 0]), state[..., 0] >= 3)
        >>> start = Line().initial(torch.full((4, 1), 0.5))
        >>> Line().step(start, torch.tensor([0, 1, 1, 0])).state[:, 0]
        tensor([-1.,  1.,  1., -1.])
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    actions: ClassVar[Actions]
    observations: ClassVar[int]
    shape: ClassVar[tuple[int, ...]]
    randoms: ClassVar[int]
    dtype: ClassVar[torch.dtype] = torch.float32
    rate: ClassVar[int] = 30
    units: ClassVar[tuple[float, ...] | None] = None
    twin: ClassVar[str | None] = None
    # A field of every environment.
    limit: Any

    @abstractmethod
    def initial(self, random: Tensor) -> Tensor:
        """Return initial states.

        Args:
            random: Uniform numbers from 0 to 1, `[..., randoms]`, of `dtype`.

        Returns:
            `[..., *shape]`.
        """

    @abstractmethod
    def observe(self, state: Tensor) -> Tensor:
        """Return the observations of states, float32 `[..., observations]`."""

    @abstractmethod
    def step(self, state: Tensor, action: Tensor) -> Stepped:
        """Return the next states and their rewards.

        Args:
            state: `[..., *shape]`.
            action: Whole numbers `[...]`, or real ones `[..., width]`.
        """

    def draw(self, state: Tensor) -> Tensor:
        """Return a picture of one state, uint8 `[height, width, 3]`.

        Raises:
            ArgumentError: The environment has no picture.
        """
        raise ArgumentError(f"`{self.name}` has no picture; give it a method `draw`")
