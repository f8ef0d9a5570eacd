"""`WideTree`: sums over blocks of 64 priorities, so that three levels hold a large ring."""

import torch
from torch import Tensor

_BLOCK = 64


class WideTree:
    """Priorities of several seeds, set and found in a few operations over whole batches.

    A binary sum tree takes a dozen operations for each of its 17 levels at a capacity of
    100,000; three levels of blocks take as many in all. A sum is always recomputed from
    its block, so errors do not add up.

    Args:
        seeds: The number of seeds side by side.
        capacity: Priorities of each.
        device: The device of the priorities.

    Example:
        >>> tree = WideTree(1, 100)
        >>> tree.set(torch.tensor([[3, 70]]), torch.tensor([[1.0, 3.0]]))
        >>> tree.find(torch.tensor([[0.0, 0.2, 0.3, 0.9]]))
        tensor([[ 3,  3, 70, 70]])
    """

    def __init__(self, seeds: int, capacity: int, device: torch.device | str = "cpu") -> None:
        self.seeds, self.capacity = seeds, capacity
        # From the leaves up to a level of one block.
        self.levels: list[Tensor] = []
        count = capacity
        while True:
            blocks = -(-count // _BLOCK)
            shape = (seeds, blocks * _BLOCK)
            self.levels.append(torch.zeros(shape, dtype=torch.float64, device=device))
            if blocks == 1:
                break
            count = blocks
        self._seed = torch.arange(seeds, device=device)[:, None]

    @property
    def total(self) -> Tensor:
        """The sum of all priorities of every seed, `[seeds]`."""
        return self.levels[-1].cumsum(-1)[:, -1]

    def at(self, index: Tensor) -> Tensor:
        """Return priorities, `[seeds, n]`."""
        return self.levels[0].gather(1, index)

    def set(self, index: Tensor, priority: Tensor) -> None:
        """Change priorities; of several for one place the largest counts.

        Args:
            index: Places, `[seeds, n]`.
            priority: Numbers from 0, `[seeds, n]`.
        """
        self.levels[0].scatter_reduce_(
            1, index, priority.to(torch.float64), "amax", include_self=False
        )
        for below, above in zip(self.levels, self.levels[1:], strict=False):
            index = index // _BLOCK
            # As in `find`, where the last of the running sums must be this number exactly.
            above.scatter_(1, index, self._block(below, index).cumsum(-1)[..., -1])

    def find(self, share: Tensor) -> Tensor:
        """Return the places at which the running sum of priorities passes a share of all.

        Args:
            share: Numbers from 0, below 1, `[seeds, n]`.
        """
        index = torch.zeros_like(share, dtype=torch.int64)
        top = self._block(self.levels[-1], index).cumsum(-1)[..., -1]
        left = share.to(torch.float64) * top
        for level in reversed(self.levels):
            block = self._block(level, index)
            sums = block.cumsum(-1)
            child = (sums <= left[..., None]).sum(-1, keepdim=True).clamp(max=_BLOCK - 1)
            own = block.gather(-1, child)[..., 0]
            before = sums.gather(-1, child)[..., 0] - own
            # Rounding must not lead past the last priority of the block.
            left = (
                (left - before)
                .clamp(min=0)
                .minimum(torch.nextafter(own, torch.zeros_like(own)))
            )
            index = index * _BLOCK + child[..., 0]
        return index

    def tensors(self) -> dict[str, Tensor]:
        """Return all levels."""
        return {f"priority-{at}": level for at, level in enumerate(self.levels)}

    def _block(self, level: Tensor, index: Tensor) -> Tensor:
        """The blocks of some parents, `[seeds, n, 64]`."""
        blocks = level.view(self.seeds, -1, _BLOCK)
        return blocks[self._seed, index]
