"""Claim: top-k along any axis runs many times faster than `torch.topk` in the same process.

The nine rows of the table that Burn 0.21 was announced with, fp32 random numbers. Each row is
checked first: values against all of `torch.topk`, indices against a stable sort of as many
lines as sort quickly. The two take turns and the best time of each counts, so that other work
on the machine slows both. "Wanted" on a CPU is Burn's own ratio over LibTorch, 1.5 where it
lost; on a GPU 10 and 3.

    python benchmarks/bench_topk.py [--candidate NAME] [--device cpu]
"""

import os
import sys
import time
from collections.abc import Callable

import torch
from options import parser
from report import report

from hotgrid.config import override
from hotgrid.kernels import OPS, copy_bandwidth, topk

TOPK = OPS["topk"].op

LAYER, SQUARE, CUBE = (16, 1024, 1024), (2, 6144, 6144), (256, 256, 256)
# k, dim, shape, wanted on a CPU, wanted on a GPU
ROWS = (
    (1, 0, LAYER, 41.8, 10),
    (1, 0, SQUARE, 15.5, 10),
    (3, 0, LAYER, 17.5, 10),
    (5, 0, CUBE, 15.7, 10),
    (5, 1, LAYER, 8.9, 10),
    (10, 0, CUBE, 8.4, 10),
    (1, 2, LAYER, 3.1, 3),
    (10, 2, CUBE, 1.5, 3),
    (10, 2, SQUARE, 1.5, 3),
)


def seconds(call: Callable[[], object], device: str) -> float:
    if device == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        # Several in a row, so that the device never waits for Python.
        for _ in range(10):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e4
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def check(x: torch.Tensor, k: int, dim: int) -> None:
    values, indices = topk(x, k, dim)
    torch.testing.assert_close(values, torch.topk(x, k, dim).values, rtol=0, atol=0)
    torch.testing.assert_close(x.gather(dim, indices), values, rtol=0, atol=0)
    part = TOPK.excerpt(x, k, dim, True, True)
    difference = TOPK.compare(TOPK.reference(*part), topk(*part), *part)
    if difference:
        sys.exit(f"k {k}, dim {dim}, {tuple(x.shape)}: {difference}; nothing was timed")


def measure(k: int, dim: int, x: torch.Tensor, rounds: int) -> tuple[float, float]:
    """Return the best time of torch and of ours; each of ours has several goes a round."""
    theirs = ours = float("inf")
    for _ in range(rounds):
        theirs = min(theirs, seconds(lambda: torch.topk(x, k, dim), x.device.type))
        for _ in range(5):
            ours = min(ours, seconds(lambda: topk(x, k, dim), x.device.type))
    return theirs, ours


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--candidate", help="default: core on a CPU, triton on a GPU")
    given = options.parse_args()
    device = given.device
    chosen = given.candidate or {"cpu": "core", "cuda": "triton"}[device]
    limit = copy_bandwidth(device).bytes_per_second
    torch.manual_seed(0)
    rows = []
    for k, dim, shape, on_cpu, on_gpu in ROWS:
        x = torch.randn(shape, device=device)
        with override({"kernels.choose": [f"topk={chosen}"]}):
            check(x, k, dim)
            theirs, ours = measure(k, dim, x, rounds=15 if device == "cpu" else 20)
        moved = TOPK.work(TOPK.describe(x, k, dim, True, True)).bytes
        rows.append({
            "k": k,
            "axis": dim,
            "shape": "x".join(map(str, shape)),
            "torch ms": round(theirs * 1e3, 3),
            "hotgrid ms": round(ours * 1e3, 3),
            "ratio": round(theirs / ours, 1),
            "wanted": on_cpu if device == "cpu" else on_gpu,
            "GB/s": round(moved / ours / 1e9, 1),
            "share of copy %": round(100 * moved / ours / limit, 1),
        })  # fmt: skip
    report(
        f"topk-{device}",
        rows,
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        device=torch.cuda.get_device_name() if device == "cuda" else "cpu",
        candidate=chosen,
        load=round(os.getloadavg()[0], 1),
    )


if __name__ == "__main__":
    main()
