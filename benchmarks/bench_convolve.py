"""Claim: `convolve` is as fast as the better of direct sums and FFTs.

It runs with radius 1 to 32, periodic, against torch's convolution with circular padding and
against a product of spectra. All results are compared with double precision first; a wrong one
ends the run. All take turns and the best time of each counts. torch's convolution is skipped
once a call takes longer than 2 s. With `--one-thread` a CPU counts the CPU time of a
single thread, which depends little on other work on the machine.

    python benchmarks/bench_convolve.py [--device cuda] [--rounds N] [--one-thread]
"""

import os
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from options import parser
from report import report
from torch import Tensor

from hotgrid.config import override
from hotgrid.kernels import OPS, convolve

SIDES, RADII = (512, 1024), (1, 2, 3, 4, 6, 8, 13, 16, 24, 32)
TOO_LONG = 2.0
CALLS = 10  # in a row on a GPU, so that it never waits for Python


def seconds(call: Callable[[], object], device: str) -> float:
    if device == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(CALLS):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3 / CALLS
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    begin = clock()
    call()
    return clock() - begin


def in_turn(
    calls: dict[str, Callable[[], object]], device: str, rounds: int
) -> dict[str, float]:
    best = {name: seconds(call, device) for name, call in calls.items()}
    for done in range(rounds):
        order = list(calls.items())
        for name, call in order if done % 2 else reversed(order):
            if best[name] * (done + 2) < TOO_LONG:
                best[name] = min(best[name], seconds(call, device))
    return best


def check(name: str, found: Tensor, expected: Tensor) -> None:
    error = float((found - expected).abs().max() / expected.abs().square().mean().sqrt())
    if not error < 1e-4:
        sys.exit(f"{name} is off by {error:.2g}; nothing was timed")


def by_windows(x: Tensor, kernel: Tensor) -> Tensor:
    radius = kernel.shape[0] // 2
    padded = F.pad(x[None, None], (radius,) * 4, mode="circular")
    return F.conv2d(padded, kernel[None, None])[0, 0]


def by_spectra(x: Tensor, kernel: Tensor) -> Tensor:
    radius = kernel.shape[0] // 2
    whole = F.pad(kernel, (0, x.shape[1] - len(kernel), 0, x.shape[0] - len(kernel)))
    whole = torch.roll(whole, (-radius, -radius), (0, 1))
    return torch.fft.irfft2(torch.fft.rfft2(x) * torch.fft.rfft2(whole).conj(), x.shape)


def convolutions(side: int, device: str, rounds: int) -> list[dict[str, object]]:
    x, rows, slow = torch.randn(side, side, device=device), [], False
    for radius in RADII:
        kernel = torch.randn(2 * radius + 1, 2 * radius + 1, device=device)
        ways = {"windows": by_windows, "spectra": by_spectra, "hotgrid": convolve}
        calls = {
            name: partial(way, x, kernel)
            for name, way in ways.items()
            if not (slow and name == "windows")
        }
        exact = by_spectra(x.double(), kernel.double())
        for name, call in calls.items():
            check(f"{name} at radius {radius}", call(), exact)
        best = in_turn(calls, device, rounds)
        slow = best.get("windows", TOO_LONG) >= TOO_LONG
        rivals = [each for name, each in best.items() if name != "hotgrid"]
        arguments = (x[None], kernel, (radius, radius), True)
        rows.append({
            "side": side,
            "radius": radius,
            **{f"{name} ms": round(each * 1e3, 4) for name, each in best.items()},
            "ratio to the better": round(min(rivals) / best["hotgrid"], 2),
            "candidate": OPS["convolve"].candidate_for(*arguments).name,
        })  # fmt: skip
    return rows


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--rounds", type=int, default=20)
    asked.add_argument("--one-thread", action="store_true")
    options = asked.parse_args()
    if options.one_thread:
        torch.set_num_threads(1)
    # Otherwise a GPU rounds to 10 bits what it convolves, and is not comparable.
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    facts = {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if options.device == "cuda" else "cpu",
    }
    with override({"autotune.cache": "none"}):
        rows = [
            row for side in SIDES for row in convolutions(side, options.device, options.rounds)
        ]
    load = round(os.getloadavg()[0], 1)
    place = f"{options.device}-one-thread" if options.one_thread else options.device
    report(f"convolve-{place}", rows, **facts, load=load)


if __name__ == "__main__":
    main()
