"""Run by a test under Triton's interpreter: top-k of a GPU against a stable sort."""

import sys

import torch

from hotgrid.kernels import OPS
from hotgrid.kernels._topk import _triton, _triton_columns, _triton_rows

TOPK = OPS["topk"].op

# Small enough for the interpreter, with several pieces, parts and too many to collect.
_triton_columns._BUSY = 64
_triton_rows._COLLECTED = 8

CASES = [
    ((2, 50, 5), 3, 1, "float32"),
    ((1, 7, 9), 7, 1, "int8"),
    ((40, 6), 2, 0, "bfloat16"),
    ((3, 70), 4, 1, "float32"),
    ((2, 300), 1, 1, "float64"),
    ((1, 33), 5, 1, "int32"),
]


def numbers(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Few different ones, and all that have a rule of their own."""
    x = torch.randint(-6, 6, shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    if dtype.is_floating_point:
        x[x == 3], x[x == 2], x[x == 1] = torch.nan, -0.0, -torch.inf
    else:
        x[x == 3], x[x == -3] = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    return x


wrong = []
for shape, k, dim, dtype in CASES:
    for largest in (True, False):
        for candidate in (_triton._streaming, _triton._streaming_checked):
            arguments = (numbers(shape, getattr(torch, dtype)), k, dim, largest, True)
            expected = TOPK.reference(*arguments)
            problem = TOPK.compare(expected, candidate(*arguments), *arguments)
            if problem:
                wrong.append((shape, k, dim, dtype, largest, problem))
print(f"{len(CASES)} cases, wrong: {wrong}")
sys.exit(bool(wrong))
