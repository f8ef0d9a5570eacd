"""Claim: `hotgrid.kernels.copy_bandwidth` is the limit of a device; nothing copies faster.

The CPU, and the GPU where there is one, are measured by the probe and by common ways to copy.

    python benchmarks/bench_bandwidth.py [--device cpu]
"""

import time

import numpy as np
import torch
from options import parser
from report import report

from hotgrid import _native
from hotgrid.kernels import copy_bandwidth

SIZE = 256 << 20


def best_cpu(copy, repeats: int = 10) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        copy()
        times.append(time.perf_counter() - start)
    return 2 * SIZE / min(times) / 1e9


def cpu_rows() -> list[dict]:
    source = torch.arange(SIZE // 4, dtype=torch.float32)
    target = torch.zeros_like(source)
    from_array, to_array = source.numpy(), target.numpy()
    torch_speed = best_cpu(lambda: target.copy_(source))
    assert torch.equal(source, target)
    target.zero_()
    numpy_speed = best_cpu(lambda: np.copyto(to_array, from_array))
    assert torch.equal(source, target)
    limit = copy_bandwidth("cpu")
    rows = [
        {
            "device": "cpu",
            "copy": f"copy_bandwidth ({limit.method})",
            "GB/s": limit.gigabytes_per_second,
        },
        {"device": "cpu", "copy": "Tensor.copy_", "GB/s": torch_speed},
        {"device": "cpu", "copy": "numpy.copyto, one thread", "GB/s": numpy_speed},
    ]
    if _native.available():
        core = _native.core()
        speed = core.copy_bandwidth(SIZE, 10) / 1e9
        rows.append({"device": "cpu", "copy": f"native, {core.isa()}", "GB/s": speed})
    return rows


def cuda_rows() -> list[dict]:
    name = torch.cuda.get_device_name()
    limit = copy_bandwidth("cuda")
    rows = [
        {
            "device": name,
            "copy": f"copy_bandwidth ({limit.method})",
            "GB/s": limit.gigabytes_per_second,
        }
    ]
    for gigabytes in (1, 4):
        source = torch.rand(gigabytes << 28, device="cuda")
        target = torch.empty_like(source)
        times = []
        for _ in range(10):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            target.copy_(source)
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) / 1e3)
        assert torch.equal(source, target)
        speed = 2 * source.nbytes / min(times) / 1e9
        rows.append({"device": name, "copy": f"Tensor.copy_, {gigabytes} GiB", "GB/s": speed})
    return rows


def main() -> None:
    device = parser(__doc__).parse_args().device
    rows = cpu_rows()
    if device == "cuda":
        rows += cuda_rows()
    for row in rows:
        row["GB/s"] = round(row["GB/s"], 1)
    report("bandwidth", rows, torch=torch.__version__, threads=torch.get_num_threads())


if __name__ == "__main__":
    main()
