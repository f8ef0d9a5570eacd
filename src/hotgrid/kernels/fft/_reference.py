"""The oracles: one dim after the other, in double precision."""

import torch
from torch import Tensor


def forward(x: Tensor, norm: str) -> Tensor:
    """Return the half spectra of real images: along the rows, then along the columns."""
    rows = torch.fft.rfft(x.double(), dim=-1, norm=norm)
    return torch.fft.fft(rows, dim=-2, norm=norm).to(x.dtype.to_complex())


def inverse(x: Tensor, width: int, norm: str) -> Tensor:
    """Return the real images of half spectra: along the columns, then along the rows."""
    columns = torch.fft.ifft(x.to(torch.complex128), dim=-2, norm=norm)
    return torch.fft.irfft(columns, width, dim=-1, norm=norm).to(x.dtype.to_real())
