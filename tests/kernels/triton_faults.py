"""Run by a test under Triton's interpreter: a kernel that leaves its buffers is caught."""

import torch
import triton
import triton.language as tl

from hotgrid.errors import KernelError
from hotgrid.kernels.tune import Faults
from hotgrid.kernels.tune._triton_guarded import guarded_load, guarded_store


@triton.jit
def shifted(x, y, n, by, shift_of_writes, faults, block: tl.constexpr, check: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    value = guarded_load(x, at + by, inside, 0.0, n, faults, 0, check)
    guarded_store(y, at + shift_of_writes, value, inside, n, faults, 1, check)


def run(by: int, shift_of_writes: int, check: bool) -> torch.Tensor:
    x, y = torch.arange(20.0), torch.full((20,), -1.0)
    faults = Faults("shift.triton", {"x": 20, "y": 20}, "cpu")
    grid = (triton.cdiv(20, 8),)
    shifted[grid](x, y, 20, by, shift_of_writes, faults.record, 8, check)
    faults.expect_none()
    return y


assert torch.equal(run(0, 0, check=True), run(0, 0, check=False))
for arguments in ((3, 0), (-2, 0), (0, 1)):
    try:
        run(*arguments, check=True)
    except KernelError as error:
        print(error)
