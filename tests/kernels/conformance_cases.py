"""Calls that every candidate of an op is put through, by op. A new op adds its list here."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .codebook_cases import codebook_cases
from .convolve_cases import convolve_cases
from .gemv_cases import gemv_cases

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool)
WIDE = (torch.uint16, torch.uint32, torch.uint64)
# Around the widths of vectors: 4, 8, 16, 32, 64 lanes.
LENGTHS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 130, 257)


def random(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=draw) * 30
    # What becomes of a negative number in an unsigned type is up to the processor.
    return (x.abs() if dtype in (torch.uint8, *WIDE) else x).to(dtype)


def tied(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0) -> Tensor:
    """Few different values, so that most are equal to others."""
    draw = torch.Generator().manual_seed(seed)
    return torch.randint(0, 4, shape, generator=draw).to(dtype)


def special(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """NaN, both infinities and both zeros, some lines of nothing else."""
    pool = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.5, -2.0])
    draw = torch.Generator().manual_seed(3)
    x = pool[torch.randint(0, 7, shape, generator=draw)]
    x[..., 0] = float("nan")
    x[0] = -float("inf")
    return x.to(dtype)


def views(x: Tensor) -> Iterator[Tensor]:
    """The same kind of tensor, as it may lie in memory; `x` is `[a, b, c]`, all even."""
    yield x.transpose(0, 2)
    yield x.permute(1, 2, 0)
    yield x[::2, 1:, ::2]
    yield x[:, :1].expand(-1, 5, -1)
    yield x.flip(0)[1:]
    yield torch.as_strided(x.flatten(), (4, 3, 5), (1, 2, 3), 1)  # overlapping


def topk_cases() -> Iterator[tuple[Any, ...]]:
    for n in LENGTHS:
        for k in {1, 2, 5, n // 2, n - 1, n} & set(range(1, n + 1)):
            yield random((3, n), torch.float32, n), k, 1, True, True
            yield tied((n, 5), torch.float32, n), k, 0, bool(k % 2), True
            yield tied((2, n, 3), torch.float32, n), k, 1, True, bool(k % 2)
    for dtype in (*FLOATS, *WHOLE, *WIDE):
        x = random((4, 18, 6), dtype)
        for dim in range(3):
            for k in (1, 3):
                for largest in (True, False):
                    for ordered in (True, False):
                        yield x, k, dim, largest, ordered
                        yield tied((4, 18, 6), dtype), k, dim, largest, ordered
    for dtype in FLOATS:
        for dim in range(3):
            for k in (1, 2, 6):
                for largest in (True, False):
                    yield special((6, 8, 10), dtype), k, dim, largest, True
    for x in (random((6, 8, 10), torch.float32), tied((6, 8, 10), torch.int64)):
        for view in views(x):
            for dim in range(3):
                for k in {1, min(3, view.shape[dim])}:
                    yield view, k, dim, True, True
                    yield view, k, dim, False, False
    yield torch.arange(1000).flip(0).reshape(1, 1000), 10, 1, True, True
    yield torch.arange(1000).reshape(1000, 1), 10, 0, True, True
    yield torch.zeros(7, 33), 5, 1, True, True
    yield random((5000,), torch.float32), 100, 0, False, True
    yield random((2, 3, 1, 4, 5), torch.float32), 1, 2, True, True
    yield random((2, 3, 1, 4, 5), torch.float32), 2, 3, True, True


CASES = {
    "codebook": list(codebook_cases()),
    "convolve": list(convolve_cases()),
    "gemv": list(gemv_cases()),
    "topk": list(topk_cases()),
}
