"""The transforms of real images as the tuner sees them."""

from typing import Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.kernels.tune import Call, Op, Tuned, Work

from ._arguments import checked_norm
from ._candidates import CANDIDATES, INVERSE_CANDIDATES
from ._reference import forward, inverse

_MOST_COMPARED = 2**22  # numbers; whole images, and at least one
# Of the root of the mean square of an image's result.
_FORGIVEN = {torch.float32: 1e-5, torch.float64: 1e-13}


def describe(x: Tensor, norm: str) -> Call:
    """Describe a transform: `count` real images `[height, width]`."""
    return _described("rfft2", x, x.shape[-1])


def describe_inverse(x: Tensor, width: int, norm: str) -> Call:
    """Describe an inverse transform by the images that come out."""
    return _described("irfft2", x, width)


def _described(op: str, x: Tensor, width: int) -> Call:
    real = x.dtype.to_real() if x.is_complex() else x.dtype
    return Call(
        op=op,
        dtype=str(real).removeprefix("torch."),
        device=x.device,
        layout="plain" if x.is_contiguous() else "strided",
        sizes={"count": x.shape[0], "height": x.shape[1], "width": width},
    )


def work(call: Call) -> Work:
    """Images and half spectra are moved once; a good transform is bound by that."""
    count, height, width = (call.sizes[name] for name in ("count", "height", "width"))
    numbers = count * height * (width + 2 * (width // 2 + 1))
    return Work(bytes=numbers * getattr(torch, call.dtype).itemsize)


def compare(expected: Tensor, found: Tensor, x: Tensor, *_: Any) -> str | None:
    """Say what differs beyond rounding; an image with NaN or Inf need only show some."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return (
            f"the result is {found.dtype} {tuple(found.shape)} and should be "
            f"{expected.dtype} {tuple(expected.shape)}"
        )
    calm = x.isfinite().flatten(1).all(1)
    lost = ~expected.isfinite().flatten(1).all(1) & found.isfinite().flatten(1).all(1)
    if bool((lost & ~calm).any()):
        return "NaN or Inf of an image do not show"
    right, got = (_in_double(each[calm]).flatten(1) for each in (expected, found))
    size = right.abs().square().mean(1, keepdim=True).sqrt()
    forgiven = _FORGIVEN[x.dtype.to_real() if x.is_complex() else x.dtype]
    error = (got - right).abs() / size.clamp(min=1e-300)
    if bool((~(error <= forgiven)).any()):
        return f"the error is {float(error.nan_to_num(torch.inf).max()):.2g} of an image's size"
    return None


def _in_double(x: Tensor) -> Tensor:
    return x.to(torch.complex128 if x.is_complex() else torch.float64)


def excerpt(x: Tensor, *others: Any) -> tuple[Any, ...]:
    """Whole images, as many as are compared quickly."""
    keep = max(1, _MOST_COMPARED // (x.shape[1] * x.shape[2]))
    return (x if keep >= len(x) else x[:keep], *others)


def sample(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, *, norm: str
) -> tuple[Any, ...]:
    """Random images, the same on every run; the shape ends with height and width."""
    return _images(shape, dtype).to(device), checked_norm(norm)


def sample_inverse(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, *, norm: str
) -> tuple[Any, ...]:
    """The half spectra of random images; the shape is that of the images."""
    return forward(_images(shape, dtype), "ortho").to(device), shape[-1], checked_norm(norm)


def sound_spectra(x: Tensor, width: int, norm: str) -> tuple[Any, ...]:
    """Write half spectra of images into `x`.

    Of other numbers, what stands for itself and its mirror image is no longer real, and every
    library makes something else of that.
    """
    draw = torch.Generator(x.device).manual_seed(0)
    real = x.dtype.to_real()
    images = torch.randn((*x.shape[:-1], width), generator=draw, dtype=real, device=x.device)
    return x.copy_(torch.fft.rfft2(images, norm="ortho")), width, norm


def _images(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    if len(shape) < 2 or min(shape) < 1:
        raise ArgumentError(f"`shape` {shape} must end with a height and a width of 1 or more")
    if dtype not in _FORGIVEN:
        raise ArgumentError(f"`dtype` is {dtype}; images are tuned in float32 and float64")
    draw = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=draw).to(dtype).reshape(-1, *shape[-2:])


RFFT2 = Op(
    name="rfft2",
    reference=forward,
    candidates=CANDIDATES,
    describe=describe,
    work=work,
    compare=compare,
    sample=sample,
    options={"norm": "backward"},
    excerpt=excerpt,
)
"""Half spectra of real images: the reference, the candidates, what the tuner must know."""

IRFFT2 = Op(
    name="irfft2",
    reference=inverse,
    candidates=INVERSE_CANDIDATES,
    describe=describe_inverse,
    work=work,
    compare=compare,
    sample=sample_inverse,
    options={"norm": "backward"},
    excerpt=excerpt,
    sound=sound_spectra,
)
"""Real images of half spectra; on the command line a shape is that of the images."""

tuned_rfft2 = Tuned(RFFT2)
"""`rfft2` of `[count, height, width]` through the fastest candidate, arguments checked."""

tuned_irfft2 = Tuned(IRFFT2)
"""`irfft2` to `[count, height, width]` through the fastest candidate, arguments checked."""
