"""Complex numbers as pairs of real ones, which torch compiles.

Modes `[..., *modes, 2]` come from `torch.view_as_real` and go back by
`torch.view_as_complex`. Real tables and wavenumbers multiply them like tensors.
"""

import torch
from torch import Tensor


def turned(pairs: Tensor) -> Tensor:
    """The pairs times i.

    Example:
        >>> turned(torch.tensor([1.0, 2.0]))
        tensor([-2.,  1.])
    """
    return torch.stack((-pairs[..., 1], pairs[..., 0]), -1)


def paired(real: Tensor) -> Tensor:
    """A real number for each mode, to multiply pairs by.

    Compiled for a CPU, only what is in memory twice is vectorised. On a GPU that would be
    twice as much to read.
    """
    wide = real[..., None]
    return wide.expand(*real.shape, 2).contiguous() if real.device.type == "cpu" else wide
