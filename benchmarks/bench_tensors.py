"""Claim: `shift` and `map_windows` in plain code run close to the memory limit when compiled.

Five-point diffusion, one step, against `torch.roll` by hand and against the copy
bandwidth of the same device. A cell is read once and written once: 8 bytes in fp32.

    python benchmarks/bench_tensors.py [--device cpu]
"""

import time

import torch
from options import parser
from report import report

from hotgrid.kernels import copy_bandwidth
from hotgrid.tensors import map_windows, shift

NEIGHBOURS = ((-1, 0), (1, 0), (0, -1), (0, 1))


def by_roll(x: torch.Tensor) -> torch.Tensor:
    around = sum(torch.roll(x, (-dy, -dx), (0, 1)) for dy, dx in NEIGHBOURS)
    return x + 0.2 * (around - 4 * x)


def by_shift(x: torch.Tensor, boundary) -> torch.Tensor:
    around = sum(shift(x, offset, boundary=boundary) for offset in NEIGHBOURS)
    return x + 0.2 * (around - 4 * x)


def by_map_windows(x: torch.Tensor, boundary) -> torch.Tensor:
    def rule(w: torch.Tensor) -> torch.Tensor:
        around = w[..., 0, 1] + w[..., 2, 1] + w[..., 1, 0] + w[..., 1, 2]
        return w[..., 1, 1] + 0.2 * (around - 4 * w[..., 1, 1])

    return map_windows(rule, x, (3, 3), boundary=boundary)


def seconds(step, x: torch.Tensor, repeats: int = 20) -> float:
    step(x)
    step(x)
    best = float("inf")
    for _ in range(repeats):
        if x.is_cuda:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            step(x)
            end.record()
            end.synchronize()
            best = min(best, start.elapsed_time(end) / 1e3)
        else:
            begin = time.perf_counter()
            step(x)
            best = min(best, time.perf_counter() - begin)
    return best


def main() -> None:
    device = parser(__doc__).parse_args().device
    side = 8192 if device == "cuda" else 2048
    torch.manual_seed(0)
    x = torch.rand(side, side, device=device)
    limit = copy_bandwidth(device)
    reference = by_roll(x.double())
    rows = []
    contestants = [("torch.roll by hand", "periodic", by_roll)]
    for boundary in ("periodic", "edge", 0.0):
        name = boundary if isinstance(boundary, str) else "number"
        contestants.append(("shift", name, lambda x, b=boundary: by_shift(x, b)))
        contestants.append(("map_windows", name, lambda x, b=boundary: by_map_windows(x, b)))
    for name, boundary, step in contestants:
        torch._dynamo.reset()
        compiled = torch.compile(step, dynamic=False)
        found = compiled(x)
        expected = reference if boundary == "periodic" else step(x.double())
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
        speed = 2 * x.nbytes / seconds(compiled, x)
        rows.append({
            "form": name,
            "boundary": boundary,
            "GB/s": round(speed / 1e9, 1),
            "share of copy %": round(100 * speed / limit.bytes_per_second, 1),
        })  # fmt: skip
    where = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    report(
        f"tensors-{device}",
        rows,
        torch=torch.__version__,
        device=where,
        grid=f"{side}x{side} fp32",
    )


if __name__ == "__main__":
    main()
