"""Run by a test: attention in windows goes through Triton's compiler, without a GPU."""

from triton import compile as compiled
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from hotgrid.vision._layers import _triton_windows

HOPPER = GPUTarget("cuda", 90, 32)
WHOLE = ("windows", "each", "height", "width")
KERNELS = (_triton_windows._forward, _triton_windows._backward)
TUNED = {"bf16": _triton_windows._TUNED, "fp32": _triton_windows._TUNED_EXACT}


def kernel(function, kind: str, side: int, shift: int):
    types = {
        **dict.fromkeys(WHOLE, "i32"),
        **dict.fromkeys(("qkv", "out", "grad", "to_qkv"), f"*{kind}"),
        **dict.fromkeys(("bias", "to_bias"), "*fp32"),
        "scale": "fp32",
    }
    warps, stages = TUNED[kind]
    block = 64 if side > 4 else 16
    constants = {
        "HEADS": 3, "SIZE": 32, "SIDE": side, "SHIFT": shift, "BLOCK": block, "STAGES": stages
    }  # fmt: skip
    signature = {name: types.get(name, "constexpr") for name in function.arg_names}
    aligned = {
        (k,): [["tt.divisibility", 16]]
        for k, name in enumerate(function.arg_names)
        if signature[name].startswith("*")
    }
    source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=aligned)
    return compiled(source, target=HOPPER, options={"num_warps": warps})


made = 0
for function in KERNELS:
    for kind, side, shift in (("bf16", 7, 3), ("bf16", 4, 0), ("fp32", 7, 3)):
        ptx = kernel(function, kind, side, shift).asm["ptx"]
        if kind == "bf16" and side == 7:
            # The products are on tensor cores, and tokens are loaded ahead, 16 bytes at a time.
            assert "wgmma.mma" in ptx
            assert "cp.async.cg.shared.global" in ptx
        made += 1
print(f"{made} kernels")
