"""Acrobot: swing a two-link arm up by a torque at its middle joint."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ._environment import Discrete, Environment, Stepped
from ._picture import Canvas


@dataclass(frozen=True)
class Acrobot(Environment):
    """The two-link arm of Sutton 1996; equal to Gymnasium's `Acrobot-v1`.

    The state is both angles and their velocities; actions are torques of -1, 0 and 1. The
    reward is -1 for every step that does not reach the goal.

    Example:
        >>> env = Acrobot()
        >>> env.observe(env.initial(torch.full((1, 4), 0.5, dtype=torch.float64)))
        tensor([[1., 0., 1., 0., 0., 0.]])
    """

    name = "acrobot"
    summary = "Swing a two-link arm up by a torque at its middle joint."
    actions = Discrete(3)
    observations = 6
    shape = (4,)
    randoms = 4
    dtype = torch.float64
    rate = 15
    units = (1.0, 1.0, 1.0, 1.0, 5.0, 10.0)
    twin = "Acrobot-v1"

    length: float = 1.0
    mass: float = 1.0
    centre: float = 0.5
    inertia: float = 1.0
    gravity: float = 9.8
    interval: float = 0.2
    fastest_first: float = 4 * math.pi
    fastest_second: float = 9 * math.pi
    limit: int = 500

    def initial(self, random: Tensor) -> Tensor:
        """Return states within 0.1 of hanging at rest, in single precision as Gymnasium's."""
        return (0.2 * random - 0.1).float().to(random.dtype)

    def observe(self, state: Tensor) -> Tensor:
        """Return cosine and sine of both angles, and both velocities."""
        angles = state[..., :2]
        turns = torch.stack((torch.cos(angles), torch.sin(angles)), -1).flatten(-2)
        return torch.cat((turns, state[..., 2:]), -1).float()

    def step(self, state: Tensor, action: Tensor) -> Stepped:
        """Take one Runge-Kutta step, with angles wrapped and speeds limited."""
        torque = action.to(state.dtype) - 1
        h = self.interval
        k1 = self._change(state, torque)
        k2 = self._change(state + h / 2 * k1, torque)
        k3 = self._change(state + h / 2 * k2, torque)
        k4 = self._change(state + h * k3, torque)
        first, second, fast, faster = (state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)).unbind(-1)
        first, second = _wrapped(first), _wrapped(second)
        fast = fast.clamp(-self.fastest_first, self.fastest_first)
        faster = faster.clamp(-self.fastest_second, self.fastest_second)
        terminated = -torch.cos(first) - torch.cos(second + first) > 1
        return Stepped(
            torch.stack((first, second, fast, faster), -1),
            terminated.float() - 1,
            terminated,
        )

    def _change(self, state: Tensor, torque: Tensor) -> Tensor:
        """The derivative of the state, by the equations of the book of Sutton and Barto."""
        first, second, fast, faster = state.unbind(-1)
        m, l, c, g = self.mass, self.length, self.centre, self.gravity
        cos, sin = torch.cos(second), torch.sin(second)
        d1 = m * c**2 + m * (l**2 + c**2 + 2 * l * c * cos) + self.inertia + self.inertia
        d2 = m * (c**2 + l * c * cos) + self.inertia
        phi2 = m * c * g * torch.cos(first + second - math.pi / 2)
        phi1 = (
            -m * l * c * faster**2 * sin
            - 2 * m * l * c * faster * fast * sin
            + (m * c + m * l) * g * torch.cos(first - math.pi / 2)
            + phi2
        )
        ratio = d2 / d1
        bend = torque + ratio * phi1 - m * l * c * fast**2 * sin - phi2
        bend = bend / (m * c**2 + self.inertia - d2**2 / d1)
        return torch.stack((fast, faster, -(d2 * bend + phi1) / d1, bend), -1)

    def draw(self, state: Tensor) -> Tensor:
        """Return a picture of both links, and the height of the goal."""
        first, second, _, _ = state.tolist()
        canvas = Canvas(height=240, width=240, left=-2.2, right=2.2, bottom=-2.2)
        canvas.line((-2.2, 1.0), (2.2, 1.0), 0.02, "grey")
        elbow = (self.length * math.sin(first), -self.length * math.cos(first))
        both = first + second
        tip = (elbow[0] + self.length * math.sin(both), elbow[1] - self.length * math.cos(both))
        canvas.line((0.0, 0.0), elbow, 0.14, "dark")
        canvas.line(elbow, tip, 0.14, "blue")
        return canvas.picture()


def _wrapped(angle: Tensor) -> Tensor:
    """The angle between -pi and pi; both ends stay as they are."""
    turn = 2 * math.pi
    # Not a remainder: an angle that is within the limits must not change in its last digit.
    # One step turns by at most about three turns.
    for _ in range(3):
        angle = torch.where(angle > math.pi, angle - turn, angle)
        angle = torch.where(angle < -math.pi, angle + turn, angle)
    return angle
