"""Claim: a matrix times a vector is never slower than torch, and int8 is at least 2.3x as fast.

The four rows of Burn's post, (1, 4096) x (4096, 4096) in fp32 and bf16, row- and
column-major, then int8 with a scale for each row against torch in fp32. Every row goes
through `hotgrid.kernels.gemv`, which picks a candidate by measurement; torch is timed in turn
with it, and the results are compared.

    python benchmarks/bench_gemv.py [--device cuda]
"""

import argparse

import torch
from report import once, report

from hotgrid.kernels import OPS, copy_bandwidth, gemv

SIDE = 4096


def in_turn(calls, repeats: int) -> list[float]:
    """The shortest time of each, taken alternately so that neighbours disturb all alike."""
    for call in calls:
        for _ in range(3):
            call()
    times = [[once(call) for call in calls] for _ in range(repeats)]
    return [min(column) for column in zip(*times, strict=True)]


def rounded(weight):
    scale = weight.abs().amax(1) / 127
    return (weight / scale[:, None]).round().to(torch.int8), scale


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    device = parser.parse_args().device
    torch.manual_seed(0)
    weight, x = torch.randn(SIDE, SIDE, device=device), torch.randn(1, SIDE, device=device)
    exact = (x.double() @ weight.double().T).float()
    limit = copy_bandwidth(device)
    transposed = weight.T.contiguous()
    bytes_, scale = rounded(weight)
    half, half_transposed = weight.bfloat16(), transposed.bfloat16()
    contests = [
        # name, ours, torch's, the matrix as gemv sees it
        ("fp32 row-major x @ W", transposed.T, x, None, lambda: x @ transposed),
        ("fp32 column-major x @ W.T", weight, x, None, lambda: x @ weight.T),
        ("bf16 row-major", half_transposed.T, x.bfloat16(), None,
         lambda: x.bfloat16() @ half_transposed),
        ("bf16 column-major", half, x.bfloat16(), None, lambda: x.bfloat16() @ half.T),
        ("int8 against fp32", bytes_, x, scale, lambda: x @ weight.T),
    ]  # fmt: skip
    rows = []
    for name, matrix, vector, scales, theirs in contests:
        ours = lambda m=matrix, v=vector, s=scales: gemv(m, v, s)
        error = float((ours().float() - exact).norm() / exact.norm())
        repeats = 5 if once(theirs) > 0.1 else 150
        mine, torchs = in_turn([ours, theirs], repeats)
        size = matrix.numel() * matrix.element_size()
        rows.append(
            {
                "product": name,
                "torch us": torchs * 1e6,
                "hotgrid us": mine * 1e6,
                "times torch": torchs / mine,
                "candidate": OPS["gemv"].candidate_for(matrix, vector, scales).name,
                "GB/s": size / mine / 1e9,
                "share of copy": size / mine / limit.bytes_per_second,
                "relative error": f"{error:.4f}",
            }
        )
    name = "gemv" if device == "cpu" else "gemv-cuda"
    report(name, rows, torch=torch.__version__, device=limit.device)


if __name__ == "__main__":
    main()
