"""Claim: a matrix times a vector is never slower than torch, and int8 is at least 2.3x as fast.

The four rows of Burn's post, (1, 4096) x (4096, 4096) in fp32 and bf16, row- and column-major,
then int8 with a scale for each row against torch in fp32. Every row goes through
`hotgrid.kernels.gemv`, which picks a candidate by measurement in this very run; torch is timed
in turn with it, and the results are compared. On a GPU several equal matrices take turns, since
one would partly stay in its cache; calls are queued, and once more captured in a graph, which
leaves only the kernels: the share of the copy bandwidth is theirs. "Host" is the time of the
processor to queue a call, which is the limit where it is longer than the kernel.

    python benchmarks/bench_gemv.py [--device cuda]
"""

import time
from collections.abc import Callable, Sequence

import torch
from options import parser
from report import once, report
from torch import Tensor

from hotgrid.config import override
from hotgrid.kernels import OPS, copy_bandwidth, gemv

SIDE = 4096
MATRICES = 4
QUEUED = 40


def in_turn(calls: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """The shortest time of each, taken alternately so that neighbours disturb all alike.

    The order alternates: threads that have just worked start sooner.
    """
    best = [float("inf")] * len(calls)
    for call in calls:
        for _ in range(3):
            call()
    for turn in range(repeats):
        for i in range(len(calls))[:: 1 if turn % 2 else -1]:
            best[i] = min(best[i], once(calls[i]))
    return best


def queued_in(call: Callable[[], object], repeats: int) -> float:
    """The shortest time until all of it is queued; the GPU may still be at work."""
    best = float("inf")
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    torch.cuda.synchronize()
    return best


def captured(call: Callable[[], object]) -> Callable[[], None]:
    """The same calls as one graph of the GPU."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def rounded(weight: Tensor) -> tuple[Tensor, Tensor]:
    scale = weight.abs().amax(1) / 127
    return (weight / scale[:, None]).round().to(torch.int8), scale


def timed(ours: Callable, theirs: Callable, matrices: Sequence[Sequence[Tensor]]) -> dict:
    """Seconds of one product; theirs has matrices of its own where types differ."""

    def every(call: Callable, which: int, rounds: int) -> Callable[[], None]:
        def run() -> None:
            for _ in range(rounds):
                for pair in matrices:
                    call(pair[which])

        return run

    if len(matrices) == 1:
        one = matrices[0]
        repeats = 5 if once(lambda: theirs(one[1])) > 0.1 else 150
        mine, torchs = in_turn([lambda: ours(one[0]), lambda: theirs(one[1])], repeats)
        return {"torch us": torchs * 1e6, "hotgrid us": mine * 1e6}
    count = QUEUED // len(matrices)
    runs = [every(theirs, 1, count), every(ours, 0, count)]
    queued = in_turn(runs, 30)
    host = [queued_in(run, 30) for run in runs]
    alone = in_turn([captured(run) for run in runs], 30)
    names = (
        *("torch us", "hotgrid us", "host torch us", "host hotgrid us"),
        *("captured torch us", "captured hotgrid us"),
    )
    each = [1e6 * t / (count * len(matrices)) for t in (*queued, *host, *alone)]
    return dict(zip(names, each, strict=True))


def main() -> None:
    device = parser(__doc__).parse_args().device
    torch.manual_seed(0)
    weight, x = torch.randn(SIDE, SIDE, device=device), torch.randn(1, SIDE, device=device)
    exact = (x.double() @ weight.double().T).float()
    limit = copy_bandwidth(device)
    bytes_, scale = rounded(weight)
    half, rough = weight.bfloat16(), x.bfloat16()
    across = weight.T.contiguous()
    half_across = across.bfloat16()
    contests = [
        # name, our matrix, its scales, our vector, torch's matrix, torch's product
        ("fp32 row-major x @ W", across.T, None, x, across, lambda w: x @ w),
        ("fp32 column-major x @ W.T", weight, None, x, weight, lambda w: x @ w.T),
        ("bf16 row-major", half_across.T, None, rough, half_across, lambda w: rough @ w),
        ("bf16 column-major", half, None, rough, half, lambda w: rough @ w.T),
        ("int8 against fp32", bytes_, scale, x, weight, lambda w: x @ w.T),
    ]  # fmt: skip
    rows = []
    for name, matrix, scales, vector, plain, theirs in contests:
        ours = lambda m, v=vector, s=scales: gemv(m, v, s)
        error = float((ours(matrix).float() - exact).norm() / exact.norm())
        copies = [(matrix, plain)]
        if device != "cpu":
            copies += [(matrix.clone(), plain.clone()) for _ in range(MATRICES - 1)]
        times = timed(ours, theirs, copies)
        own = times.get("captured hotgrid us", times["hotgrid us"]) / 1e6
        size = matrix.numel() * matrix.element_size()
        row = {
            "product": name,
            **times,
            "times torch": times["torch us"] / times["hotgrid us"],
            "candidate": OPS["gemv"].candidate_for(matrix, vector, scales).name,
            "GB/s": size / own / 1e9,
            "share of copy": size / own / limit.bytes_per_second,
            "relative error": f"{error:.4f}",
        }
        if device != "cpu":
            row["captured, times torch"] = times["captured torch us"] / (own * 1e6)
        rows.append(row)
    name = "gemv" if device == "cpu" else "gemv-cuda"
    report(name, rows, torch=torch.__version__, device=limit.device)


if __name__ == "__main__":
    with override({"autotune.cache": "none"}):
        main()
