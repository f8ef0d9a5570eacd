"""`CodebookLinear`: a linear layer whose weights are a codebook."""

import sys
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.compiler import is_dynamo_compiling

from hotgrid import _native
from hotgrid.config import current
from hotgrid.errors import ArgumentError
from hotgrid.kernels.tune import autocast_type, differentiated, plain, traced, transformed

from ._arguments import checked_parts
from ._bound import Bound
from ._coded import PARTS, Coded
from ._core import CORE_TYPES, core_bound, core_product
from ._decoded import decoded_product
from ._op import tuned_codebook
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
        ArgumentError: `x` of a call does not end with `in_features` or is not floating, or a
            buffer has been exchanged for one that does not fit.

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
    _bound: Bound | None = None

    def __init__(self, coded: Coded, bias: Tensor | None = None, error: float = 0.0) -> None:
        super().__init__()
        self.form = coded.form
        self.in_features, self.out_features = coded.cols, coded.rows
        for name, part in coded.parts:
            self.register_buffer(name, part)
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

    @property
    def weight(self) -> Tensor:
        """The weight, decoded anew each time, in f32: `[out_features, in_features]`."""
        return self.coded.decoded()

    def forward(self, x: Tensor) -> Tensor:
        """Return `x @ weight.T + bias`, of shape `[..., out_features]`."""
        if not is_dynamo_compiling():
            bound = self._bound
            if bound is not None and bound.fits(x, self._buffers):
                y, bias = bound.run(x), self._parameters["bias"]
                return y if bias is None else y + bias.to(y.dtype)
        shape = x.shape
        if not shape or shape[-1] != self.in_features:
            raise ArgumentError(
                f"`x` of shape {tuple(shape)} must end with {self.in_features}, the "
                "`in_features` of this layer"
            )
        if not x.is_floating_point():
            raise ArgumentError(f"`x` is {x.dtype}; expected a floating type: use `x.float()`")
        lower = autocast_type(x)
        if lower is not None:
            with torch.autocast(x.device.type, enabled=False):
                return self.forward(x.to(lower))
        if len(shape) == 2:
            y = self._product(x, shape[0])
        else:
            rows = x.reshape(-1, shape[-1])
            y = self._product(rows, rows.shape[0]).reshape(*shape[:-1], self.out_features)
        self._remember(x)
        return self._plus_bias(y)

    def _plus_bias(self, y: Tensor) -> Tensor:
        bias = self._parameters["bias"]  # asking the module itself is slow
        return y if bias is None else y + bias.to(y.dtype)

    def _remember(self, x: Tensor) -> None:
        """Let the next call begin at once if it is like this one."""
        buffers = self._buffers
        parts: tuple[Any, ...] = tuple([buffers[name] for name in PARTS])
        few = x.is_contiguous() and 0 < x.numel() <= FEW * x.shape[-1]
        if not few or not plain(x, *parts):
            return
        form, run = self.form, None
        if _nothing_to_choose(x, parts[0]):
            run = core_bound(form, x, *parts)
        elif x.ndim == 2:
            found = tuned_codebook.function_of(form, x, *parts)
            if found is not None:
                run = lambda x: found(form, x, *parts)
        self._bound = None if run is None else Bound(x, parts, run)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is copied and pickled: all but what is only remembered."""
        return {name: value for name, value in vars(self).items() if name != "_bound"}

    def _product(self, x: Tensor, count: int) -> Tensor:
        if count > FEW:
            if not is_dynamo_compiling():
                self._expect_whole(x)
            return self._decoded_product(x)
        buffers = self._buffers
        parts: tuple[Any, ...] = tuple([buffers[name] for name in PARTS])
        if traced(x, *[part for part in parts if part is not None]) or differentiated(x):
            # torch.func knows the derivatives of torch's operations, not those of ours.
            return (decoded_product if transformed() else operator)(self.form, x, *parts)
        if count and _nothing_to_choose(x, parts[0]):
            self._expect_whole(x)
            return core_product(self.form, x, *parts)
        return multiplied(self.form, x, *parts)

    def _expect_whole(self, x: Tensor) -> None:
        """Raise if a buffer was exchanged for one that does not fit."""
        name = "scale" if self.form == "pq" else "codes"
        part = self._buffers[name]
        if part is not None and part.shape[:1] != (self.out_features,):
            raise ArgumentError(
                f"`{name}` of shape {tuple(part.shape)} must begin with {self.out_features}, "
                "the `out_features` of this layer"
            )
        checked_parts(self.form, x, *[self._buffers[each] for each in PARTS])

    def _decoded_product(self, x: Tensor) -> Tensor:
        if self.form == "rows":
            return F.linear(x, self.coded.centroids().to(x.dtype))[:, self.codes.long()]
        return F.linear(x, self.weight.to(x.dtype))

    def extra_repr(self) -> str:
        """Say what it is, how large, and how far off."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, form={self.form!r}, bits={self.bits:.2f}, "
            f"error={self.error:.3g}"
        )


def _nothing_to_choose(x: Tensor, codes: Tensor | None) -> bool:
    """Whether the core would win whatever the tuner did, so that it need not be asked.

    On the CPU the only other candidate decodes first. Asking takes as long as the smallest
    of these products.
    """
    if codes is None or not (x.is_cpu and codes.is_cpu and x.dtype in CORE_TYPES):
        return False
    if not _native.available():
        return False
    kernels = current().kernels
    return kernels.check_mode == "auto" and not kernels.choose and not _DEVELOPING


_DEVELOPING = sys.flags.dev_mode
