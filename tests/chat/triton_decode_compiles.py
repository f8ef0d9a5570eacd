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
    **dict.fromkeys(("qkv", "parts", "stats", "x", "y", "best", "logits", "given"), "fp32"),
    **dict.fromkeys(("cosines", "sines"), "fp32"),
    **dict.fromkeys(("tokens", "table", "position", "forced", "place", "chosen"), "i64"),
    **dict.fromkeys(("temperature", "uniforms", "totals"), "fp64"),
    "likeliest": "i32",
}
WEIGHTS = ("w", "q", "k", "v", "up", "gate", "gain", "q_gain", "k_gain", "keys", "values")
HEAD = {"HEAD": 128, "HALF": 64, "PADDED": 128, "BLOCK": 32, "NORMED": True, "GAINED": False}
HEAD |= {"WHOLE": False}
ONE = {"batch": 1}  # Triton takes a number that is 1 as a constant.
CASES = (
    ("embed", {"NORMED": True, "WIDTH": 1024}, {"table": "bf16"}),
    ("project", {**_cut(2304, 768, 1), **ONE, "GAINED": False}, {}),
    ("project", {**_cut(2304, 768, 32), "GAINED": True}, {}),
    ("project", {**_cut(2304, 768, 8), "GAINED": False}, dict.fromkeys(WEIGHTS, "fp32")),
    ("add", {**_cut(768, 768, 1), **ONE, "HEAD": 128, "SPLITS": 4}, {}),
    ("add", {**_cut(768, 768, 1), **ONE, "HEAD": 128, "SPLITS": 16}, {}),
    ("add", {**_cut(768, 768, 8, most=64), "HEAD": 128, "SPLITS": 4}, {}),
    ("add", {**_cut(768, 3072, 1), **ONE, "HEAD": 0, "SPLITS": 1}, {"given": "bf16"}),
    ("add", {**_cut(768, 3072, 32), "HEAD": 0, "SPLITS": 1}, {"given": "bf16"}),
    ("widen", {**_cut(3072, 768, 1), **ONE, "GAINED": False, "NAME": "relu2", "GATED": False},
     {"y": "bf16"}),
    ("widen", {**_cut(3072, 768, 8), "GAINED": True, "NAME": "gelu", "GATED": True},
     {"y": "bf16"}),
    ("score", {**_cut(32768, 768, 1), **ONE, "GAINED": False, "CAPPED": True, "CHOICE": 2}, {}),
    ("score", {**_cut(32768, 768, 64), "GAINED": False, "CAPPED": True, "CHOICE": 2}, {}),
    ("attend", {**HEAD, "PAGE": 16}, {}),
    ("attend", {**HEAD, "PAGE": 256, "blocks": 1, "splits": 1, "heads": 1, "groups": 1,
                "WHOLE": True}, {}),
    ("choose", {"ROWS": 16, "PARTS": 2048, "CHOICE": 2, **ONE, "NORMED": True, "WIDTH": 1024},
     {"table": "bf16"}),
    ("choose", {"ROWS": 64, "PARTS": 512, "CHOICE": 1, "NORMED": False, "WIDTH": 1024},
     {"table": "bf16"}),
)  # fmt: skip


def kernel(name: str, constants: dict, types: dict, stages: int = 3):
    """A kernel as Triton compiles it for an H200."""
    home = _triton_attend if hasattr(_triton_attend, name) else _triton_linear
    function = getattr(home, name)
    constants = {**constants, "PDL": True}
    kinds = {**dict.fromkeys(WEIGHTS, "bf16"), **POINTERS, **types}
    if name == "choose":
        del kinds["parts"]  # here it is a number
    signature, attrs = {}, {}
    for place, each in enumerate(function.arg_names):
        number = NUMBERS.get(each, "i32")
        signature[each] = f"*{kinds[each]}" if each in kinds else number
        if each in constants:
            signature[each] = "constexpr"
        elif each in kinds or each in DIVISIBLE:
            attrs[(place,)] = [["tt.divisibility", 16]]
    source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=attrs)
    return compiled(source, target=HOPPER, options={"num_warps": 4, "num_stages": stages})


def main() -> None:
    for name, constants, types in CASES:
        made = kernel(name, constants, types)
        ptx = made.asm["ptx"]
        assert "griddepcontrol.launch_dependents" in ptx, name
        if constants.get("BATCH") == 1:
            # The rows are read 16 bytes at a time, before the input is waited for.
            before = ptx[: ptx.index("griddepcontrol.wait")]
            assert "v4.b32" in before, name
        elif "BATCH" in constants and "w" not in types:
            assert "mma.sync" in ptx or "wgmma" in ptx, name
    print(f"{len(CASES)} kernels")


if __name__ == "__main__":
    main()
