"""Candidates made of torch's own transforms."""

import torch
from torch import Tensor

from hotgrid.kernels.tune import Candidate


def _torch(x: Tensor, norm: str) -> Tensor:
    return torch.fft.rfft2(x, norm=norm).contiguous()


def _inverse_torch(x: Tensor, width: int, norm: str) -> Tensor:
    return torch.fft.irfft2(x, (x.shape[-2], width), norm=norm).contiguous()


def _split(x: Tensor, norm: str) -> Tensor:
    """Columns become rows for their transform, so that each lies in one piece."""
    columns = torch.fft.rfft(x, norm=norm).mT.contiguous()
    return torch.fft.fft(columns, norm=norm).mT.contiguous()


def _inverse_split(x: Tensor, width: int, norm: str) -> Tensor:
    rows = torch.fft.ifft(x.mT.contiguous(), norm=norm).mT.contiguous()
    return torch.fft.irfft(rows, width, norm=norm)


TORCH = Candidate(name="torch", function=_torch)
SPLIT = Candidate(name="split", function=_split)
INVERSE_TORCH = Candidate(name="torch", function=_inverse_torch)
INVERSE_SPLIT = Candidate(name="split", function=_inverse_split)
