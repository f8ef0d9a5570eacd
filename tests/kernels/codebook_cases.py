"""Calls that every candidate of the codebook product is put through: random codes."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from hotgrid.kernels._codebook._coded import Coded, blocked, packed

from .gemv_cases import normal

SIZES = ((1, 8), (5, 64), (33, 72), (64, 128), (70, 200), (129, 1000))


def whole(low: int, high: int, *shape: int) -> Tensor:
    draw = torch.Generator().manual_seed(sum(shape))
    return torch.randint(low, high, shape, generator=draw)


def coded_matrices(rows: int, cols: int) -> Iterator[Coded]:
    """One of every form, with numbers as they come."""
    groups = -(-cols // 64)
    scale = normal(rows).abs() + 0.1
    signs = (whole(0, 2, cols) * 2 - 1).to(torch.int8)
    nibbles = packed(whole(0, 16, rows, cols).to(torch.uint8))
    levels = whole(-127, 128, 16).to(torch.int8)
    yield Coded("int8", cols, whole(-128, 128, rows, cols).to(torch.int8), scale)
    yield Coded("int4", cols, nibbles, normal(rows, groups).bfloat16())
    for k in (1, 7, 256):
        ids, centroids = whole(0, k, rows).to(torch.uint8), whole(-127, 128, k, cols)
        yield Coded("rows", cols, ids, normal(k), centroids.to(torch.int8))
    for turned in (None, signs):
        yield Coded("pq", cols, nibbles, scale, levels, turned)
        for width, books in ((2, 2), (4, 1), (4, 3), (8, 2)):
            codes = blocked(whole(0, 16, rows, cols // width * books).to(torch.uint8))
            yield Coded("pq", cols, codes, scale, normal(books, width, 16), turned)


def codebook_cases() -> Iterator[tuple[Any, ...]]:
    for rows, cols in SIZES:
        for coded in coded_matrices(rows, cols):
            parts = (coded.codes, coded.scale, coded.table, coded.signs)
            for count in (1, 3, 8):
                yield coded.form, normal(count, cols), *parts
            yield coded.form, normal(2, cols).bfloat16(), *parts
            yield coded.form, normal(2, cols).double(), *parts
            spoilt = normal(2, cols)
            spoilt[1, 3] = float("inf")
            yield coded.form, spoilt, *parts
            yield coded.form, torch.zeros(1, cols), *parts
            yield coded.form, normal(cols, 2).T, *parts
