"""The candidate that lays the kernel over many rows at once, as products with band matrices.

A column of the kernel, written below itself again and again, each time one cell further, is
a matrix that computes 16 rows of the result from 16 rows and their neighbours. Two thirds of
the products are with zeros, but a processor does nothing faster than matrix products.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from hotgrid.kernels.tune import Call, Candidate

from ._direct import weights_of
from ._extended import extended, rest, widened

_BAND = 16  # rows; fewer start more products, more have more zeros
_MOST_WEIGHTS = 1024  # on a CPU; with more of them spectra have long won


def _bands(x: Tensor, kernel: Tensor, before: Sequence[int], periodic: bool) -> Tensor:
    cells, weights = widened(x, kernel)
    (count, height, width), (down, along) = x.shape, kernel.shape
    deep = _BAND + down - 1
    cells = extended(cells, before, rest(kernel, before), periodic)
    # Grids lie below each other, so far apart that no band of one sees another.
    far = _whole_bands(height) + _whole_bands(down - 1)
    rows = F.pad(cells, (0, 0, 0, far - cells.shape[1])).reshape(count * far, -1)
    bands = F.pad(rows, (0, 0, 0, down - 1)).unfold(0, deep, _BAND).mT
    tables = _band_matrices(weights)[:, None].expand(-1, len(bands), -1, -1)
    total = torch.bmm(tables[0], bands[:, :, :width])
    for j in range(1, along):
        total.baddbmm_(tables[j], bands[:, :, j : j + width])
    return total.view(count, far, width)[:, :height].to(x.dtype).contiguous()


def _whole_bands(rows: int) -> int:
    return -(-rows // _BAND) * _BAND


def _band_matrices(kernel: Tensor) -> Tensor:
    """One matrix `[16, 15 + k]` for each column of the kernel; row i holds it from i on."""
    down, along = kernel.shape
    deep = _BAND + down - 1
    # Lines of one cell more than they should have: each begins one cell later.
    lines = F.pad(kernel.T, (0, _BAND)).repeat(1, _BAND)
    return lines[:, : _BAND * deep].reshape(along, _BAND, deep)


def _applies(call: Call) -> bool:
    if "n1" not in call.sizes or "n2" in call.sizes:
        return False
    if call.device.type == "cpu":
        return weights_of(call) <= _MOST_WEIGHTS
    return torch.get_float32_matmul_precision() == "highest"


BANDS = Candidate(name="bands", function=_bands, applies=_applies)
