"""Run by a test under Triton's interpreter: gemv of a GPU against its reference."""

import sys

import torch

from hotgrid.kernels import OPS
from hotgrid.kernels._gemv import _triton

GEMV = OPS["gemv"].op

CASES = [
    ((3, 5000), 1, torch.float32, torch.float32),
    ((5, 70), 3, torch.float64, torch.float64),
    ((4, 2100), 2, torch.int8, torch.float32),
    ((7, 33), 8, torch.bfloat16, torch.bfloat16),
    ((1, 1), 1, torch.bfloat16, torch.float32),
    # Steps that are all whole.
    ((3, 4096), 1, torch.float32, torch.float32),
    ((2, 1536), 3, torch.bfloat16, torch.bfloat16),
    ((2, 3072), 1, torch.int8, torch.float32),
    # Whole rows, whose sums are written in the type of x.
    ((9, 40), 1, torch.float32, torch.float16),
    ((2, 1000), 1, torch.int8, torch.bfloat16),
    # Whole lines of rows.
    ((64, 256), 1, torch.float32, torch.float32),
]
# So many rows that they are dealt out otherwise; one at a time the interpreter takes minutes.
MANY = [
    ((4288, 64), 1, torch.bfloat16, torch.float32),
    ((2200, 70), 2, torch.float16, torch.float16),
]

wrong = []
for shape, count, dtype, of_x in CASES + MANY:
    arguments = GEMV.sample(shape, dtype, torch.device("cpu"), count=count, columns=False)
    weight, x, scale = arguments[0], arguments[1].to(of_x), arguments[2]
    columns = weight.T.contiguous().T
    # Rows further apart than they are long, as in a part of a larger matrix.
    apart = torch.cat([weight, weight], dim=1)[:, : shape[1]]
    columns_apart = torch.cat([columns.T, columns.T], dim=1)[:, : shape[0]].T
    by_rows = (weight, apart) if shape[0] < 1000 else ()
    for matrix in (*by_rows, columns, columns_apart):
        for candidate in (_triton._walking, _triton._walking_checked):
            found = candidate(matrix, x, scale)
            expected = GEMV.reference(matrix, x, scale)
            problem = GEMV.compare(expected, found, matrix, x, scale)
            if problem:
                wrong.append((shape, count, dtype, problem))
print(f"{len(CASES + MANY)} cases, wrong: {wrong}")
sys.exit(bool(wrong))
