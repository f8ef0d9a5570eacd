"""Run by a test: a product like an earlier one skips the launcher, and only such a one."""

import sys
from pathlib import Path
from types import SimpleNamespace

import torch

from hotgrid.kernels._gemv import _triton_gemv as made
from hotgrid.kernels.tune import _triton_launch

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.kernels.compiled_kernels import Jit  # pyright: ignore[reportMissingImports]

torch._C._cuda_getCurrentRawStream = lambda device: 77  # pyright: ignore[reportAttributeAccessIssue]
device = SimpleNamespace(number=None)  # what tensors on a CPU have
made.current_cuda_device = lambda: device.number
jit = Jit()
made._LAUNCHERS = dict.fromkeys(("rows", "columns"), _triton_launch.TritonLauncher(jit))


def straight() -> tuple[object, ...]:
    way, _, *given = jit.log[-1]
    assert way == "straight", jit.log[-1]
    return tuple(given)


for dtype, scaled, by_columns in (
    (torch.bfloat16, False, False),
    (torch.int8, True, False),
    (torch.float32, False, True),
):
    weight = torch.ones(4096, 64, dtype=dtype)
    weight = weight.T.contiguous().T if by_columns else weight
    x = torch.ones(1, 64, dtype=torch.float32 if scaled else dtype)
    scales = torch.ones(4096) if scaled else None
    assert made.product_like(weight, x, scales) is None, "nothing was launched"
    made.matrix_times_vectors(weight, x, scales)
    run = made.product_like(weight, x, scales)
    assert run is not None
    others = () if scales is None else (scales,)
    y = run(weight, x, *others)
    assert (y.shape, y.dtype) == ((1, 4096), x.dtype)
    grid, addresses = straight()[:3], straight()[9:14]
    given = y if scales is None else scales
    assert grid == (4096 // 32 if by_columns else 4096, 1, 1)
    tensors = (weight, x, given, y, y)
    assert addresses == tuple(each.data_ptr() for each in tensors)
    assert straight()[14:18] == (4096, 64, 4096 if by_columns else 64, 64)
    compiled = jit.made
    apart = torch.ones(65, dtype=x.dtype)[1:]
    assert apart.data_ptr() % _triton_launch.ALIGNED
    run(weight, apart[None], *others)
    assert jit.made == compiled + 1, "another address needs another kernel"
    device.number = 1
    run(weight, x, *others)
    device.number = None
    assert jit.made == compiled + 1
    # Too few rows: the matrix is cut, and what was summed is not yet the result.
    few, long = torch.ones(8, 4096, dtype=dtype), torch.ones(1, 4096, dtype=x.dtype)
    few = few.T.contiguous().T if by_columns else few
    part = None if scales is None else scales[:8]
    made.matrix_times_vectors(few, long, part)
    assert made.product_like(few, long, part) is None
print("as told")
