"""Calls that every candidate of convolve is put through."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .gemv_cases import normal

# Space and kernel; primes, which no fast transform likes, beside powers of two.
SHAPES = (
    ((1,), (1,)),
    ((9,), (4,)),
    ((64,), (7,)),
    ((131,), (65,)),
    ((1, 1), (1, 1)),
    ((5, 7), (5, 7)),
    ((16, 16), (3, 3)),
    ((17, 12), (1, 4)),
    ((12, 17), (4, 1)),
    ((33, 31), (7, 5)),
    ((8, 64), (2, 8)),
    ((35, 48), (17, 19)),
    ((1, 1, 1), (1, 1, 1)),
    ((6, 7, 8), (3, 2, 5)),
    ((11, 4, 9), (3, 3, 3)),
)


def laid_out(x: Tensor) -> Iterator[Tensor]:
    """The same cells, as they may lie in memory."""
    yield x
    yield x.movedim(0, -1).contiguous().movedim(-1, 0)
    yield torch.stack([x, x], -1)[..., 0]
    yield x[:1].expand(x.shape)
    yield torch.cat([x, x], -1)[..., : x.shape[-1]]


def convolve_cases() -> Iterator[tuple[Any, ...]]:
    for space, size in SHAPES:
        for periodic in (True, False):
            for count in (1, 3):
                x, kernel = normal(count, *space), normal(*size)
                yield x, kernel, tuple([(k - 1) // 2 for k in size]), periodic
                yield x, kernel, (0,) * len(size), periodic
                yield x, kernel, tuple([k - 1 for k in size]), periodic
    for periodic in (True, False):
        for size in ((3, 3), (13, 11)):
            before = (size[0] // 2, size[1] // 2)
            for dtype in (torch.float64, torch.float16, torch.bfloat16):
                yield normal(2, 20, 24).to(dtype), normal(*size).to(dtype), before, periodic
                yield normal(2, 40).to(dtype), normal(size[0]).to(dtype), before[:1], periodic
            for x in laid_out(normal(3, 18, 22)):
                yield x, normal(*size), before, periodic
                yield x, normal(*size[::-1]).T, before, periodic
            for special in (float("nan"), float("inf"), -float("inf")):
                spoilt = normal(3, 18, 22)
                spoilt[1, 17, 0] = special
                yield spoilt, normal(*size), before, periodic
                weights = normal(*size)
                weights[1, 2] = special
                yield normal(2, 18, 22), weights, before, periodic
            # All of one sign, and grids of very different sizes of numbers.
            yield normal(2, 18, 22).abs(), normal(*size).abs(), before, periodic
            scales = torch.tensor([1e-6, 1.0, 1e6])[:, None, None]
            yield normal(3, 18, 22) * scales, normal(*size), before, periodic
            yield torch.zeros(2, 18, 22), normal(*size), before, periodic
            yield normal(2, 18, 22), torch.zeros(size), before, periodic
