"""Run by a test under Triton's interpreter: coded matrices on a GPU against the reference."""

import sys
from pathlib import Path

import torch

from hotgrid.kernels import OPS
from hotgrid.kernels._codebook import _triton_nibbles, _triton_rows, _triton_subvectors

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.kernels.codebook_cases import coded_matrices  # pyright: ignore[reportMissingImports]
from tests.kernels.gemv_cases import normal  # pyright: ignore[reportMissingImports]

CODEBOOK = OPS["codebook"].op

# Small enough for the interpreter, with several turns of each loop, parts, and a last block
# that some programs do not have.
_triton_rows._BLOCK = 64
_triton_nibbles._LEVELS, _triton_nibbles._NUMBERS = (1, 2, 4), (2, 1, 2)
_triton_nibbles._SHORTEST_PART = 2
_triton_subvectors._LONG, _triton_subvectors._SHORT = (2, 8, 2, 4), (1, 16, 1, 8)
_triton_subvectors._LONG_OF_MANY = (2, 16, 1, 4)
_triton_subvectors._LONG_ROW, _triton_subvectors._SHORTEST_PART = 34, 17

TRITON = next(each for each in CODEBOOK.candidates if each.name == "triton")
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
# Rows, columns, vectors.
SIZES = ((1, 8, 8), (5, 200, 2), (33, 136, 1), (6, 136, 3))
MOST_CENTROIDS = 7  # each is a program


def calls():
    for size, (rows, cols, count) in enumerate(SIZES):
        for number, coded in enumerate(coded_matrices(rows, cols)):
            if coded.form == "rows" and coded.scale.shape[0] > MOST_CENTROIDS:
                continue
            blocks = coded.table is not None and coded.table.ndim == 3
            if (rows > 8 and not blocks) or (coded.signs is not None and number % 4 != size):
                continue
            x = normal(count, cols)
            if number == size:
                x[-1, 3] = float("inf")
            parts = (coded.codes, coded.scale, coded.table, coded.signs)
            yield coded.form, x.to(DTYPES[(number + size) % 3]), *parts


wrong, made = [], 0
for arguments in calls():
    assert TRITON.applies(CODEBOOK.describe(*arguments))
    expected = CODEBOOK.reference(*arguments)
    for name in ("function", "checked") if made % 3 == 0 else ("function",):
        found = getattr(TRITON, name)(*arguments)
        problem = CODEBOOK.compare(expected, found, *arguments)
        if problem:
            wrong.append(
                (name, arguments[0], [tuple(x.shape) for x in arguments[1:3]], problem)
            )
    made += 1
print(f"{made} calls, wrong: {wrong}")
sys.exit(bool(wrong))
