"""Pendulum: swing a pendulum up and hold it, with a weak torque."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ._environment import Box, Environment, Stepped
from ._picture import Canvas


@dataclass(frozen=True)
class Pendulum(Environment):
    """A pendulum with a motor at its hinge; equal to Gymnasium's `Pendulum-v1`.

    The state is the angle from upright and its velocity. The reward is at most zero: less
    for an angle, a velocity and a torque. Episodes have no end but the limit of steps.

    Example:
        >>> env = Pendulum()
        >>> env.observe(torch.zeros(1, 2, dtype=torch.float64))
        tensor([[1., 0., 0.]])
    """

    name = "pendulum"
    summary = "Swing a pendulum up and hold it, with a weak torque."
    actions = Box((-2.0,), (2.0,))
    observations = 3
    shape = (2,)
    randoms = 2
    dtype = torch.float64
    units = (1.0, 1.0, 4.0)
    twin = "Pendulum-v1"

    gravity: float = 10.0
    mass: float = 1.0
    length: float = 1.0
    interval: float = 0.05
    fastest: float = 8.0
    strongest: float = 2.0
    limit: int = 200

    def initial(self, random: Tensor) -> Tensor:
        """Return random angles, and velocities from -1 to 1."""
        angle, turning = (2 * random - 1).unbind(-1)
        return torch.stack((angle * math.pi, turning), -1)

    def observe(self, state: Tensor) -> Tensor:
        """Return cosine and sine of the angle, and the velocity."""
        angle, turning = state.unbind(-1)
        return torch.stack((torch.cos(angle), torch.sin(angle), turning), -1).float()

    def step(self, state: Tensor, action: Tensor) -> Stepped:
        """Take a step with a torque that is kept within limits."""
        angle, turning = state.unbind(-1)
        # In the precision of the action, as Gymnasium does.
        torque = action[..., 0].clamp(-self.strongest, self.strongest)
        off = torch.remainder(angle + math.pi, 2 * math.pi) - math.pi
        cost = off.square() + 0.1 * turning.square() + 0.001 * torque.square()
        pull = 3 * self.gravity / (2 * self.length) * torch.sin(angle)
        pull = pull + 3 / (self.mass * self.length**2) * torque
        turning = (turning + pull * self.interval).clamp(-self.fastest, self.fastest)
        angle = angle + turning * self.interval
        never = torch.zeros_like(angle, dtype=torch.bool)
        return Stepped(torch.stack((angle, turning), -1), -cost.float(), never)

    def draw(self, state: Tensor) -> Tensor:
        """Return a picture of the pendulum."""
        angle = state.tolist()[0]
        canvas = Canvas(height=240, width=240, left=-1.2, right=1.2, bottom=-1.2)
        # Positive angles are to the left, as in Gymnasium.
        canvas.line((0.0, 0.0), (-math.sin(angle), math.cos(angle)), 0.16, "red")
        canvas.line((0.0, 0.0), (0.0, 0.0), 0.06, "dark")
        return canvas.picture()
