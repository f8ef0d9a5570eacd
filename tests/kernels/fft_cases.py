"""Calls that every candidate of the transforms of real images is put through."""

from collections.abc import Iterator
from typing import Any

import torch

from .gemv_cases import normal

# Heights and widths: tiny, odd, prime, and powers of two.
SIZES = ((1, 1), (1, 2), (2, 1), (3, 5), (4, 4), (8, 7), (13, 16), (16, 13), (31, 6), (32, 48))
NORMS = ("backward", "ortho", "forward")


def nested() -> torch.Tensor:
    """Images of different sizes in one tensor."""
    return torch.nested.nested_tensor([normal(3, 4), normal(5, 4)], layout=torch.jagged)


def rfft2_cases() -> Iterator[tuple[Any, ...]]:
    for dtype in (torch.float32, torch.float64):
        for height, width in SIZES:
            for count in (1, 2, 5):
                for norm in NORMS:
                    yield normal(count, height, width).to(dtype), norm
        images = normal(6, 12, 14).to(dtype)
        for view in (images.mT, images.permute(1, 0, 2), images[:, :, ::2], images[::2, 1:]):
            yield view, "backward"
        yield images[:1].expand(6, 12, 14), "ortho"
        yield torch.zeros(2, 12, 14, dtype=dtype), "backward"
        # One image must not cost its neighbours their digits, nor make them NaN.
        yield (
            images * torch.tensor([1e-6, 1, 1e6, 1, 1e-6, 1]).to(dtype)[:, None, None],
            "ortho",
        )
        for special in (float("nan"), float("inf")):
            spoilt = normal(4, 9, 8).to(dtype)
            spoilt[1, 3, 2] = special
            yield spoilt, "backward"


def irfft2_cases() -> Iterator[tuple[Any, ...]]:
    for x, norm in rfft2_cases():
        yield torch.fft.rfft2(x), x.shape[-1], norm
    # Numbers that are no spectrum of anything real: what is superfluous is left out.
    for height, width in SIZES:
        parts = normal(2, height, width // 2 + 1, 2)
        yield torch.view_as_complex(parts), width, "backward"
        yield torch.view_as_complex(parts.double()), width, "ortho"
        yield torch.view_as_complex(parts).mT.contiguous().mT, width, "forward"
        yield torch.view_as_complex(parts).conj(), width, "forward"
