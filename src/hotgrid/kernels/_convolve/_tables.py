"""A candidate that multiplies spectra; the kernel's is made by matrix products.

A kernel is small beside its grid. Its spectrum is a product with a table of waves for each
dim, which depend on sizes alone and are kept: where the kernel lies on the torus, and that it
is turned around, is in the tables. A transform has to lay it among zeros first, and roll it.
"""

import math
from collections.abc import Sequence
from contextlib import nullcontext
from functools import lru_cache

import torch
from torch import Tensor
from torch.cuda import is_current_stream_capturing

from hotgrid.kernels.tune import Call, Candidate, outside_of_modes

from ._direct import sizes_of
from ._fourier import Plan, multiplied_spectra, turned_spectrum

_LONGEST = 128  # a side of the kernel; for larger ones a transform is faster
_MOST_KEPT = 64  # sets of tables, a set mostly of some hundred kB
_MOST_BYTES = 2**23  # of a set; long lines would want gigabytes, and transforms win there


def _by_tables(x: Tensor, kernel: Tensor, before: Sequence[int], periodic: bool) -> Tensor:
    return multiplied_spectra(x, kernel, before, periodic, _spectrum)


def _spectrum(weights: Tensor, plan: Plan) -> Tensor:
    if weights.is_cuda and is_current_stream_capturing():
        # A graph may outlive the tables, and what it makes holds nothing until it runs.
        return turned_spectrum(weights, plan)
    *others, along = _tables(
        weights.shape, plan.lengths, plan.back, weights.dtype, weights.device
    )
    # Real times complex, as numbers side by side.
    found = torch.view_as_complex((weights @ along).view(*weights.shape[:-1], -1, 2))
    if others:
        found = others[-1] @ found
    if len(others) == 2:
        found = (others[0] @ found.flatten(1)).view(-1, *found.shape[1:])
    return found


@lru_cache(maxsize=_MOST_KEPT)
def _tables(
    sizes: tuple[int, ...],
    lengths: tuple[int, ...],
    back: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
) -> tuple[Tensor, ...]:
    """Waves `[length, k]` for all dims but the last; for that one `[k, 2 * half]`, real."""
    made = []
    # They are kept, so no mode of the first caller may affect them.
    with outside_of_modes(), torch.inference_mode(mode=False), _of_one_device(device):
        for dim, (k, length, b) in enumerate(zip(sizes, lengths, back, strict=True)):
            last = dim == len(sizes) - 1
            wave = torch.arange(length // 2 + 1 if last else length, device=device)
            at = torch.arange(k, device=device) - b
            # Whole turns are removed first, so that no digits are lost.
            turns = (wave[:, None] * at % length).double() * (2 * math.pi / length)
            waves = torch.polar(torch.ones_like(turns), turns).to(dtype.to_complex())
            made.append(torch.view_as_real(waves.T.contiguous()).flatten(1) if last else waves)
        if device.type == "cuda":
            # Other streams will read these, and may still read those that they replace.
            torch.cuda.synchronize(device)
    return tuple(made)


def _of_one_device(device: torch.device) -> torch.cuda.device | nullcontext[None]:
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _bytes(call: Call, sizes: tuple[int, ...]) -> int:
    """The size of its tables, nearly: two numbers per weight and wave, half in the last dim."""
    size, last = 8 if call.dtype == "float64" else 4, len(sizes) - 1
    each = [k * (call.sizes[f"n{dim}"] + k) for dim, k in enumerate(sizes)]
    return size * (2 * sum(each) - each[last])


def _applies(call: Call) -> bool:
    sizes = sizes_of(call)
    if max(sizes) > _LONGEST or _bytes(call, sizes) > _MOST_BYTES:
        return False
    return call.device.type == "cpu" or torch.get_float32_matmul_precision() == "highest"


TABLES = Candidate(name="tables", function=_by_tables, applies=_applies)
