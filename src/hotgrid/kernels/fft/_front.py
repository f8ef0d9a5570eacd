"""`rfft2` and `irfft2`: what callers use."""

from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor

from hotgrid.kernels.tune import differentiated, traced, transformed

from ._arguments import (
    COMPLEX,
    LAST_TWO,
    REAL,
    Lengths,
    check_numbers,
    checked_lengths,
    checked_norm,
)
from ._op import tuned_irfft2, tuned_rfft2
from ._registered import inverse_operator, operator, restored_images, transformed_images
from ._short import short_inverse, short_transform


def rfft2(
    x: Tensor,
    s: Lengths | None = None,
    dim: Lengths = LAST_TWO,
    norm: str | None = None,
) -> Tensor:
    """Return the half spectra of real images, computed the way that is fastest here.

    It means what `torch.fft.rfft2` means, has its gradients, and works in `torch.compile`
    without a graph break and under `torch.vmap`. f32 and f64 are tuned; other types are
    torch's. Under `torch.autocast` all stays in the type of `x`. An image that holds NaN or
    Inf has a spectrum that is not finite; the other images of a batch are none the worse.

    Args:
        x: `[..., h, w]`, real; any number of images.
        s: The lengths of the transform, -1 for what there is: images are cut or filled
            with zeros to it.
        dim: The two dims of an image; the half of the second one is left out.
        norm: `"backward"` (the default, no factor), `"ortho"` (1/sqrt(h w)) or
            `"forward"` (1/(h w)).

    Returns:
        `[..., h, w // 2 + 1]`, complex.

    Raises:
        ArgumentError: An argument is wrong; DimensionError where a dim does not exist.
        KernelError: With `kernels.check_mode`, a kernel did something wrong.

    Example:
        >>> rfft2(torch.ones(2, 4)).real
        tensor([[8., 0., 0.],
                [0., 0., 0.]])
    """
    usual = s is None and dim is LAST_TWO
    short = tuned_rfft2.shortcut(norm, x) if usual else None
    if short is not None:
        return short(x)
    check_numbers(x, real=True)
    lengths, dims = checked_lengths(x, s, dim, count=2)
    given, norm = norm, checked_norm(norm)
    if x.dtype not in REAL or transformed():
        return torch.fft.rfft2(x, lengths, dims, norm)
    planes = _planes(x, lengths, dims)
    straight = not (traced(planes) or differentiated(planes))
    found = (transformed_images if straight else operator)(planes, norm)
    if usual and straight:
        made = lambda function: short_transform(function, x, norm)
        tuned_rfft2.keep_shortcut(given, (x,), (planes, norm), made)
    return _placed(found, x, dims)


def irfft2(
    x: Tensor,
    s: Lengths | None = None,
    dim: Lengths = LAST_TWO,
    norm: str | None = None,
) -> Tensor:
    """Return the real images of half spectra, computed the way that is fastest here.

    It means what `torch.fft.irfft2` means; see `rfft2`.

    Args:
        x: `[..., h, m]`, complex: what `rfft2` gives.
        s: The height and the width of the images; the width is `2 * (m - 1)` by default,
            so an odd one must be told.
        dim: The two dims of an image.
        norm: `"backward"` (the default, 1/(h w)), `"ortho"` (1/sqrt(h w)) or `"forward"`
            (no factor).

    Returns:
        `[..., h, w]`, real.

    Raises:
        ArgumentError: As `rfft2`.

    Example:
        >>> irfft2(rfft2(torch.eye(3)), s=(3, 3)).round().abs()
        tensor([[1., 0., 0.],
                [0., 1., 0.],
                [0., 0., 1.]])
    """
    usual = dim is LAST_TWO and (s is None or _two_numbers(s))
    short = tuned_irfft2.shortcut((s, norm), x) if usual else None
    if short is not None:
        return short(x)
    check_numbers(x)
    lengths, dims = checked_lengths(x, s, dim, halved=True, count=2)
    given, norm = (s, norm), checked_norm(norm)
    if x.dtype not in COMPLEX or transformed():
        return torch.fft.irfft2(x, lengths, dims, norm)
    height, width = lengths
    planes = _planes(x, (height, width // 2 + 1), dims)
    straight = not (traced(planes) or differentiated(planes))
    found = (restored_images if straight else inverse_operator)(planes, width, norm)
    if usual and straight and planes.shape[-2:] == x.shape[-2:]:
        made = lambda function: short_inverse(function, x, width, norm)
        tuned_irfft2.keep_shortcut(given, (x,), (planes, width, norm), made)
    return _placed(found, x, dims)


def _two_numbers(s: Lengths) -> bool:
    """Whether these are two ints: equal numbers of other types may be wrong."""
    return isinstance(s, tuple) and len(s) == 2 and type(s[0]) is type(s[1]) is int


def _planes(x: Tensor, lengths: tuple[int, ...], dims: tuple[int, ...]) -> Tensor:
    """The images as `[count, h, w]`, cut or filled to their lengths."""
    if dims != (x.ndim - 2, x.ndim - 1):
        x = x.movedim(dims, (-2, -1))
    if x.shape[-2:] == lengths:
        return x if x.ndim == 3 else x.reshape(prod(x.shape[:-2]), *lengths)
    for dim, length in zip((-2, -1), lengths, strict=True):
        if length < x.shape[dim]:
            x = x.narrow(dim, 0, length)
        elif length > x.shape[dim]:
            more = length - x.shape[dim]
            x = F.pad(x, (0, more) if dim == -1 else (0, 0, 0, more))
    return x if x.ndim == 3 else x.reshape(prod(x.shape[:-2]), *x.shape[-2:])


def _placed(found: Tensor, x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The result with the dims of the images where they were."""
    last = dims == (x.ndim - 2, x.ndim - 1)
    if last and x.ndim == 3:
        return found
    others = [n for i, n in enumerate(x.shape) if i not in dims]
    found = found.reshape(*others, *found.shape[-2:])
    return found if last else found.movedim((-2, -1), dims)
