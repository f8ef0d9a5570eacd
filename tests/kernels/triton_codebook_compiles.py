"""Run by a test: the kernels of the codebook go through Triton's compiler, without a GPU.

They are compiled for sizes that Triton knows to be multiples of 16, as they mostly are.
"""

from triton import compile as compiled
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from hotgrid.kernels._codebook import _triton_nibbles, _triton_subvectors
from hotgrid.kernels._codebook._triton_nibbles import _nibbles
from hotgrid.kernels._codebook._triton_rows import _centroids
from hotgrid.kernels._codebook._triton_subvectors import _subvectors

POINTERS = {"codes": "*u8", "ids": "*u8", "scale": "*fp32", "faults": "*i64"}
UNEVEN = ("span", "books", "centroids")


def nibbles(shape, vectors, rows, levels):
    groups, turns, warps = shape
    constants = {"VECTORS": vectors, "ROWS": rows, "GROUPS": groups, "TURNS": turns}
    return _nibbles, constants | {"LEVELS": levels}, "i8" if levels else "bf16", warps


def subvectors(shape, vectors, width):
    blocks, tables, turns, warps = shape
    constants = {"VECTORS": vectors, "BLOCKS": blocks, "TABLES": tables, "TURNS": turns}
    return _subvectors, constants | {"WIDTH": width}, "fp32", warps


KERNELS = (
    (_centroids, {"VECTORS": 1, "BLOCK": 4096, "IDS": 4096}, "i8", 8),
    (_centroids, {"VECTORS": 8, "BLOCK": 1024, "IDS": 4096}, "i8", 8),
    nibbles(_triton_nibbles._LEVELS, 1, 4, True),
    nibbles(_triton_nibbles._NUMBERS, 1, 4, False),
    nibbles(_triton_nibbles._NUMBERS_OF_MANY, 8, 1, False),
    subvectors(_triton_subvectors._LONG, 1, 4),
    subvectors(_triton_subvectors._SHORT, 1, 8),
    subvectors(_triton_subvectors._LONG_OF_MANY, 8, 4),
    subvectors(_triton_subvectors._SHORT_OF_MANY, 3, 2),
)

made = 0
for kernel, constants, table, warps in KERNELS:
    for number, check in (("fp32", False), ("bf16", True)):
        types = POINTERS | {"x": f"*{number}", "y": f"*{number}", "table": f"*{table}"}
        given = [name for name in kernel.arg_names if name not in {*constants, "CHECK"}]
        signature = {
            name: types.get(name, "i32") if name in given else "constexpr"
            for name in kernel.arg_names
        }
        even = {
            (kernel.arg_names.index(name),): [["tt.divisibility", 16]]
            for name in given
            if name not in UNEVEN
        }
        turns = {"TURNS": 1} if check and "TURNS" in constants else {}
        source = ASTSource(kernel, signature, constants | turns | {"CHECK": check}, even)
        done = compiled(source, GPUTarget("cuda", 90, 32), {"num_warps": warps})
        # Codes are looked up by shuffles, not by way of memory that all warps share.
        if not check and kernel is not _centroids:
            assert done.metadata.shared <= 1024, (constants, done.metadata.shared)
        made += 1
print(f"{made} kernels")
