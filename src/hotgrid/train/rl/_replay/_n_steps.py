"""`NSteps`: transitions of one step joined to transitions of n, before they are stored."""

import torch
from torch import Tensor

from ._rows import Rows


class NSteps:
    """The last n - 1 transitions of every copy, still growing.

    A transition grows until it has n steps, or until its episode ends. What comes out is n - 1
    steps late.

    Args:
        rows: The columns of a transition.
        seeds: The number of runs side by side.
        copies: The number of copies of each run.
        steps: n, from 2.
        device: The device of the window.
    """

    def __init__(
        self, rows: Rows, seeds: int, copies: int, steps: int, device: torch.device | str
    ) -> None:
        self.steps, self._rows = steps, rows
        shape = (steps - 1, seeds, copies)
        self._pending = torch.zeros(*shape, rows.width, device=device)
        self._open = torch.zeros(shape, dtype=torch.bool, device=device)

    def joined(self, rows: Tensor, over: Tensor) -> Tensor:
        """Take the newest transitions; return those of n - 1 steps ago, grown."""
        o, end = self._rows.observations, self._rows.closing
        pending, grows = self._pending, self._open[..., None]
        reward, discount = pending[..., end].split(1, -1)
        # reward + discount * reward', discount * discount'
        tail = torch.cat((reward, torch.zeros_like(reward)), -1) + discount * rows[..., end]
        grown = pending.clone()
        grown[..., o : 2 * o] = rows[..., o : 2 * o]
        grown[..., end] = tail
        every = torch.cat((torch.where(grows, grown, pending), rows[None]))
        still = torch.cat((self._open, torch.ones_like(over)[None])) & ~over
        self._pending.copy_(every[1:])
        self._open.copy_(still[1:])
        return every[0]

    def cut(self) -> None:
        """End the growth of all transitions, since other episodes follow."""
        self._open.zero_()

    def tensors(self) -> dict[str, Tensor]:
        """Return the window."""
        return {"pending": self._pending, "open": self._open}
