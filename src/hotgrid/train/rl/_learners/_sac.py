"""SAC: learn a policy that is as random as it can be while it earns much."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from hotgrid.errors import ArgumentError
from hotgrid.train.rl._draws import Draws
from hotgrid.train.rl._environments import Actions, Box
from hotgrid.train.rl._replay import Batch
from hotgrid.train.rl._weights import Dense, Weights

from ._learner import Agent, Eyes, Learner, Learnt, is_number

_SPREADS = (-5.0, 2.0)


@dataclass(frozen=True)
class SAC(Learner):
    """Soft actor-critic of Haarnoja and others 2018, with a learned temperature.

    Attributes:
        actor_rate: The learning rate of the policy.
        entropy: The entropy that the temperature aims at for each number of an action.
        temperature: The weight of the entropy at the beginning.

    Example:
        >>> SAC(hidden=(64, 64)).entropy
        -1.0
    """

    name = "sac"

    rate: float = 1e-3
    actor_rate: float = 3e-4
    entropy: float = -1.0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("actor_rate", "temperature"):
            value = getattr(self, name)
            self._expect(name, is_number(value) and value > 0, "a number above 0")
        self._expect("entropy", is_number(self.entropy), "a number")

    def begin(
        self,
        observations: int,
        actions: Actions,
        seeds: int,
        draws: Draws,
        units: Sequence[float] | None = None,
    ) -> Agent:
        """Return agents with fresh weights."""
        if not isinstance(actions, Box) or not all(
            map(math.isfinite, actions.low + actions.high)
        ):
            raise ArgumentError(
                f"SAC gives real numbers between limits, and this environment takes {actions}"
                + ("; use DQN" if not isinstance(actions, Box) else "")
            )
        return SACAgent(self, observations, actions, seeds, draws, Eyes(units, draws.device))


class SACAgent(Agent):
    """An actor, two critics as a second axis of seeds, and a temperature."""

    def __init__(
        self, how: SAC, observations: int, actions: Box, seeds: int, draws: Draws, eyes: Eyes
    ) -> None:
        self._how, self._seeds, self._width = how, seeds, actions.width
        self._eyes = eyes
        low = torch.tensor(actions.low, device=draws.device)
        high = torch.tensor(actions.high, device=draws.device)
        self._middle, self._reach = (high + low) / 2, (high - low) / 2
        self._actor_net = Dense((observations, *how.hidden, 2 * self._width))
        self._critic_net = Dense((observations + self._width, *how.hidden, 1))
        self._actor = Weights(self._actor_net.initial(seeds, draws), how.actor_rate)
        self._critics = Weights(self._critic_net.initial(2 * seeds, draws), how.rate)
        self._target = self._critics.value.detach().clone()
        start = torch.full((seeds, 1), math.log(how.temperature), device=draws.device)
        self._warmth = Weights(start, how.rate)

    def explore(self, observation: Tensor, chance: Tensor, draws: Draws) -> Tensor:
        """Return actions of the policy, and uniform ones with a chance."""
        with torch.no_grad():
            action, _ = self._sampled(self._eyes(observation), draws)
        dice = draws.uniform(*action.shape[:-1], 1)
        anywhere = 2 * draws.uniform(*action.shape) - 1
        return self._scaled(torch.where(dice < chance, anywhere, action))

    @torch.no_grad()
    def act(self, observation: Tensor) -> Tensor:
        """Return the actions at the middle of the policy."""
        mean, _ = self._actor_net(self._actor.value, self._eyes(observation)).chunk(2, -1)
        return self._scaled(torch.tanh(mean))

    def learn(self, batch: Batch, draws: Draws) -> Learnt:
        """Make one update of critics, actor and temperature."""
        seen, following = self._eyes(batch.observation), self._eyes(batch.following)
        given = (batch.action - self._middle) / self._reach
        warmth = self._warmth.value.detach().exp()
        with torch.no_grad():
            action, chance = self._sampled(following, draws)
            worth = self._worth(self._target, following, action).amin(0)
            goal = batch.reward + batch.discount * (worth - warmth * chance)
        found = self._worth(self._critics.value, seen, given)
        loss = (found - goal).square().sum(0) / 2
        weighted = loss if batch.weight is None else loss * batch.weight
        per_seed = weighted.mean(-1)
        self._critics.fit(per_seed.sum())

        action, chance = self._sampled(seen, draws)
        worth = self._worth(self._critics.value.detach(), seen, action).amin(0)
        self._actor.fit((warmth * chance - worth).mean(-1).sum())
        # The entropy is below its aim: the temperature rises.
        short = chance.detach().mean(-1, keepdim=True) + self._how.entropy * self._width
        self._warmth.fit((-self._warmth.value.exp() * short).sum())
        self._target.lerp_(self._critics.value.detach(), self._how.tau)
        values = {
            "loss": per_seed.detach(),
            "value": found.detach().mean((0, -1)),
            "entropy": -chance.detach().mean(-1),
            "temperature": warmth[:, 0],
        }
        return Learnt((found - goal).detach().abs().mean(0), values)

    def policy(self) -> dict[str, Tensor]:
        """Return the weights of the actor."""
        return {"actor": self._actor.value.detach()}

    def tensors(self) -> dict[str, Tensor]:
        """Return actor, critics, temperature, and their optimizers."""
        parts = {"actor": self._actor, "critics": self._critics, "warmth": self._warmth}
        found = {
            f"{part}-{name}": tensor
            for part, weights in parts.items()
            for name, tensor in weights.tensors().items()
        }
        return found | {"target": self._target}

    @property
    def networks(self) -> Mapping[str, int]:
        """The actor and two critics."""
        return {"actor": self._actor_net.count, "critics": 2 * self._critic_net.count}

    def _scaled(self, action: Tensor) -> Tensor:
        return self._middle + self._reach * action

    def _sampled(self, observation: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
        """Actions from -1 to 1, and the logarithm of their density."""
        mean, spread = self._actor_net(self._actor.value, observation).chunk(2, -1)
        low, high = _SPREADS
        spread = low + (high - low) / 2 * (torch.tanh(spread) + 1)
        noise = draws.normal(*mean.shape)
        loose = mean + spread.exp() * noise
        density = -0.5 * noise.square() - spread - 0.5 * math.log(2 * math.pi)
        # The logarithm of 1 - tanh(x)**2, where x may be large.
        bent = 2 * (math.log(2) - loose - F.softplus(-2 * loose))
        return torch.tanh(loose), (density - bent).sum(-1)

    def _worth(self, critics: Tensor, observation: Tensor, action: Tensor) -> Tensor:
        """The values of both critics, `[2, seeds, rows]`."""
        x = torch.cat((observation, action), -1)
        found = self._critic_net(critics, x.expand(2, *x.shape).flatten(0, 1))
        return found.squeeze(-1).unflatten(0, (2, self._seeds))
