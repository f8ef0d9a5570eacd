"""`convolve`: what callers use."""

from math import prod
from typing import Literal

from torch import Tensor

from hotgrid.kernels.tune import differentiated, traced, transformed

from ._arguments import check_weights
from ._direct import by_windows
from ._extended import folded
from ._fourier import by_spectra
from ._registered import correlated, operator

# Inside of transforms nothing can be timed; from here on spectra have won everywhere.
_MANY = 256


def convolve(
    x: Tensor, kernel: Tensor, boundary: Literal["periodic", "zero"] = "periodic"
) -> Tensor:
    """Return, for every cell, the sum of its neighbours times the weights of a kernel.

    The kernel is laid over each cell as it is written, not turned around: what torch calls
    a convolution and mathematics a correlation. In one dim

        y[i] = sum over j of kernel[j] * x[i + j - (k - 1) // 2]

    so the middle weight is for the cell itself, and an even kernel reaches one cell further
    ahead than back, like the windows of `hotgrid.tensors.convolve`, which takes any function
    of a window. For the convolution of mathematics, flip the kernel.

    Small kernels are laid over the cells, large ones multiplied as spectra; the tuner finds
    out from which radius on. Sums are taken in at least f32. It has gradients for both, and
    works in `torch.compile` without a graph break and under `torch.vmap`, which is also the
    way to a kernel for each channel. A cell that sees NaN or Inf is not finite; other cells
    of the same grid may be so too.

    Args:
        x: `[..., *space]` of f32, f64, f16 or bf16: any number of grids.
        kernel: `[*size]` of the same type, for the last 1, 2 or 3 dims of `x`; it may be
            larger than they are.
        boundary: What is beyond the ends: `"periodic"` the other end, `"zero"` zeros.

    Returns:
        `[..., *space]`, of the type of `x`.

    Raises:
        ArgumentError: A shape, type or device does not fit, or the boundary is unknown.
        KernelError: With `kernels.check_mode`, a kernel did something wrong.

    Example:
        >>> convolve(torch.tensor([0.0, 1.0, 0.0, 0.0]), torch.tensor([1.0, 2.0, 4.0])).round()
        tensor([4., 2., 1., 0.])
    """
    check_weights(x, kernel, boundary)
    rank, periodic = kernel.ndim, boundary == "periodic"
    space = x.shape[-rank:]
    before = tuple([(k - 1) // 2 for k in kernel.shape])
    if periodic and x.numel() and any(k > n for k, n in zip(kernel.shape, space, strict=True)):
        kernel, before = folded(kernel, before, space)
    grids = x if x.ndim == rank + 1 else x.reshape(prod(x.shape[:-rank]), *space)
    if not (traced(grids, kernel) or differentiated(grids) or differentiated(kernel)):
        found = correlated(grids, kernel, before, periodic)
    elif transformed():
        # torch.func knows the derivatives of torch's operations, not those of ours.
        plainly = by_windows if kernel.numel() < _MANY else by_spectra
        found = plainly(grids, kernel, before, periodic)
    else:
        found = operator(grids, kernel, before, periodic)
    return found if x.ndim == rank + 1 else found.reshape(x.shape)
