"""Gymnasium's environments as a `World`, and tensor environments as Gymnasium's."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, MissingPartError, near

from ._copies import Transition
from ._environment import Actions, Box, Discrete, Environment, Stepped

if TYPE_CHECKING:
    import numpy as np

PREFIX = "gymnasium:"
"""The prefix of the names of Gymnasium's environments."""


def _gymnasium() -> Any:
    try:
        import gymnasium
    except ImportError as problem:
        raise MissingPartError(
            "Gymnasium is not installed; run `pip install hotgrid[rl]`"
        ) from problem
    return gymnasium


class GymnasiumCopies:
    """Copies of a Gymnasium environment, stepped on the CPU.

    Copies begin again in the step in which they end, and the observation before is kept. A
    Gymnasium environment cannot be saved: a run that is resumed begins new episodes.

    Args:
        name: The id, such as `CartPole-v1`.
        seeds: The number of runs side by side.
        copies: The number of copies of each run.
        seed: The random seed of the copies.
        device: The device of the tensors.
        options: Arguments of `gymnasium.make`.

    Raises:
        MissingPartError: Gymnasium is not installed.
        ArgumentError: There is no such environment, or it has spaces of another kind.

    Example:
        >>> world = GymnasiumCopies("CartPole-v1", 1, 2, seed=0)
        >>> world.step(torch.ones(1, 2, dtype=torch.int64)).reward
        tensor([[1., 1.]])
    """

    def __init__(
        self,
        name: str,
        seeds: int,
        copies: int,
        *,
        seed: int,
        device: torch.device | str = "cpu",
        **options: Any,
    ) -> None:
        gymnasium = _gymnasium()
        try:
            self._envs = gymnasium.make_vec(
                name,
                num_envs=seeds * copies,
                vectorization_mode="sync",
                vector_kwargs={"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP},
                **options,
            )
        except gymnasium.error.Error as problem:
            hint = near(name, gymnasium.registry)
            raise ArgumentError(f"Gymnasium cannot make `{name}`: {problem}{hint}") from None
        except ImportError as problem:
            # An id may begin with a module that registers it.
            raise ArgumentError(f"Gymnasium cannot make `{name}`: {problem}") from problem
        self.seeds, self.copies, self.device = seeds, copies, torch.device(device)
        self.actions = _actions(name, self._envs.single_action_space)
        seen = self._envs.single_observation_space
        if not isinstance(seen, gymnasium.spaces.Box):
            raise ArgumentError(f"`{name}` shows {seen}; only boxes of numbers can be learned")
        self.observations = int(torch.Size(seen.shape).numel())
        self.restart(seed)

    def restart(self, seed: int) -> None:
        """Begin new episodes, with other random numbers."""
        first, _ = self._envs.reset(seed=seed)
        self.observation = self._tensor(first, self.observations)
        self._return = torch.zeros(self.seeds, self.copies, device=self.device)
        self._steps = torch.zeros_like(self._return)
        self._episodes = torch.zeros(3, self.seeds, device=self.device)

    def step(self, action: Tensor) -> Transition:
        """Take a step with every copy; those that end begin again."""
        before = self.observation
        given = action.reshape(self.seeds * self.copies, *action.shape[2:]).cpu().numpy()
        seen, reward, terminated, truncated, info = self._envs.step(given)
        self.observation = self._tensor(seen, self.observations)
        following = self.observation
        if "final_obs" in info:
            last = seen.copy()
            for at in info["_final_obs"].nonzero()[0]:
                last[at] = info["final_obs"][at]
            following = self._tensor(last, self.observations)
        found = Transition(
            before,
            action,
            self._tensor(reward),
            self._tensor(terminated).bool(),
            self._tensor(truncated).bool(),
            following,
        )
        self._note(found)
        return found

    def episodes(self) -> Tensor:
        """Return count, sum of returns and sum of lengths since the last call."""
        found = self._episodes.clone()
        self._episodes.zero_()
        return found

    def tensors(self) -> dict[str, Tensor]:
        """Return nothing: Gymnasium's environments cannot be saved."""
        return {}

    def close(self) -> None:
        """End the environments."""
        self._envs.close()

    def _note(self, found: Transition) -> None:
        self._return += found.reward
        self._steps += 1
        ended = (found.terminated | found.truncated).float()
        rows = torch.stack((ended, ended * self._return, ended * self._steps))
        self._episodes += rows.sum(-1)
        self._return *= 1 - ended
        self._steps *= 1 - ended

    def _tensor(self, values: "np.ndarray[Any, Any]", *width: int) -> Tensor:
        found = torch.as_tensor(values).to(self.device, torch.float32)
        return found.reshape(self.seeds, self.copies, *width)


class GymnasiumTask(Environment):
    """The interface of a Gymnasium environment, for its policy; it cannot step tensors.

    Args:
        name: `gymnasium:ID`.

    Raises:
        MissingPartError: Gymnasium is not installed.
        ArgumentError: There is no such environment, or it has spaces of another kind.

    Example:
        >>> GymnasiumTask("gymnasium:MountainCarContinuous-v0").observations
        2
    """

    randoms = 0

    def __init__(self, name: str) -> None:
        probe = GymnasiumCopies(name.removeprefix(PREFIX), 1, 1, seed=0)
        parts: dict[str, Any] = {
            "name": name,
            "summary": "An environment of Gymnasium.",
            "actions": probe.actions,
            "observations": probe.observations,
        }
        probe.close()
        vars(self).update(parts)

    def initial(self, random: Tensor) -> Tensor:
        """Refuse: there are no tensors."""
        raise self._refusal()

    def observe(self, state: Tensor) -> Tensor:
        """Refuse: there are no tensors."""
        raise self._refusal()

    def step(self, state: Tensor, action: Tensor) -> Stepped:
        """Refuse: there are no tensors."""
        raise self._refusal()

    def _refusal(self) -> ArgumentError:
        short = self.name.removeprefix(PREFIX)
        return ArgumentError(
            f"`{self.name}` cannot be shown: hotgrid draws its own environments and those that "
            f"they equal. Act in it with `GymnasiumCopies({short!r}, ...)` and `agent.act`"
        )


def _actions(name: str, space: Any) -> Actions:
    spaces = _gymnasium().spaces
    if isinstance(space, spaces.Discrete) and space.start == 0:
        return Discrete(int(space.n))
    if isinstance(space, spaces.Box) and len(space.shape) == 1:
        return Box(tuple(map(float, space.low)), tuple(map(float, space.high)))
    raise ArgumentError(
        f"`{name}` takes {space}; expected whole numbers from 0, or a vector of numbers"
    )
