"""`convolve`: what callers use."""

from collections.abc import Callable
from contextlib import nullcontext
from math import prod
from typing import Literal

import torch
from torch import Tensor

from hotgrid.kernels.tune import (
    autocast_type,
    differentiated,
    plain_sizes,
    traced,
    transformed,
)

from ._arguments import check_exact, check_weights
from ._direct import by_shifts, by_windows
from ._extended import HALVES, folded
from ._fourier import by_spectra
from ._op import tuned_convolve
from ._registered import correlated, operator

# Inside of transforms nothing can be timed; from here on spectra have won everywhere.
_MANY = 256


def convolve(
    x: Tensor,
    kernel: Tensor,
    boundary: Literal["periodic", "zero"] = "periodic",
    *,
    exact: bool = False,
) -> Tensor:
    """Return, for every cell, the sum of its neighbours times the weights of a kernel.

    The kernel is laid over each cell as it is written, not turned around: what torch calls
    a convolution and mathematics a correlation. In one dim

        y[i] = sum over j of kernel[j] * x[i + j - (k - 1) // 2]

    so the middle weight is for the cell itself, and an even kernel reaches one cell further
    ahead than back, like the windows of `hotgrid.tensors.map_windows`, which takes any function
    of a window. For the convolution of mathematics, flip the kernel.

    Small kernels are laid over the cells, large ones multiplied as spectra; the tuner finds
    out from which radius on. Sums are taken in at least f32, and under `torch.autocast` all
    stays in the type of `x`. It has gradients for both, and works in `torch.compile` without
    a graph break and under `torch.vmap`, which also gives each channel its own kernel.

    Spectra mix all cells of a grid. So the error of a cell is relative to the largest one:
    some 1e-7 (1e-16 in f64), and never more than 1e-5 (1e-13), of the largest cell of its
    grid times the length of the kernel as a vector. In a mean over 21 x 21, one cell of 1e7
    makes distant ones wrong by a thousandth. A cell that sees NaN or Inf is not finite, and
    others of the same grid may be so too. Where the numbers of a grid are of very different
    sizes, ask for `exact`: then a cell depends on nothing but what it sees.

    Args:
        x: `[..., *space]` of f32, f64, f16 or bf16: any number of grids.
        kernel: `[*size]` of the same type, for the last 1, 2 or 3 dims of `x`; it may be
            larger than they are.
        boundary: What is beyond the ends: `"periodic"` the other end, `"zero"` zeros.
        exact: Add up weight by weight, even if that is slower. The error is that of a sum of
            what each cell sees; a pass over all cells for each weight makes large kernels
            slow.

    Returns:
        `[..., *space]`, of the type of `x`.

    Raises:
        ArgumentError: A shape, type or device does not match, the boundary is unknown, or
            `exact` is not a bool.
        KernelError: With `kernels.check_mode`, a kernel did something wrong.

    Example:
        >>> convolve(torch.tensor([0.0, 1.0, 0.0, 0.0]), torch.tensor([1.0, 2.0, 4.0])).round()
        tensor([4., 2., 1., 0.])
    """
    run = tuned_convolve.fast(boundary, x, kernel) if exact is False else None
    if run is not None:
        return run(x, kernel)
    check_weights(x, kernel, boundary)
    check_exact(exact)
    rank, periodic, given = kernel.ndim, boundary == "periodic", kernel
    space, sizes = plain_sizes(x.shape[-rank:]), plain_sizes(kernel.shape)
    before = tuple([(k - 1) // 2 for k in sizes])
    if periodic and x.numel() and any(k > n for k, n in zip(sizes, space, strict=True)):
        if x.dtype in HALVES:
            # What is folded has more digits than half precision.
            return convolve(x.float(), kernel.float(), boundary, exact=exact).to(x.dtype)
        kernel, before = folded(kernel, before, space)
    grids = x if x.ndim == rank + 1 else x.reshape(prod(x.shape[:-rank]), *space)
    if exact or transformed():
        found = _plainly(grids, kernel, before, periodic, exact)
    elif traced(grids, kernel) or differentiated(grids) or differentiated(kernel):
        found = operator(grids, kernel, before, periodic)
    else:
        found = correlated(grids, kernel, before, periodic)
        if kernel is given:
            shape, flat = x.shape, grids.shape

            def compute(run: Callable[..., Tensor], x: Tensor, kernel: Tensor) -> Tensor:
                if shape == flat:
                    return run(x, kernel, before, periodic)
                return run(x.reshape(flat), kernel, before, periodic).reshape(shape)

            arguments = (grids, kernel, before, periodic)
            tuned_convolve.keep_fast(boundary, (x, kernel), arguments, compute)
    return found if x.ndim == rank + 1 else found.reshape(x.shape)


def _plainly(
    x: Tensor, kernel: Tensor, before: tuple[int, ...], periodic: bool, exact: bool
) -> Tensor:
    """Compute it by torch's operations: torch.func knows their derivatives, not ours."""
    if x.numel() == 0:
        return x * kernel.sum()  # nothing, with derivatives
    fast = by_windows if kernel.numel() < _MANY else by_spectra
    with torch.autocast(x.device.type, enabled=False) if autocast_type(x) else nullcontext():
        return (by_shifts if exact else fast)(x, kernel, before, periodic)
