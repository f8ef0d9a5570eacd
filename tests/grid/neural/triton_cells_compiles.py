"""Run by a test: the fused step goes through Triton's compiler, without a GPU."""

from triton import compile as compiled
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from hotgrid.grid.neural import _triton_cells

WHOLE = ("rows", "columns", "low_y", "high_y", "low_x", "high_x")
HOPPER = GPUTarget("cuda", 90, 32)


def kernel(kind: str, hidden: int, filters: int, masked: bool, tiling: _triton_cells.Tiling):
    types = {
        **dict.fromkeys(WHOLE, "i32"),
        **dict.fromkeys(("given", "to", "hidden", "output"), f"*{kind}"),
        **dict.fromkeys(("hidden_bias", "output_bias", "numbers"), "*fp32"),
        "random": "*i32",
    }
    constants = {
        "C": 16, "PADDED": 16, "HIDDEN": hidden, "FILTERS": filters,
        "ALIVE": 3 if masked else -1, "AROUND": True, "FIRE": masked, "CONSTANT": masked,
        "TF32": False, "M": tiling.cells, "ROWS": tiling.rows,
    }  # fmt: skip
    function = _triton_cells._step
    signature = {name: types.get(name, "constexpr") for name in function.arg_names}
    aligned = {
        (k,): [["tt.divisibility", 16]]
        for k, name in enumerate(function.arg_names)
        if signature[name].startswith("*") or name in ("rows", "columns")
    }
    source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=aligned)
    return compiled(source, target=HOPPER, options={"num_warps": tiling.warps})


made = 0
for kind, hidden, masked in (("bf16", 32, False), ("bf16", 128, True), ("fp32", 32, True)):
    ptx = kernel(kind, hidden, 7, masked, _triton_cells.TILINGS[0]).asm["ptx"]
    if kind == "bf16":
        # The products are on tensor cores, and cells are read 16 bytes at a time.
        assert "wgmma.mma" in ptx
        assert "ld.global.v4.b32" in ptx
    made += 1
print(f"{made} kernels")
