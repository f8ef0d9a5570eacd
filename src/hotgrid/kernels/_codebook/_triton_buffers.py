"""Buffers of the codebook kernels on a GPU: allocation, loads and fault records."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from hotgrid.kernels.tune import Faults
from hotgrid.kernels.tune._triton_guarded import guarded_load


@triton.jit
def load_at(
    start, base, offset, mask, length, faults, BUFFER: tl.constexpr, CHECK: tl.constexpr
):  # fmt: skip
    """Load `start[base + offset]`, 0 where `mask` does not hold; `base` is the same everywhere.

    A thread then adds 32 bits to an address that all threads share, which costs a third of
    adding 64 bits for each. `offset` is not negative.
    """
    if CHECK:
        number = guarded_load(start, base + offset, mask, 0, length, faults, BUFFER, CHECK)
    else:
        number = tl.load(start + base + offset.to(tl.uint32), mask=mask, other=0)
    return number


def buffer_for(
    parts: int, vectors: int, rows: int, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """Return a buffer for sums: f32 `[parts, vectors, rows]`, or for one part the result's."""
    if parts == 1:
        return torch.empty((vectors, rows), dtype=dtype, device=device)
    return torch.empty((parts, vectors, rows), dtype=torch.float32, device=device)


def faults_of(
    checked: bool, codes: Tensor, x: Tensor, scale: Tensor, table: Tensor | None, y: Tensor
) -> Faults | None:
    """Return where a kernel notes bad accesses, if it is to be checked.

    Buffers have the numbers of this order in all of these kernels.
    """
    if not checked:
        return None
    buffers = {"codes": codes, "x": x, "scale": scale, "table": table, "y": y}
    sizes = {name: 0 if part is None else part.numel() for name, part in buffers.items()}
    return Faults("codebook.triton", sizes, x.device)
