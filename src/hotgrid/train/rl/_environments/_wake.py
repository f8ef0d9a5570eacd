"""Wake: calm the wake of a cylinder by turning it, on a lattice-Boltzmann flow."""

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from hotgrid.grid.lbm import D2Q9, Regularized, ball, equilibrium, moments

from ._environment import Box, Environment, Stepped

_HEIGHT, _WIDTH, _DIAMETER = 40, 96, 10
_CENTRE = (_HEIGHT / 2 - 0.5, 24.0)
# Columns at the right end in which vortices are calmed.
_CALMED = 24
_CELLS = D2Q9.count * _HEIGHT * _WIDTH
# Where velocities are seen, in cells: beside and behind the cylinder.
_PROBES = tuple((y, x) for x in (28, 34, 42, 52, 64) for y in (10, 15, 20, 25, 30))
# Starts, evenly over the time in which about one pair of vortices is shed.
_PHASES = 8


class _Surface(NamedTuple):
    """The links that the cylinder cuts: where, and what a spin of one adds there."""

    solid: Tensor
    cut: Tensor
    push: Tensor
    along: Tensor


@dataclass(frozen=True)
class Wake(Environment):
    """A cylinder in a stream, in a row of such cylinders, which may turn about its axis.

    An action is the speed of its surface, as a share of `fastest` times the speed of the
    stream; the cylinder takes a few steps of the flow to follow. The reward is the share
    of the drag of a cylinder at rest that is saved, less a tenth of the lift over that
    drag: a cylinder that only turns steadily pays for its lift. Velocities at 25 places
    are seen, and the spin. Episodes start anywhere in the cycle of vortices.

    Attributes:
        reynolds: Speed times diameter over viscosity.
        speed: The speed of the stream, in cells a step of the flow.
        fastest: The largest speed of the surface, over that of the stream.
        interval: Steps of the flow in a step of the environment.
        development: Steps of the flow before the first start.
        limit: Steps after which an episode is truncated.

    Example:
        >>> Wake().actions
        Box(low=(-1.0,), high=(1.0,))
    """

    name = "wake"
    summary = "Save drag by turning a cylinder in a stream."
    actions = Box((-1.0,), (1.0,))
    observations = 2 * len(_PROBES) + 1
    # Populations, and the spin.
    shape = (_CELLS + 1,)
    randoms = 1
    rate = 15

    reynolds: float = 100.0
    speed: float = 0.1
    fastest: float = 2.0
    interval: int = 20
    development: int = 1500
    limit: int = 80

    def initial(self, random: Tensor) -> Tensor:
        """Return flows from the cycle of vortices behind a cylinder at rest."""
        states, _ = _developed(self, str(random.device))
        return states[(random[..., 0] * _PHASES).long()]

    def observe(self, state: Tensor) -> Tensor:
        """Return velocities over that of the stream, and the spin over the fastest."""
        f = state[..., :-1].unflatten(-1, (D2Q9.count, _HEIGHT * _WIDTH))
        here = f[..., _probes(str(state.device))].unbind(-2)
        excess, momentum = moments(D2Q9, here)
        velocity = torch.stack(momentum, -1) / (1 + excess)[..., None] / self.speed
        spin = state[..., -1:] / (self.fastest * self.speed)
        return torch.cat((velocity.flatten(-2), spin), -1)

    def step(self, state: Tensor, action: Tensor) -> Stepped:
        """Take `interval` steps of the flow."""
        _, rest = _developed(self)
        goal = action[..., 0].clamp(-1, 1) * (self.fastest * self.speed)
        state, force = self.flow(state, goal.to(state.dtype), self.interval)
        lift, drag = force.unbind(-1)
        reward = 1 - drag / rest - 0.1 * lift.abs() / rest
        never = torch.zeros_like(drag, dtype=torch.bool)
        return Stepped(state, reward.float(), never)

    def flow(self, state: Tensor, goal: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        """Take steps of the flow while the cylinder turns towards a spin.

        Args:
            state: `[..., *shape]`.
            goal: The speed of the surface that is aimed at, `[...]`.
            steps: How many.

        Returns:
            The state, and the mean force on the cylinder, `(lift, drag)` in `[..., 2]`.
        """
        f = state[..., :-1].unflatten(-1, (D2Q9.count, _HEIGHT, _WIDTH)).unbind(-3)
        spin, total = state[..., -1], 0.0
        for _ in range(steps):
            spin = spin + 0.1 * (goal - spin)
            f, force = self._moved(f, spin)
            total = total + force
        flat = torch.stack(f, -3).flatten(-3)
        return torch.cat((flat, spin[..., None]), -1), total / steps  # pyright: ignore[reportReturnType]

    def _moved(self, f: tuple[Tensor, ...], spin: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """One step of the flow: pull, bounce off the cylinder, in- and outflow, collide."""
        solid, cut, push, along = _surface(str(spin.device))
        turned = spin[..., None, None]
        pulled, force = [], 0.0
        for i, c in enumerate(D2Q9.velocities):
            plane = torch.roll(f[i], c, (-2, -1))
            if i:
                leaving = f[D2Q9.opposite[i]]
                back = leaving + turned * push[i]
                plane = torch.where(cut[i], back, plane)
                passed = ((leaving + back) * cut[i]).sum((-2, -1))
                force = force - passed[..., None] * along[i]
            pulled.append(plane)
        pulled = self._opened(pulled)
        excess, momentum = moments(D2Q9, pulled)
        base = equilibrium(D2Q9, excess, momentum)
        off = [plane - eq for plane, eq in zip(pulled, base, strict=True)]
        omega = _relaxation(self.speed * _DIAMETER / self.reynolds, str(spin.device))
        left = Regularized().relaxed(D2Q9, off, 1 + excess, omega)
        fluid = ~solid
        return tuple((b + x) * fluid for b, x in zip(base, left, strict=True)), force  # pyright: ignore[reportReturnType]

    def _opened(self, pulled: list[Tensor]) -> list[Tensor]:
        """A stream enters at the left and leaves at the right, at a density of one."""
        excess, momentum = moments(D2Q9, [plane[..., -2:-1] for plane in pulled])
        none = torch.zeros_like(excess)
        # Both ends at equilibrium: other populations there would feed sound back into the flow.
        stream = equilibrium(D2Q9, none, [none, none + self.speed])
        leaving = equilibrium(D2Q9, none, momentum)
        return [
            torch.cat((first, plane[..., 1:-1], last), -1)
            for first, plane, last in zip(stream, pulled, leaving, strict=True)
        ]

    def draw(self, state: Tensor) -> Tensor:
        """Return a picture of the vorticity, red and blue, with the cylinder."""
        f = state[:-1].unflatten(-1, (D2Q9.count, _HEIGHT, _WIDTH)).unbind(0)
        _excess, (uy, ux) = moments(D2Q9, f)
        curl = (torch.roll(uy, -1, 1) - torch.roll(uy, 1, 1)) / 2
        curl = curl - (torch.roll(ux, -1, 0) - torch.roll(ux, 1, 0)) / 2
        solid = _surface("cpu").solid
        shade = (curl / (4 * self.speed / _DIAMETER)).clamp(-1, 1).masked_fill(solid, 0)
        # There are no cells beyond the edges to take differences with.
        shade[:, [0, -1]] = 0
        warm, cold = shade.clamp(min=0)[..., None], (-shade).clamp(min=0)[..., None]
        page = 255 - warm * torch.tensor((55, 179, 195)) - cold * torch.tensor((209, 146, 75))
        page[solid] = 60.0
        page = page.flip(0).repeat_interleave(4, 0).repeat_interleave(4, 1)
        return page.round().to(torch.uint8)


@functools.lru_cache(maxsize=16)
def _relaxation(viscosity: float, device: str) -> Tensor:
    """The rate of relaxation by column; before the outflow, viscosity calms the vortices."""
    share = (torch.arange(_WIDTH) - (_WIDTH - _CALMED)).clamp(min=0) / _CALMED
    return (1 / (3 * (viscosity + 0.1 * share**2) + 0.5)).to(device)


@functools.cache
def _surface(device: str) -> _Surface:
    solid = ball(_CENTRE, _DIAMETER / 2)((_HEIGHT, _WIDTH))
    y, x = torch.meshgrid(torch.arange(_HEIGHT), torch.arange(_WIDTH), indexing="ij")
    cut, push, along = [], [], []
    for weight, (cy, cx) in zip(D2Q9.weights, D2Q9.velocities, strict=True):
        met = torch.roll(solid, (cy, cx), (0, 1)) & ~solid
        # The surface is half-way along the link; a positive spin is counter-clockwise.
        from_y, from_x = y - cy / 2 - _CENTRE[0], x - cx / 2 - _CENTRE[1]
        swept = (cy * from_x - cx * from_y) / (_DIAMETER / 2)
        cut.append(met)
        push.append(6 * weight * swept * met)
        along.append(torch.tensor((float(cy), float(cx))))
    stacks = (torch.stack(each).to(device) for each in (cut, push, along))
    return _Surface(solid.to(device), *stacks)


@functools.cache
def _probes(device: str) -> Tensor:
    """The cells that are observed, as places in a plane."""
    return torch.tensor([y * _WIDTH + x for y, x in _PROBES], device=device)


def _developed(env: Wake, device: str = "cpu") -> tuple[Tensor, float]:
    """Flows in all phases of the cycle, `[phases, *shape]`, and the drag over it."""
    # Fields that do not change the flow past a cylinder at rest need no new computation.
    plain = dataclasses.replace(env, limit=1, interval=1, fastest=1.0)
    return _phases(plain, device), _cycle(plain)[1]


@functools.lru_cache(maxsize=4)
def _phases(env: Wake, device: str) -> Tensor:
    return _cycle(env)[0].to(device)


@functools.lru_cache(maxsize=4)
def _cycle(env: Wake) -> tuple[Tensor, float]:
    excess = torch.zeros(_HEIGHT, _WIDTH)
    y = torch.arange(_HEIGHT)[:, None]
    # A stream that is not the same above and below: vortices begin at once.
    ux = env.speed * (1 + 0.3 * torch.sin(2 * math.pi * y / _HEIGHT)).expand_as(excess)
    f = torch.stack(equilibrium(D2Q9, excess, [excess, ux])) * ~_surface("cpu").solid
    state = torch.cat((f.flatten(), torch.zeros(1)))
    still = torch.zeros(())
    state, _ = env.flow(state, still, env.development)
    # Vortices are shed with a Strouhal number near 0.2.
    period = round(_DIAMETER / (0.2 * env.speed))
    found, drags = [], []
    for _ in range(_PHASES):
        found.append(state)
        state, force = env.flow(state, still, period // _PHASES)
        drags.append(float(force[1]))
    return torch.stack(found), sum(drags) / len(drags)
