"""Reading a profile between its points."""

import torch
from torch import Tensor


def interpolated(x: Tensor, y: Tensor, at: Tensor) -> Tensor:
    """The cubic through the four nearest points, at other places.

    Arguments:
        x: Where the points are, `[points]`, rising; four at least.
        y: The values there, `[points]`.
        at: The places, `[places]`, between the first point and the last.

    Returns:
        `[places]`.
    """
    first = (torch.searchsorted(x, at) - 2).clamp(0, len(x) - 4)
    near = first[:, None] + torch.arange(4, device=x.device)
    xs, ys = x[near], y[near]
    found = torch.zeros_like(at)
    for i in range(4):
        others = [j for j in range(4) if j != i]
        apart = torch.stack([(at - xs[:, j]) / (xs[:, i] - xs[:, j]) for j in others])
        found = found + ys[:, i] * apart.prod(0)
    return found
