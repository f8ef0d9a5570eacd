"""Convolve as a function of cells and kernel alone, for later calls like one computed."""

from collections.abc import Callable

from torch import Tensor

from ._fourier import FOURIER
from ._tables import TABLES

Convolution = Callable[[Tensor, Tensor], Tensor]
_OF_ANY_RANK = (FOURIER.function, TABLES.function)


def short_convolution(
    function: Callable[..., Tensor],
    x: Tensor,
    rank: int,
    before: tuple[int, ...],
    periodic: bool,
) -> Convolution:
    """Return what convolves cells like `x` with a kernel of so many dims.

    Args:
        function: That of a candidate, of `[count, *space]`.
        x: `[..., *space]`, as in the calls to come.
        rank: How many dims the kernel has.
        before: How many cells it reaches back in each.
        periodic: Whether space is a torus.
    """
    if x.ndim == rank + 1 or function in _OF_ANY_RANK:
        return lambda x, kernel: function(x, kernel, before, periodic)
    shape, grids = x.shape, (-1, *x.shape[-rank:])
    return lambda x, kernel: function(x.reshape(grids), kernel, before, periodic).view(shape)
