"""`CodebookLinear`: a linear layer whose weights are a codebook."""

import sys
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hotgrid import _native
from hotgrid.config import current
from hotgrid.errors import ArgumentError
from hotgrid.kernels.tune import traced, transformed

from ._coded import Coded
from ._core import CORE_TYPES, core_product
from ._decoded import decoded_product
from ._registered import multiplied, operator

FEW = 8
"""Rows of x up to which codes are multiplied as they are; more are worth a decoded matrix."""


class CodebookLinear(nn.Module):
    """A linear layer `x @ weight.T + bias` whose weight is kept as codes and tables.

    `compress` makes it out of a `torch.nn.Linear`. Its tensors are buffers: they move with
    the module and are part of its `state_dict`. There are gradients for `x` and the bias,
    none for the codes. Its error has been measured and is shown with it.

    Args:
        coded: The weight.
        bias: `[out_features]`, or None.
        error: Of the outputs, relative, as it was measured.

    Attributes:
        form: `rows`, `pq`, `int4` or `int8`.
        in_features: Columns of the weight.
        out_features: Rows of the weight.

    Raises:
        ArgumentError: `x` of a call does not end with `in_features`.

    Example:
        >>> layer = compress(torch.nn.Linear(64, 32), form="int8")
        >>> layer.form, layer(torch.ones(1, 64)).shape, layer.error < 0.01
        ('int8', torch.Size([1, 32]), True)
    """

    codes: Tensor
    scale: Tensor
    table: Tensor | None
    signs: Tensor | None
    measured_error: Tensor

    def __init__(self, coded: Coded, bias: Tensor | None = None, error: float = 0.0) -> None:
        super().__init__()
        self.form = coded.form
        self.in_features, self.out_features = coded.cols, coded.rows
        self.register_buffer("codes", coded.codes)
        self.register_buffer("scale", coded.scale)
        self.register_buffer("table", coded.table)
        self.register_buffer("signs", coded.signs)
        self.register_buffer("measured_error", torch.tensor(error))
        if bias is None:
            self.register_parameter("bias", None)
        else:
            self.bias = nn.Parameter(bias.detach().clone(), requires_grad=bias.requires_grad)

    @property
    def coded(self) -> Coded:
        """The weight as it is kept."""
        return Coded(
            self.form, self.in_features, self.codes, self.scale, self.table, self.signs
        )

    @property
    def error(self) -> float:
        """The relative error of the outputs, as it was measured."""
        return float(self.measured_error)

    @property
    def bits(self) -> float:
        """Bits for each weight, tables and scales counted."""
        return self.coded.bits

    @property
    def bytes(self) -> int:
        """What the weight takes to keep; the bias is not counted."""
        return self.coded.bytes

    def weight(self) -> Tensor:
        """Return the weight, decoded, in f32: `[out_features, in_features]`."""
        return self.coded.decoded()

    def forward(self, x: Tensor) -> Tensor:
        """Return `x @ weight.T + bias`, of shape `[..., out_features]`."""
        shape = x.shape
        if not shape or shape[-1] != self.in_features:
            raise ArgumentError(
                f"`x` of shape {tuple(shape)} must end with {self.in_features}, the "
                "`in_features` of this layer"
            )
        if len(shape) == 2:
            y = self._product(x, shape[0])
        else:
            rows = x.reshape(-1, shape[-1])
            y = self._product(rows, rows.shape[0]).reshape(*shape[:-1], self.out_features)
        bias = self._parameters["bias"]  # asking the module itself is slow
        return y if bias is None else y + bias.to(y.dtype)

    def _product(self, x: Tensor, count: int) -> Tensor:
        if count > FEW:
            return self._decoded_product(x)
        buffers = self._buffers
        parts: tuple[Any, ...] = (
            buffers["codes"], buffers["scale"], buffers["table"], buffers["signs"]
        )  # fmt: skip
        if traced(x) or (x.requires_grad and torch.is_grad_enabled()):
            # torch.func knows the derivatives of torch's operations, not those of ours.
            return (decoded_product if transformed() else operator)(self.form, x, *parts)
        if count and _nothing_to_choose(x, parts[0]):
            return core_product(self.form, x, *parts)
        return multiplied(self.form, x, *parts)

    def _decoded_product(self, x: Tensor) -> Tensor:
        if self.form == "rows":
            return F.linear(x, self.coded.centroids().to(x.dtype))[:, self.codes.long()]
        return F.linear(x, self.weight().to(x.dtype))

    def extra_repr(self) -> str:
        """Say what it is, how large, and how far off."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, form={self.form!r}, bits={self.bits:.2f}, "
            f"error={self.error:.3g}"
        )


def _nothing_to_choose(x: Tensor, codes: Tensor) -> bool:
    """Whether the core would win whatever the tuner did, so that it need not be asked.

    On the CPU the only other candidate decodes first. Asking takes as long as the smallest
    of these products.
    """
    if not (x.is_cpu and codes.is_cpu and x.dtype in CORE_TYPES and _native.available()):
        return False
    kernels = current().kernels
    return kernels.check_mode == "auto" and not kernels.choose and not _DEVELOPING


_DEVELOPING = sys.flags.dev_mode
