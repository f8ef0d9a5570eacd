"""DQN: learn the value of every action; double, duelling, over n steps, by distributions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from hotgrid.errors import ArgumentError
from hotgrid.train.rl._draws import Draws
from hotgrid.train.rl._environments import Actions, Discrete
from hotgrid.train.rl._replay import Batch
from hotgrid.train.rl._weights import Dense, Weights

from ._learner import Agent, Eyes, Learner, Learnt, is_number


@dataclass(frozen=True)
class DQN(Learner):
    """Deep Q-learning of Mnih and others 2015, with later improvements.

    Attributes:
        double: Let the network choose the next action and the target network value it.
        duelling: Learn the value of a state apart from the advantage of an action.
        atoms: Learn a distribution over this many returns instead of the mean (C51); None is
            the mean.
        low: The least return of a distribution, in units of `scale`.
        high: The largest return of a distribution, in units of `scale`.
        clip: The largest norm of the gradient of a seed.
        scale: The reward that counts as one: networks learn values of about one soonest.

    Example:
        >>> DQN(hidden=(64, 64), n_steps=3).double
        True
    """

    name = "dqn"

    double: bool = True
    duelling: bool = False
    atoms: int | None = None
    low: float = 0.0
    high: float = 100.0
    clip: float | None = 10.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("double", "duelling"):
            self._expect(name, type(getattr(self, name)) is bool, "True or False")
        for name in ("low", "high"):
            self._expect(name, is_number(getattr(self, name)), "a number")
        self._expect("scale", is_number(self.scale) and self.scale > 0, "a number above 0")
        right = self.clip is None or (is_number(self.clip) and self.clip > 0)
        self._expect("clip", right, "a number above 0, or None")
        right = self.atoms is None or type(self.atoms) is int
        self._expect("atoms", right, "a whole number from 2, or None")
        if self.atoms is not None and (self.atoms < 2 or self.low >= self.high):
            raise ArgumentError(
                f"`atoms` is {self.atoms} from {self.low} to {self.high}; expected at least 2, "
                "and `low` below `high`"
            )

    def begin(
        self,
        observations: int,
        actions: Actions,
        seeds: int,
        draws: Draws,
        units: Sequence[float] | None = None,
    ) -> Agent:
        """Return agents with fresh weights."""
        if not isinstance(actions, Discrete):
            raise ArgumentError(
                f"DQN chooses among actions, and this environment takes {actions}; use SAC"
            )
        kind = DQNAgent if self.atoms is None else C51Agent
        return kind(self, observations, actions.count, seeds, draws, Eyes(units, draws.device))


class DQNAgent(Agent):
    """The networks of DQN. Online and target weights share memory, to be used together."""

    def __init__(
        self, how: DQN, observations: int, count: int, seeds: int, draws: Draws, eyes: Eyes
    ) -> None:
        self._how, self._count, self._eyes = how, count, eyes
        self._atoms = how.atoms or 1
        outputs = (count + how.duelling) * self._atoms
        self._net = Dense((observations, *how.hidden, outputs))
        start = self._net.initial(seeds, draws)
        self._both = torch.stack((start, start))
        self._online = Weights(self._both[0], how.rate, how.clip)
        self._target = self._both[1]

    def explore(self, observation: Tensor, chance: Tensor, draws: Draws) -> Tensor:
        """Return the best actions, and random ones with a chance."""
        best = self.act(observation)
        dice, any_action = draws.uniform(2, *best.shape)
        any_action = (any_action * self._count).long()
        return torch.where(dice < chance, any_action, best)

    @torch.no_grad()
    def act(self, observation: Tensor) -> Tensor:
        """Return the actions of the highest value."""
        return self._values(self._net(self._online.value, self._eyes(observation))).argmax(-1)

    def learn(self, batch: Batch, draws: Draws) -> Learnt:
        """Make one update, and move the target network a little."""
        with torch.no_grad():
            following = self._eyes(batch.following)
            following = following.expand(2, *following.shape).flatten(0, 1)
            online, target = self._net(self._both.flatten(0, 1), following).chunk(2)
            chooser = online if self._how.double else target
            best = self._values(chooser).argmax(-1)
            goal = self._goal(batch, self._picked(target, best))
        out = self._net(self._online.value, self._eyes(batch.observation))
        found = self._picked(out, batch.action)
        errors, loss = self._errors(found, goal)
        weighted = loss if batch.weight is None else loss * batch.weight
        per_seed = weighted.mean(-1)
        self._online.fit(per_seed.sum())
        self._target.lerp_(self._online.value.detach(), self._how.tau)
        value = self._how.scale * self._mean(found.detach()).mean(-1)
        return Learnt(errors, {"loss": per_seed.detach(), "value": value})

    def policy(self) -> dict[str, Tensor]:
        """Return the weights of the network."""
        return {"online": self._online.value.detach()}

    def tensors(self) -> dict[str, Tensor]:
        """Return both networks and the optimizer."""
        return {**self._online.tensors(), "target": self._target}

    @property
    def networks(self) -> Mapping[str, int]:
        """One network; the target is a copy."""
        return {"values": self._net.count}

    # The methods that a distribution overrides.

    def _outputs(self, out: Tensor) -> Tensor:
        """The outputs of every action, `[seeds, rows, actions, atoms]`."""
        out = out.unflatten(-1, (-1, self._atoms))
        if not self._how.duelling:
            return out
        value, advantage = out.split((1, self._count), -2)
        return value + advantage - advantage.mean(-2, keepdim=True)

    def _picked(self, out: Tensor, action: Tensor) -> Tensor:
        """The outputs of one action for every row, `[seeds, rows, atoms]`."""
        place = action[..., None, None].expand(*action.shape, 1, self._atoms)
        return self._outputs(out).gather(-2, place).squeeze(-2)

    def _values(self, out: Tensor) -> Tensor:
        """The value of every action, `[seeds, rows, actions]`."""
        return self._mean(self._outputs(out))

    def _mean(self, outputs: Tensor) -> Tensor:
        return outputs.squeeze(-1)

    def _goal(self, batch: Batch, following: Tensor) -> Tensor:
        """The targets for the outputs of the actions, `[seeds, rows, atoms]`."""
        reward = batch.reward / self._how.scale
        return torch.addcmul(reward, batch.discount, following.squeeze(-1))[..., None]

    def _errors(self, found: Tensor, goal: Tensor) -> tuple[Tensor, Tensor]:
        """The errors of every row, and their losses."""
        found, goal = found.squeeze(-1), goal.squeeze(-1)
        return (found - goal).detach(), F.smooth_l1_loss(found, goal, reduction="none")


class C51Agent(DQNAgent):
    """DQN over distributions (Bellemare, Dabney and Munos 2017)."""

    def __init__(
        self, how: DQN, observations: int, count: int, seeds: int, draws: Draws, eyes: Eyes
    ) -> None:
        super().__init__(how, observations, count, seeds, draws, eyes)
        self._returns = torch.linspace(how.low, how.high, self._atoms, device=draws.device)
        self._gap = (how.high - how.low) / (self._atoms - 1)

    def _mean(self, outputs: Tensor) -> Tensor:
        return outputs.softmax(-1) @ self._returns

    def _goal(self, batch: Batch, following: Tensor) -> Tensor:
        """The distribution one transition later, put onto the returns of the atoms."""
        reward = batch.reward / self._how.scale
        moved = reward[..., None] + batch.discount[..., None] * self._returns
        moved = moved.clamp(self._how.low, self._how.high)
        # How near each atom is to each moved one, in gaps: the share of its chance it takes.
        near = (moved[..., None, :] - self._returns[:, None]).abs() / self._gap
        return ((1 - near).clamp(min=0) @ following.softmax(-1)[..., None])[..., 0]

    def _errors(self, found: Tensor, goal: Tensor) -> tuple[Tensor, Tensor]:
        loss = -(goal * found.log_softmax(-1)).sum(-1)
        return loss.detach(), loss
