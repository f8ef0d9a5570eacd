"""Run by a test: the kernels of top-k go through Triton's compiler, without a GPU."""

from triton import compile as compiled
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from hotgrid.kernels._topk._triton_columns import _columns
from hotgrid.kernels._topk._triton_rows import _rows

TYPES = {
    **dict.fromkeys(("columns", "n", "inner", "rows", "pieces"), "i32"),
    "places": "*i32",
    "collected": "*i32",
    "indices": "*i64",
    "faults": "*i64",
}
PASSES = ((True, True), (True, False), (False, True))

made = 0
for number, key in (("fp32", "i32"), ("bf16", "i32"), ("fp64", "i64"), ("i32", "i64")):
    types = TYPES | {"x": f"*{number}", "values": f"*{number}", "keys": f"*{key}"}
    shared = {"K": 5, "LARGEST": number != "bf16", "CHECK": number == "bf16"}
    walks = [
        (_columns, {"FIRST": first, "LAST": last, "COLUMNS": 128, "AHEAD": 4}, 4)
        for first, last in PASSES
    ]
    rows = {"BLOCK": 256, "COLLECTED": 64, "WIDTH": 8}
    for kernel, constants, warps in (*walks, (_rows, rows, 1)):
        signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
        source = ASTSource(fn=kernel, signature=signature, constexprs={**shared, **constants})
        compiled(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})
        made += 1
print(f"{made} kernels")
