"""CartPole: keep a pole upright on a cart that is pushed left or right."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ._environment import Discrete, Environment, Stepped
from ._picture import Canvas


@dataclass(frozen=True)
class CartPole(Environment):
    """The pole of Barto, Sutton and Anderson 1983; equal to Gymnasium's `CartPole-v1`.

    The state is the place and velocity of the cart, and the angle and angular velocity of
    the pole. The reward is one for every step.

    Example:
        >>> env = CartPole()
        >>> env.observe(env.initial(torch.full((1, 4), 0.5))).shape
        torch.Size([1, 4])
    """

    name = "cartpole"
    summary = "Keep a pole upright on a cart that is pushed left or right."
    actions = Discrete(2)
    observations = 4
    shape = (4,)
    randoms = 4
    dtype = torch.float64
    rate = 50
    units = (1.0, 1.0, 0.2, 1.0)
    twin = "CartPole-v1"

    gravity: float = 9.8
    cart_mass: float = 1.0
    pole_mass: float = 0.1
    half_length: float = 0.5
    force: float = 10.0
    interval: float = 0.02
    largest_angle: float = 12 * 2 * math.pi / 360
    largest_place: float = 2.4
    limit: int = 500

    def initial(self, random: Tensor) -> Tensor:
        """Return states within 0.05 of rest."""
        return 0.1 * random - 0.05

    def observe(self, state: Tensor) -> Tensor:
        """Return the state itself."""
        return state.float()

    def step(self, state: Tensor, action: Tensor) -> Stepped:
        """Take one Euler step of the equations of motion."""
        place, velocity, angle, turning = state.unbind(-1)
        total = self.pole_mass + self.cart_mass
        moment = self.pole_mass * self.half_length
        cos, sin = torch.cos(angle), torch.sin(angle)
        force = 2 * self.force * action.to(state.dtype) - self.force
        push = (force + moment * turning.square() * sin) / total
        reach = self.half_length * (4 / 3 - self.pole_mass * cos.square() / total)
        angular = (self.gravity * sin - cos * push) / reach
        linear = push - moment * angular * cos / total
        change = torch.stack((velocity, linear, turning, angular), -1)
        state = state + self.interval * change
        fallen = state[..., 2].abs() > self.largest_angle
        terminated = fallen | (state[..., 0].abs() > self.largest_place)
        return Stepped(state, torch.ones_like(place, dtype=torch.float32), terminated)

    def draw(self, state: Tensor) -> Tensor:
        """Return a picture of the cart and its pole."""
        place, _, angle, _ = state.tolist()
        canvas = Canvas(height=200, width=300, left=-2.4, right=2.4, bottom=-0.6)
        canvas.line((-2.4, 0.0), (2.4, 0.0), 0.02, "grey")
        canvas.line((place - 0.25, 0.0), (place + 0.25, 0.0), 0.24, "dark")
        length = 2 * self.half_length
        tip = (place + length * math.sin(angle), length * math.cos(angle))
        canvas.line((place, 0.0), tip, 0.08, "blue")
        return canvas.picture()
