"""MountainCar: drive a weak car out of a valley by swinging."""

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ._environment import Discrete, Environment, Stepped
from ._picture import Canvas


@dataclass(frozen=True)
class MountainCar(Environment):
    """The car of Moore 1990; equal to Gymnasium's `MountainCar-v0`.

    The state is the place and velocity of the car; actions push left, not at all, or right.
    The reward is -1 for every step.

    Example:
        >>> env = MountainCar()
        >>> env.initial(torch.full((1, 1), 0.5, dtype=torch.float64))
        tensor([[-0.5000,  0.0000]], dtype=torch.float64)
    """

    name = "mountain-car"
    summary = "Drive a weak car out of a valley by swinging."
    actions = Discrete(3)
    observations = 2
    shape = (2,)
    randoms = 1
    dtype = torch.float64
    units = (1.0, 0.05)
    twin = "MountainCar-v0"

    left: float = -1.2
    right: float = 0.6
    fastest: float = 0.07
    goal: float = 0.5
    force: float = 0.001
    gravity: float = 0.0025
    limit: int = 200

    def initial(self, random: Tensor) -> Tensor:
        """Return cars at rest between -0.6 and -0.4."""
        place = 0.2 * random - 0.6
        return torch.cat((place, torch.zeros_like(place)), -1)

    def observe(self, state: Tensor) -> Tensor:
        """Return the state itself."""
        return state.float()

    def step(self, state: Tensor, action: Tensor) -> Stepped:
        """Take a step; the wall at the left end stops the car."""
        place, velocity = state.unbind(-1)
        push = (action.to(state.dtype) - 1) * self.force
        velocity = velocity + (push - self.gravity * torch.cos(3 * place))
        velocity = velocity.clamp(-self.fastest, self.fastest)
        place = (place + velocity).clamp(self.left, self.right)
        velocity = torch.where((place == self.left) & (velocity < 0), 0.0, velocity)
        terminated = (place >= self.goal) & (velocity >= 0)
        reward = torch.full_like(place, -1.0, dtype=torch.float32)
        return Stepped(torch.stack((place, velocity), -1), reward, terminated)

    def draw(self, state: Tensor) -> Tensor:
        """Return a picture of the car in the valley."""

        def height(x: float) -> float:
            return 0.45 * math.sin(3 * x) + 0.55

        place = state.tolist()[0]
        canvas = Canvas(height=200, width=300, left=-1.2, right=0.6, bottom=-0.05)
        edges = [self.left + (self.right - self.left) * k / 40 for k in range(41)]
        for a, b in itertools.pairwise(edges):
            canvas.line((a, height(a)), (b, height(b)), 0.015, "grey")
        canvas.line((self.goal, height(self.goal)), (self.goal, 1.15), 0.01, "red")
        canvas.line((place, height(place) + 0.03), (place, height(place) + 0.04), 0.07, "blue")
        return canvas.picture()
