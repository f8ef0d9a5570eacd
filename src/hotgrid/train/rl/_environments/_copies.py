"""`Copies`: an environment many times over, each copy beginning again when it has ended."""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from hotgrid.train.rl._draws import Draws

from ._environment import Actions, Environment


class Transition(NamedTuple):
    """One step of every copy, `[seeds, copies, ...]`.

    Attributes:
        observation: The observation before the action.
        action: The action taken.
        reward: The reward of the action.
        terminated: Whether the episode has ended by its own rules: nothing follows.
        truncated: Whether a limit of steps has cut it off: its value is bootstrapped.
        following: The observation after the action, before a new episode begins.
    """

    observation: Tensor
    action: Tensor
    reward: Tensor
    terminated: Tensor
    truncated: Tensor
    following: Tensor


class World(Protocol):
    """Copies of an environment for several seeds: on the device, or of Gymnasium.

    Attributes:
        seeds: The number of runs side by side.
        copies: The number of copies of each run.
        actions: The actions that a copy takes.
        observations: The length of an observation.
        observation: The present observations, float32 `[seeds, copies, observations]`.
    """

    seeds: int
    copies: int
    actions: Actions
    observations: int
    observation: Tensor

    def step(self, action: Tensor) -> Transition:
        """Take a step with every copy; those that end begin again."""
        ...

    def episodes(self) -> Tensor:
        """Return count, sum of returns and sum of lengths since the last call, `[3, seeds]`."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of a checkpoint; loading writes into the same tensors."""
        ...


class Copies:
    """Copies of a tensor environment. A step waits for nothing: all is on the device.

    Args:
        environment: The environment.
        seeds: The number of runs side by side.
        copies: The number of copies of each run.
        draws: The source of random initial states.

    Example:
        >>> copies = Copies(CartPole(), 1, 3, Draws(0, "cpu"))
        >>> step = copies.step(torch.ones(1, 3, dtype=torch.int64))
        >>> step.reward
        tensor([[1., 1., 1.]])
    """

    def __init__(self, environment: Environment, seeds: int, copies: int, draws: Draws) -> None:
        self.environment, self.seeds, self.copies = environment, seeds, copies
        self.actions, self.observations = environment.actions, environment.observations
        self._draws = draws
        # Memory of its own: an environment may keep the tensor, or expand one start to all.
        self._state = self._begun().clone()
        self.observation = environment.observe(self._state).clone()
        self._steps = torch.zeros(seeds, copies, device=draws.device, dtype=torch.int32)
        self._return = torch.zeros(seeds, copies, device=draws.device)
        self._episodes = torch.zeros(3, seeds, device=draws.device)
        self._spread = (..., *[None] * len(environment.shape))

    @property
    def state(self) -> Tensor:
        """The state of every copy, `[seeds, copies, *shape]`."""
        return self._state

    def step(self, action: Tensor) -> Transition:
        """Take a step with every copy; those that end begin again."""
        env, before = self.environment, self.observation.clone()
        state, reward, terminated = env.step(self._state, action)
        following = self._apart(env.observe(state))
        reward, terminated = self._apart(reward), self._apart(terminated)
        self._steps += 1
        truncated = self._steps >= env.limit
        over = terminated | truncated
        self._return += reward
        self._note(over)
        state = torch.where(over[self._spread], self._begun(), state)
        self._state.copy_(state)
        seen = torch.where(over[..., None], env.observe(state), following)
        # In place, as for all lasting state: a CUDA graph knows tensors by their memory.
        self.observation.copy_(seen)
        return Transition(before, action, reward, terminated, truncated, following)

    def episodes(self) -> Tensor:
        """Return count, sum of returns and sum of lengths since the last call."""
        found = self._episodes.clone()
        self._episodes.zero_()
        return found

    def tensors(self) -> dict[str, Tensor]:
        """Return states, observations and the sums of episodes."""
        return {
            "state": self._state,
            "observation": self.observation,
            "steps": self._steps,
            "return": self._return,
            "episodes": self._episodes,
        }

    def _apart(self, x: Tensor) -> Tensor:
        """A result in memory of its own, even if it was a view of the state."""
        shared = x.untyped_storage().data_ptr() == self._state.untyped_storage().data_ptr()
        return x.clone() if shared else x

    def _note(self, over: Tensor) -> None:
        """Add up the episodes that have ended, and begin new sums."""
        ended = over.float()
        rows = torch.stack((ended, ended * self._return, ended * self._steps))
        self._episodes += rows.sum(-1)
        self._return.masked_fill_(over, 0)
        self._steps.masked_fill_(over, 0)

    def _begun(self) -> Tensor:
        env = self.environment
        shape = (self.seeds, self.copies, env.randoms)
        return env.initial(self._draws.uniform(*shape, dtype=env.dtype))
