"""Evaluation: whole episodes of the best actions, apart from training."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.train.rl._environments import World
from hotgrid.train.rl._learners import Agent

from ._recorded import Recorded

# How many steps are taken before one asks the device whether all episodes have ended.
_UNASKED = 25
# Environments of hotgrid have a limit; those of Gymnasium may have none.
_MOST_STEPS = 1_000_000


class AbandonedError(Exception):
    """An evaluation was abandoned because the run was asked to stop."""


class Returns(NamedTuple):
    """Episodes of every seed, `[seeds, episodes]`.

    Attributes:
        returns: The sums of rewards.
        lengths: The numbers of steps.
    """

    returns: Tensor
    lengths: Tensor


@torch.no_grad()
def evaluate(
    agent: Agent,
    world: World,
    *,
    captured: bool = False,
    abandon: Callable[[], bool] | None = None,
) -> Returns:
    """Return the first episode of every copy of a fresh world.

    Args:
        agent: The agent that acts.
        world: Fresh copies, one for each episode.
        captured: Record a step on a CPU and replay it; for tensor environments.
        abandon: Called now and then; if it returns True, `AbandonedError` is raised.

    Raises:
        ArgumentError: An episode does not end.

    Example:
        >>> draws = Draws(0, "cpu")
        >>> world = Copies(CartPole(), 1, 5, draws)
        >>> evaluate(DQN().begin(4, world.actions, 1, draws), world).returns.shape
        torch.Size([1, 5])
    """
    going = torch.ones(world.seeds, world.copies, dtype=torch.bool)
    going = going.to(world.observation.device)
    returns, lengths = (
        torch.zeros_like(going, dtype=torch.float64),
        torch.zeros_like(going, dtype=torch.float64),
    )

    def step() -> None:
        found = world.step(agent.act(world.observation))
        returns.add_(found.reward * going)
        lengths.add_(going)
        going.logical_and_(~(found.terminated | found.truncated))

    call = Recorded(step) if captured and going.device.type == "cpu" else step
    made = 0
    while made % _UNASKED or bool(going.any()):
        call()
        made += 1
        if made % _UNASKED == 0 and abandon is not None and abandon():
            raise AbandonedError
        if made >= _MOST_STEPS:
            raise ArgumentError(
                f"an episode of the evaluation has not ended after {made:,} steps; give the "
                "environment a limit (Gymnasium: `max_episode_steps`)"
            )
    return Returns(returns, lengths)


WorldMaker = Callable[[int, int, int], World]
"""A function from seeds, copies and a seed of random numbers to a world."""
