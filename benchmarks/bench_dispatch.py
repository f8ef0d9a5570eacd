"""What a call of a tuned op costs beside its kernel: at most 15 us once it is tuned.

The kernel is replaced by one that returns results made before, so that what is left is the
overhead: checks of arguments, the settings in force, the look-up of the winner. `torch.ops`
goes through torch's own dispatcher, as compiled functions and tracers do; it is compared with
operators of the same arguments that do nothing, one without and one with a formula for
gradients. For a codebook layer the C++ kernel is timed alone, on a tiny layer, and subtracted.
With a gradient top-k ends with `torch.gather`, which counts as part of the kernel; torch's own
top-k is listed beside it. The last rows have torch's `linear` as the kernel: they show the
overhead where torch's kernel has won.

The rows with "without `ready`" are calls with the kernels of the native core: repeated ones
take the function that `Candidate.ready` returned, or for comparison the candidate's own.
"""

import dataclasses
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import torch
from options import parser
from report import nanoseconds, report

from hotgrid import _native
from hotgrid.config import override
from hotgrid.kernels import OPS, CodebookLinear, convolve, gemv, linear, topk
from hotgrid.kernels._codebook._coded import Coded
from hotgrid.kernels.tune import Candidate, Tuned

LIMIT_US = 15.0


def idle(name: str, result: Any) -> Any:
    """Give an op, for a while, a candidate that has its result already."""
    at_once, op = Candidate(name="idle", function=lambda *arguments: result), OPS[name].op
    other = Candidate(name="other", function=op.reference)
    return patch.object(OPS[name], "op", op.with_candidates(at_once, other))


def empty_operator(name: str, result: Any, gradients: bool) -> Any:
    """An operator like top-k's that does nothing: what is left is torch's."""
    known = f"hotgrid_bench::{name}"
    torch.library.define(
        known, "(Tensor x, SymInt k, int dim, bool largest, bool sorted) -> (Tensor, Tensor)"
    )
    torch.library.impl(known, "default", lambda *arguments: result)
    if gradients:
        torch.library.register_autograd(known, lambda ctx, *gradients: (None,) * 5)
    return getattr(torch.ops.hotgrid_bench, name).default


def tiny_layer() -> tuple[CodebookLinear, Any]:
    """A layer of codes, and its kernel alone."""
    codes = torch.randint(-127, 128, (8, 64), dtype=torch.int8)
    layer = CodebookLinear(Coded("int8", 64, codes, torch.ones(8)))
    x, y, core = torch.randn(1, 64), torch.empty(1, 8), _native.core()
    numbers = (
        layer.codes.data_ptr(), 2, layer.scale.data_ptr(), x.data_ptr(), False, y.data_ptr(),
        8, 64, 64, False, 1, 1,
    )  # fmt: skip
    kept = (x, y)  # what the addresses belong to
    return layer, lambda _=kept: core.gemv(*numbers)


def with_and_without_ready(name: str, statement: str, names: dict[str, Any]) -> dict[str, Any]:
    """The microseconds of a repeated call, with `Candidate.ready` and without it."""
    op, taken = OPS[name].op, {}
    bare = [dataclasses.replace(each, ready=None) for each in op.candidates]
    for column, given in (("us", op), ("without `ready` us", op.with_candidates(*bare))):
        tuned = Tuned(given)
        with override({"kernels.choose": [f"{name}=core"], "autotune.cache": "none"}):
            taken[column] = nanoseconds(statement, names | {"tuned": tuned}) / 1e3
    return {"way": f"Tuned, {statement}", **taken}


def ready_rows() -> list[dict[str, Any]]:
    x, large, layer = torch.randn(8, 1024), torch.randn(64, 1024), tiny_layer()[0]
    parts = (layer.codes, layer.scale, None, None)
    names = {"x": x, "large": large, "v": torch.randn(1, 64), "parts": parts}
    return [
        with_and_without_ready("topk", "tuned(x, 4, 1, True, True)", names),
        with_and_without_ready("topk", "tuned(large, 4, 1, True, True)", names),
        with_and_without_ready("codebook", "tuned('int8', v, *parts)", names),
    ]


def main() -> None:
    parser(__doc__, devices=("cpu",)).parse_args()
    torch.set_num_threads(1)
    x, matrix, vector = torch.randn(64), torch.randn(8, 64), torch.randn(1, 64)
    made, image = torch.topk(x, 4), torch.randn(1, 8, 8)
    bare = lambda *arguments: (made.values, made.indices)
    results = {"topk": tuple(made), "gemv": vector @ matrix.T, "convolve": image}
    layer, kernel = tiny_layer()
    names = {
        "x": x,
        "wanted": x.clone().requires_grad_(),
        "bare": bare,
        "tuned": OPS["topk"],
        "topk": topk,
        "operator": torch.ops.hotgrid.topk.default,
        "empty": empty_operator("empty", tuple(made), gradients=False),
        "formula": empty_operator("formula", tuple(made), gradients=True),
        "torch": torch,
        "indices": made.indices,
        "gemv": gemv,
        "linear": linear,
        "matrix": matrix,
        "bias": torch.zeros(8),
        "vector": vector,
        "one": vector[0],
        "layer": layer,
        "kernel": kernel,
        "image": image,
        "convolve": convolve,
        "weights": torch.randn(3, 3),
    }
    nothing, gather = "bare(x, 4, 0, True, True)", "wanted.gather(0, indices)"
    ways = {
        # way: (the call, the kernel in it)
        "Tuned": ("tuned(x, 4, 0, True, True)", nothing),
        "topk": ("topk(x, 4)", nothing),
        "topk, gradient wanted": ("topk(wanted, 4)", gather),
        "torch.ops.hotgrid.topk": ("operator(x, 4, 0, True, True)", nothing),
        "gemv": ("gemv(matrix, vector)", nothing),
        "gemv of one vector": ("gemv(matrix, one)", nothing),
        "linear": ("linear(vector, matrix)", nothing),
        "linear with bias": ("linear(vector, matrix, bias)", "vector + bias[0]"),
        "convolve": ("convolve(image, weights)", nothing),
    }
    beside = {
        "an empty operator": "empty(x, 4, 0, True, True)",
        "an empty operator with a formula": "formula(x, 4, 0, True, True)",
        "torch.topk with its kernel": "torch.topk(x, 4)",
        "torch.topk with its kernel, gradient wanted": "torch.topk(wanted, 4)",
        "torch.nn.functional.linear with its kernel": (
            "torch.nn.functional.linear(vector, matrix)"
        ),
    }
    chosen = [f"{op}=idle" for op in results]
    timed = lambda statement: nanoseconds(statement, names) / 1e3
    with ExitStack() as stack:
        stack.enter_context(override({"kernels.choose": chosen, "autotune.cache": "none"}))
        for name, result in results.items():
            stack.enter_context(idle(name, result))
        taken = {name: tuple(map(timed, pair)) for name, pair in ways.items()}
    ended = {"kernels.choose": ["gemv=linear"], "autotune.cache": "none"}
    with override(ended):
        plain = "torch.nn.functional.linear(vector, matrix)"
        taken["linear, ending in torch's"] = timed("linear(vector, matrix)"), timed(plain)
        taken["gemv, ending in torch's"] = timed("gemv(matrix, vector)"), timed(plain)
    # Not within: where settings name candidates a layer has to ask for them.
    taken["CodebookLinear"] = timed("layer(vector)"), timed("kernel()")
    rows = [
        {"way": name, "us": whole, "kernel us": inner, "over the kernel us": whole - inner}
        for name, (whole, inner) in taken.items()
    ]
    rows += [{"way": name, "us": timed(statement)} for name, statement in beside.items()]
    rows += ready_rows()
    report("dispatch", rows, torch=torch.__version__, limit_us=LIMIT_US)


if __name__ == "__main__":
    main()
