"""The Laplacian that the equations of this package share."""

from functools import reduce

import torch
from torch import Tensor

from hotgrid.grid.model import Neighbours


def laplacian(u: Neighbours) -> Tensor:
    """The second difference, summed over all dims; in cells, second order.

    Args:
        u: The handle of one component, of any rank.

    Returns:
        `[*space]`: both neighbours along every dim, less as often the cell itself.

    Example:
        >>> from hotgrid.grid.pde.schemes import laplacian
        >>> class Spread(Model):
        ...     fields = (Field("u"),)
        ...     def step(self, state, inputs, params):
        ...         return {"u": state["u"].here + 0.1 * laplacian(state["u"])}
    """
    dims = range(u.rank)
    beside = [tuple(o * (dim == own) for dim in dims) for own in dims for o in (-1, 1)]
    return reduce(torch.add, [u[offset] for offset in beside]) - 2 * u.rank * u.here
