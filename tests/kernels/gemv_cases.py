"""Calls that every candidate of gemv is put through."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

# Around the widths of vectors and of groups.
SIZES = ((1, 1), (3, 5), (4, 16), (7, 63), (64, 64), (65, 129), (130, 67), (33, 260))


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def laid_out(weight: Tensor) -> Iterator[Tensor]:
    """The same matrix, as it may lie in memory."""
    rows, cols = weight.shape
    yield weight
    yield weight.T.contiguous().T
    yield torch.cat([weight, weight], 1)[:, :cols]
    yield torch.cat([weight, weight]).T.contiguous().T[:rows]
    yield torch.stack([weight, weight], 2)[:, :, 0]


def gemv_cases() -> Iterator[tuple[Any, ...]]:
    for rows, cols in SIZES:
        for count in (1, 2, 5, 8):
            x = normal(count, cols)
            for weight in laid_out(normal(rows, cols)):
                yield weight, x, None
            for weight in laid_out((normal(rows, cols) * 30).clamp(-128, 127).to(torch.int8)):
                yield weight, x, normal(rows).abs()
                yield weight, x.bfloat16(), normal(rows).double()
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        for other in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
            for weight in laid_out(normal(18, 40).to(dtype)):
                yield weight, normal(2, 40).to(other), None
                yield weight, normal(40, 1).to(other).T, None
    for special in (float("nan"), float("inf")):
        x = normal(3, 70)
        x[1, 5] = special
        for weight in laid_out(normal(9, 70)):
            yield weight, x, None
        spoilt = normal(9, 70)
        spoilt[4, 2] = special
        yield spoilt, normal(2, 70), None
    yield normal(1, 64).expand(9, 64), normal(1, 64), None
    yield torch.zeros(5, 9), normal(2, 9), None
    yield normal(5, 9), torch.zeros(2, 9), None
