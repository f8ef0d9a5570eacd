"""`Rows`: a transition as one row of numbers; storing and sampling are one call each."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.train.rl._environments import Actions, Discrete, Transition


@dataclass(frozen=True)
class Batch:
    """Transitions to learn from, `[seeds, rows, ...]`.

    Attributes:
        observation: The observation.
        action: The action taken: int64 `[seeds, rows]`, or `[seeds, rows, width]`.
        reward: The discounted sum of the rewards of n steps.
        discount: The factor of the value of `following`: gamma to the n, and zero where the
            episode has terminated. A truncated episode has not.
        following: The observation n steps later, before a new episode.
        weight: The weight of a row in the loss.
        index: Where the rows are in the ring, for `reprioritise`.
    """

    observation: Tensor
    action: Tensor
    reward: Tensor
    discount: Tensor
    following: Tensor
    weight: Tensor | None = None
    index: Tensor | None = None

    def part(self, rows: slice) -> "Batch":
        """Some of the rows, without a copy."""
        return Batch(
            self.observation[:, rows],
            self.action[:, rows],
            self.reward[:, rows],
            self.discount[:, rows],
            self.following[:, rows],
            None if self.weight is None else self.weight[:, rows],
            None if self.index is None else self.index[:, rows],
        )


@dataclass(frozen=True)
class Rows:
    """The columns of a row: observation, following, action, reward, discount.

    Attributes:
        observations: The length of an observation.
        actions: The actions that the environment takes.
    """

    observations: int
    actions: Actions

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return 2 * self.observations + self.actions.width + 2

    @property
    def closing(self) -> slice:
        """The columns of reward and discount."""
        return slice(self.width - 2, self.width)

    def packed(self, step: Transition, gamma: float) -> Tensor:
        """A step of every copy as rows, float32 `[seeds, copies, width]`."""
        discount = torch.where(step.terminated, 0.0, gamma)
        action = step.action.float()
        if isinstance(self.actions, Discrete):
            action = action[..., None]
        tail = torch.stack((step.reward, discount), -1)
        return torch.cat((step.observation, step.following, action, tail), -1)

    def batch(
        self, rows: Tensor, weight: Tensor | None = None, index: Tensor | None = None
    ) -> Batch:
        """Rows `[seeds, n, width]` as a batch."""
        o, a = self.observations, self.actions.width
        seen, following, action, reward, discount = rows.split((o, o, a, 1, 1), -1)
        if isinstance(self.actions, Discrete):
            action = action[..., 0].long()
        return Batch(seen, action, reward[..., 0], discount[..., 0], following, weight, index)
