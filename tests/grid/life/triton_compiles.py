"""Run by a test: the kernels of Life go through Triton's compiler, without a GPU."""

from triton import compile as compiled
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from hotgrid.grid.life._words import _triton_life

POINTERS = {
    "given": "*i64",
    "words_of_given": "*i32",
    "to": "*i64",
    "rows": "i32",
    "pairs": "i32",
}
KERNELS = {"_one": {"ROWS": 8, "THREADS": 128}, "_many": {"ROWS": 256, "DEPTH": 8}}
RULES = ({"BIRTH": 8, "SURVIVAL": 12}, {"BIRTH": 0b100001001, "SURVIVAL": 0b100100110})

made = 0
for name, shape in KERNELS.items():
    for rule in RULES:
        for torus in (True, False):
            constants = {**shape, "TORUS": torus, **rule}
            kernel = getattr(_triton_life, name)
            signature = {k: POINTERS.get(k, "constexpr") for k in kernel.arg_names}
            source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
            hopper = GPUTarget("cuda", 90, 32)
            done = compiled(source, target=hopper, options={"num_warps": 1})
            # Neighbours must come from lanes, not through shared memory.
            assert "ld.shared" not in done.asm["ptx"]
            made += 1
print(f"{made} kernels")
