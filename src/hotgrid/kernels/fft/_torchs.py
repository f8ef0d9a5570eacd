"""Transforms that are torch's own: here so that one import has all, with clear errors.

They have one implementation each, so nothing is tuned. Any length, any number of dims,
gradients, `torch.compile` and `torch.vmap` are torch's.
"""

from typing import SupportsIndex

import torch
from torch import Tensor

from ._arguments import (
    Lengths,
    check_numbers,
    checked_length,
    checked_lengths,
    checked_norm,
)


def fft(
    x: Tensor, n: SupportsIndex | None = None, dim: SupportsIndex = -1, norm: str | None = None
) -> Tensor:
    """Return the Fourier transform along one dim: `torch.fft.fft`.

    Args:
        x: `[..., m, ...]`, real or complex.
        n: The length of the transform: `x` is cut or filled with zeros to it; m by default.
        dim: The dim of size m.
        norm: `"backward"` (the default, no factor), `"ortho"` (1/sqrt(n)) or `"forward"`
            (1/n).

    Returns:
        `[..., n, ...]`, complex.

    Raises:
        ArgumentError: An argument is wrong; DimensionError where the dim does not exist.

    Example:
        >>> fft(torch.tensor([1.0, 0.0, 0.0])).real.round()
        tensor([1., 1., 1.])
    """
    check_numbers(x)
    length, dim = checked_length(x, n, dim)
    return torch.fft.fft(x, length, dim, checked_norm(norm))


def ifft(
    x: Tensor, n: SupportsIndex | None = None, dim: SupportsIndex = -1, norm: str | None = None
) -> Tensor:
    """Return the inverse transform along one dim: `torch.fft.ifft`.

    Args:
        x: `[..., m, ...]`, real or complex.
        n: The length of the transform, m by default.
        dim: The dim of size m.
        norm: `"backward"` (the default, 1/n), `"ortho"` (1/sqrt(n)) or `"forward"` (none).

    Returns:
        `[..., n, ...]`, complex.

    Raises:
        ArgumentError: As `fft`.

    Example:
        >>> ifft(fft(torch.tensor([1.0, 2.0, 4.0]))).real.round()
        tensor([1., 2., 4.])
    """
    check_numbers(x)
    length, dim = checked_length(x, n, dim)
    return torch.fft.ifft(x, length, dim, checked_norm(norm))


def rfft(
    x: Tensor, n: SupportsIndex | None = None, dim: SupportsIndex = -1, norm: str | None = None
) -> Tensor:
    """Return the half of the transform that says all of real numbers: `torch.fft.rfft`.

    Args:
        x: `[..., m, ...]`, real.
        n: The length of the transform, m by default.
        dim: The dim of size m.
        norm: As `fft`.

    Returns:
        `[..., n // 2 + 1, ...]`, complex.

    Raises:
        ArgumentError: As `fft`, and for complex numbers.

    Example:
        >>> rfft(torch.ones(4)).real
        tensor([4., 0., 0.])
    """
    check_numbers(x, real=True)
    length, dim = checked_length(x, n, dim)
    return torch.fft.rfft(x, length, dim, checked_norm(norm))


def irfft(
    x: Tensor, n: SupportsIndex | None = None, dim: SupportsIndex = -1, norm: str | None = None
) -> Tensor:
    """Return the real numbers that a half of a transform belongs to: `torch.fft.irfft`.

    Args:
        x: `[..., m, ...]`, what `rfft` gives.
        n: How many real numbers; `2 * (m - 1)` by default, so an odd length must be told.
        dim: The dim of size m.
        norm: As `ifft`.

    Returns:
        `[..., n, ...]`, real.

    Raises:
        ArgumentError: As `fft`.

    Example:
        >>> irfft(rfft(torch.tensor([1.0, 2.0, 4.0])), n=3).round()
        tensor([1., 2., 4.])
    """
    check_numbers(x)
    length, dim = checked_length(x, n, dim, halved=True)
    return torch.fft.irfft(x, length, dim, checked_norm(norm))


def fft2(
    x: Tensor,
    s: Lengths | None = None,
    dim: Lengths = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """Return the Fourier transform along two dims: `torch.fft.fft2`.

    Args:
        x: `[..., h, w]`, real or complex.
        s: The two lengths, -1 for what there is.
        dim: The two dims.
        norm: As `fft`, with the product of both lengths for n.

    Returns:
        `[..., *s]`, complex.

    Raises:
        ArgumentError: As `fft`.

    Example:
        >>> fft2(torch.ones(2, 3)).real
        tensor([[6., 0., 0.],
                [0., 0., 0.]])
    """
    check_numbers(x)
    lengths, dims = checked_lengths(x, s, dim, count=2)
    return torch.fft.fft2(x, lengths, dims, checked_norm(norm))


def ifft2(
    x: Tensor,
    s: Lengths | None = None,
    dim: Lengths = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """Return the inverse transform along two dims: `torch.fft.ifft2`.

    Args:
        x: `[..., h, w]`, real or complex.
        s: The two lengths, -1 for what there is.
        dim: The two dims.
        norm: As `ifft`.

    Returns:
        `[..., *s]`, complex.

    Raises:
        ArgumentError: As `fft`.

    Example:
        >>> ifft2(fft2(torch.eye(2))).real
        tensor([[1., 0.],
                [0., 1.]])
    """
    check_numbers(x)
    lengths, dims = checked_lengths(x, s, dim, count=2)
    return torch.fft.ifft2(x, lengths, dims, checked_norm(norm))


def fftn(
    x: Tensor,
    s: Lengths | None = None,
    dim: Lengths | None = None,
    norm: str | None = None,
) -> Tensor:
    """Return the Fourier transform along any number of dims: `torch.fft.fftn`.

    Args:
        x: Real or complex, any shape.
        s: A length for each dim, -1 for what there is.
        dim: The dims; by default the last `len(s)`, or all.
        norm: As `fft`, with the product of all lengths for n.

    Returns:
        Complex, with the lengths of the transform.

    Raises:
        ArgumentError: As `fft`.

    Example:
        >>> fftn(torch.ones(2, 2, 2)).real.flatten()
        tensor([8., 0., 0., 0., 0., 0., 0., 0.])
    """
    check_numbers(x)
    lengths, dims = checked_lengths(x, s, dim)
    return torch.fft.fftn(x, lengths, dims, checked_norm(norm))


def ifftn(
    x: Tensor,
    s: Lengths | None = None,
    dim: Lengths | None = None,
    norm: str | None = None,
) -> Tensor:
    """Return the inverse transform along any number of dims: `torch.fft.ifftn`.

    Args:
        x: Real or complex, any shape.
        s: A length for each dim, -1 for what there is.
        dim: The dims; by default the last `len(s)`, or all.
        norm: As `ifft`.

    Returns:
        Complex, with the lengths of the transform.

    Raises:
        ArgumentError: As `fft`.

    Example:
        >>> ifftn(fftn(torch.ones(2, 1, 2))).real.flatten()
        tensor([1., 1., 1., 1.])
    """
    check_numbers(x)
    lengths, dims = checked_lengths(x, s, dim)
    return torch.fft.ifftn(x, lengths, dims, checked_norm(norm))


def rfftn(
    x: Tensor,
    s: Lengths | None = None,
    dim: Lengths | None = None,
    norm: str | None = None,
) -> Tensor:
    """Return the transform of real numbers along any number of dims: `torch.fft.rfftn`.

    The last of the dims has only half of it. For two dims, `rfft2` is the tuned way.

    Args:
        x: Real, any shape.
        s: A length for each dim, -1 for what there is.
        dim: The dims; by default the last `len(s)`, or all.
        norm: As `fft`, with the product of all lengths for n.

    Returns:
        Complex, with the lengths of the transform, the last one `n // 2 + 1`.

    Raises:
        ArgumentError: As `rfft`.

    Example:
        >>> rfftn(torch.ones(2, 2, 2)).real.flatten()
        tensor([8., 0., 0., 0., 0., 0., 0., 0.])
    """
    check_numbers(x, real=True)
    lengths, dims = checked_lengths(x, s, dim)
    return torch.fft.rfftn(x, lengths, dims, checked_norm(norm))


def irfftn(
    x: Tensor,
    s: Lengths | None = None,
    dim: Lengths | None = None,
    norm: str | None = None,
) -> Tensor:
    """Return the real numbers that `rfftn` was given: `torch.fft.irfftn`.

    Args:
        x: What `rfftn` gives.
        s: A length for each dim; the last one is `2 * (m - 1)` by default.
        dim: The dims; by default the last `len(s)`, or all.
        norm: As `ifft`.

    Returns:
        Real, with the lengths of the transform.

    Raises:
        ArgumentError: As `fft`.

    Example:
        >>> irfftn(rfftn(torch.ones(2, 1, 3)), s=(2, 1, 3)).flatten()
        tensor([1., 1., 1., 1., 1., 1.])
    """
    check_numbers(x)
    lengths, dims = checked_lengths(x, s, dim, halved=True)
    return torch.fft.irfftn(x, lengths, dims, checked_norm(norm))
