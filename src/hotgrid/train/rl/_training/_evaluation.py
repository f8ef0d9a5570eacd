"""Evaluation: whole episodes of the best actions, apart from training."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from hotgrid.train.rl._environments import World
from hotgrid.train.rl._learners import Agent

from ._recorded import Recorded

# How many steps are taken before one asks the device whether all episodes have ended.
_UNASKED = 25


class Returns(NamedTuple):
    """Episodes of every seed, `[seeds, episodes]`.

    Attributes:
        returns: The sums of rewards.
        lengths: The numbers of steps.
    """

    returns: Tensor
    lengths: Tensor


@torch.no_grad()
def evaluate(agent: Agent, world: World, *, captured: bool = False) -> Returns:
    """Return the first episode of every copy of a fresh world.

    Args:
        agent: Its `act` chooses.
        world: Fresh copies, one for each episode.
        captured: Record a step on a CPU and replay it; for tensor environments.

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
    return Returns(returns, lengths)


WorldMaker = Callable[[int, int, int], World]
"""A function from seeds, copies and a seed of random numbers to a world."""
