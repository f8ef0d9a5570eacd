"""Run by a test: the kernels of gemv go through Triton's compiler, without a GPU."""

from triton import compile as compiled
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from hotgrid.kernels._gemv._triton_columns import down_columns
from hotgrid.kernels._gemv._triton_rows import along_rows

# Of the matrix, of x, of the sums.
TYPES = (
    ("fp32", "fp32", "fp32"),
    ("bf16", "bf16", "bf16"),
    ("bf16", "bf16", "fp32"),
    ("fp64", "fp32", "fp32"),
    ("i8", "fp16", "fp16"),
)

KERNELS = ((along_rows, {"BLOCK": 512}), (down_columns, {"BLOCK": 64, "ROWS": 32}))

made = 0
for kernel, shape in KERNELS:
    for w, x, y in TYPES:
        for check in (False, True):
            constants = {
                "VECTORS": 2, **shape, "EVEN": True, "SCALED": w == "i8", "CHECK": check
            }  # fmt: skip
            kinds = {"w": w, "x": x, "scales": "fp32", "y": y, "faults": "i64"}
            signature = {
                name: "constexpr"
                if name in constants
                else f"*{kinds[name]}"
                if name in kinds
                else "i32"
                for name in kernel.arg_names
            }
            source = ASTSource(kernel, signature, constants)
            compiled(source, GPUTarget("cuda", 90, 32), {"num_warps": 4})
            made += 1
print(f"{made} kernels")
