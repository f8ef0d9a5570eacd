"""Run by a test: the kernels of decoding go through Triton's compiler, without a GPU."""

from triton import compile as compiled
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from hotgrid.chat._generate._fused import _triton_attend, _triton_linear
from hotgrid.chat._generate._fused._step import _cut

DIVISIBLE = ("size", "rows", "columns", "of_q", "of_kv", "width", "along", "across")
HOPPER = GPUTarget("cuda", 90, 32)
NUMBERS = {"eps": "fp32", "cap": "fp32", "scale": "fp32"}
POINTERS = {
    **dict.fromkeys(("qkv", "parts", "stats", "x", "y", "best", "logits"), "fp32"),
    **dict.fromkeys(("cosines", "sines"), "fp32"),
    **dict.fromkeys(("tokens", "table", "position", "forced", "place", "chosen"), "i64"),
    **dict.fromkeys(("temperature", "uniforms", "totals"), "fp64"),
    "likeliest": "i32",
}
WEIGHTS = ("w", "q", "k", "v", "up", "gate", "gain", "q_gain", "k_gain", "keys", "values")
CASES = (
    ("embed", {"NORMED": True, "BLOCK": 1024}, {"table": "bf16"}),
    ("project", {**_cut(2304, 768, 1), "GAINED": False}, {}),
    ("project", {**_cut(2304, 768, 32), "GAINED": True}, {}),
    ("add", {**_cut(768, 768, 1), "HEAD": 128}, {"given": "fp32"}),
    ("add", {**_cut(768, 3072, 32), "HEAD": 0}, {"given": "bf16"}),
    ("widen", {**_cut(3072, 768, 1), "GAINED": False, "NAME": "relu2", "GATED": False}, {}),
    ("widen", {**_cut(3072, 768, 8), "GAINED": True, "NAME": "gelu", "GATED": True}, {}),
    ("score", {**_cut(32768, 768, 1), "GAINED": False, "CAPPED": True, "CHOICE": 2}, {}),
    ("score", {**_cut(32768, 768, 64), "GAINED": False, "CAPPED": True, "CHOICE": 2}, {}),
    (
        "attend",
        {"HEAD": 128, "HALF": 64, "PADDED": 128, "PAGE": 16, "BLOCK": 32}
        | {"NORMED": True, "GAINED": False},
        {},
    ),
    ("choose", {"ROWS": 16, "PARTS": 2048, "CHOICE": 2}, {}),
)


def kernel(name: str, constants: dict, types: dict, overlap: bool = True):
    """A kernel as Triton compiles it for an H200."""
    home = _triton_attend if hasattr(_triton_attend, name) else _triton_linear
    function = getattr(home, name)
    constants = {**constants, "PDL": overlap}
    kinds = {**dict.fromkeys(WEIGHTS, "bf16"), **POINTERS, **types}
    if name == "widen":
        kinds["y"] = "bf16"
    if name == "choose":
        NUMBERS["parts"] = "i32"
    signature, attrs = {}, {}
    for place, each in enumerate(function.arg_names):
        number = each not in kinds or (name == "choose" and each == "parts")
        signature[each] = (
            "constexpr" if each in constants
            else NUMBERS.get(each, "i32") if number
            else f"*{kinds[each]}"
        )  # fmt: skip
        if signature[each].startswith("*") or each in DIVISIBLE:
            attrs[(place,)] = [["tt.divisibility", 16]]
    source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=attrs)
    return compiled(source, target=HOPPER, options={"num_warps": 4})


def main() -> None:
    for name, constants, types in CASES:
        made = kernel(name, constants, types)
        ptx = made.asm["ptx"]
        assert "griddepcontrol.launch_dependents" in ptx, name
        if constants.get("BATCH") == 1:
            # The rows are read 16 bytes at a time, before the input is waited for.
            before = ptx[: ptx.index("griddepcontrol.wait")]
            assert "v4.b32" in before, name
        elif "BATCH" in constants:
            assert "mma.sync" in ptx, name
    print(f"{len(CASES)} kernels")


if __name__ == "__main__":
    main()
