"""LifeKeeper: keep a pattern of Conway's Life changing, with as few touches as possible."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.grid.life import Rule

from ._environment import Discrete, Environment, Stepped

_SIDE = 8
_RULE = Rule.parse("life")


@dataclass(frozen=True)
class LifeKeeper(Environment):
    """A random pattern on a torus of 8 x 8 cells, which settles if it is left alone.

    Before each generation one cell may be flipped; the last action flips none. A generation
    gives a reward of one, and a flip costs some of it. The episode ends when the pattern is
    empty, stands still or repeats itself after two generations.

    Example:
        >>> env = LifeKeeper()
        >>> board = torch.zeros(1, 2, 8, 8)
        >>> env.step(board, torch.tensor([64])).terminated
        tensor([True])
    """

    name = "life-keeper"
    summary = "Keep a pattern of Conway's Life changing, with as few touches as possible."
    actions = Discrete(_SIDE * _SIDE + 1)
    observations = _SIDE * _SIDE
    shape = (2, _SIDE, _SIDE)
    randoms = _SIDE * _SIDE
    rate = 5

    density: float = 0.4
    cost: float = 0.5
    limit: int = 200

    def initial(self, random: Tensor) -> Tensor:
        """Return random patterns, with an empty one as that of the generation before."""
        board = (random < self.density).to(random.dtype).unflatten(-1, (_SIDE, _SIDE))
        return torch.stack((board, torch.zeros_like(board)), -3)

    def observe(self, state: Tensor) -> Tensor:
        """Return the present pattern, cell by cell."""
        return state[..., 0, :, :].flatten(-2)

    def step(self, state: Tensor, action: Tensor) -> Stepped:
        """Take a step: a flip, then a generation."""
        now, before = state.unbind(-3)
        places = torch.arange(self.randoms, device=state.device)
        flip = (places == action[..., None]).to(state.dtype).unflatten(-1, (_SIDE, _SIDE))
        touched = (now - flip).abs()
        after = _generation(touched)
        same = (after == touched).flatten(-2).all(-1)
        repeated = (after == before).flatten(-2).all(-1)
        empty = after.flatten(-2).amax(-1) == 0
        acted = (action < self.randoms).to(torch.float32)
        return Stepped(
            torch.stack((after, touched), -3), 1 - self.cost * acted, same | repeated | empty
        )

    def draw(self, state: Tensor) -> Tensor:
        """Return a picture of the cells."""
        board = state[0].repeat_interleave(24, 0).repeat_interleave(24, 1)[..., None]
        return (255 - board * torch.tensor((209, 146, 75))).to(torch.uint8)


def _generation(board: Tensor) -> Tensor:
    """One generation of Life on a torus, by the neighbours of every cell."""
    rows = board + torch.roll(board, 1, -2) + torch.roll(board, -1, -2)
    count = rows + torch.roll(rows, 1, -1) + torch.roll(rows, -1, -1) - board
    born = torch.stack([count == n for n in sorted(_RULE.birth)]).any(0)
    stays = torch.stack([count == n for n in sorted(_RULE.survival)]).any(0)
    return torch.where(board > 0, stays, born).to(board.dtype)
