"""`CodebookLinear`: a linear layer whose weights are a codebook."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.compiler import is_dynamo_compiling

from hotgrid.errors import ArgumentError
from hotgrid.kernels.tune import autocast_type, differentiated, traced, transformed

from ._arguments import checked_parts
from ._coded import PARTS, Coded
from ._op import decoded_product, tuned_codebook
from ._registered import multiplied, operator

FEW = 8
"""Up to this many rows of x are multiplied from the codes; for more the matrix is decoded."""


class CodebookLinear(nn.Module):
    """A linear layer `x @ weight.T + bias` whose weight is kept as codes and tables.

    `compress` makes it out of a `torch.nn.Linear`. Its tensors are buffers: they move with
    the module and are part of its `state_dict`. There are gradients for `x` and the bias,
    none for the codes. Its error has been measured and is shown with it.

    Args:
        coded: The weight.
        bias: `[out_features]`, or None.
        error: The relative error of the outputs, as measured.

    Attributes:
        form: `rows`, `pq`, `int4` or `int8`.
        in_features: Columns of the weight.
        out_features: Rows of the weight.

    Raises:
        ArgumentError: `x` of a call does not end with `in_features` or is not floating, or a
            buffer has been exchanged for one that does not match.

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
        for name, part in coded.parts:
            self.register_buffer(name, part)
        self.register_buffer("measured_error", torch.tensor(error))
        if bias is None:
            self.register_parameter("bias", None)
        else:
            self.bias = nn.Parameter(bias.detach().clone(), requires_grad=bias.requires_grad)

    @property
    def coded(self) -> Coded:
        """The weight as it is stored."""
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
        """The size of the stored weight; the bias is not counted."""
        return self.coded.bytes

    @property
    def weight(self) -> Tensor:
        """The weight, decoded again each time, in f32: `[out_features, in_features]`."""
        return self.coded.decoded()

    def forward(self, x: Tensor) -> Tensor:
        """Return `x @ weight.T + bias`, of shape `[..., out_features]`."""
        # Faster than as attributes of the module.
        held, bias = self._buffers, self._parameters["bias"]
        tensors: tuple[Any, ...] = (x, held["codes"], held["scale"])
        if (table := held["table"]) is not None:
            signs = held["signs"]
            tensors = (*tensors, table) if signs is None else (*tensors, table, signs)
        name = (self.form, self.in_features, self.out_features)
        run = tuned_codebook.fast(name, *tensors)
        if run is not None:
            y = run(*tensors)
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
        rows = x if x.ndim == 2 else x.reshape(-1, shape[-1])
        parts = tuple([held[each] for each in PARTS])
        y = self._product(rows, parts)
        y = y if x.ndim == 2 else y.reshape(*shape[:-1], self.out_features)
        if rows.shape[0] <= FEW and not traced(*tensors):
            compute = _product_again(self.form, *tensors)
            tuned_codebook.keep_fast(name, tensors, (self.form, rows, *parts), compute)
        return y if bias is None else y + bias.to(y.dtype)

    def _product(self, x: Tensor, parts: tuple[Any, ...]) -> Tensor:
        if not is_dynamo_compiling():
            self._expect_whole(x, parts)
        if x.shape[0] > FEW:
            return self._decoded_product(x)
        if traced(x, *[part for part in parts if part is not None]) or differentiated(x):
            # torch.func knows the derivatives of torch's operations, not those of ours.
            return (decoded_product if transformed() else operator)(self.form, x, *parts)
        return multiplied(self.form, x, *parts)

    def _expect_whole(self, x: Tensor, parts: tuple[Any, ...]) -> None:
        """Raise if a buffer was exchanged for one that does not match."""
        name = "scale" if self.form == "pq" else "codes"
        part = self._buffers[name]
        if part is not None and part.shape[:1] != (self.out_features,):
            raise ArgumentError(
                f"`{name}` of shape {tuple(part.shape)} must begin with {self.out_features}, "
                "the `out_features` of this layer"
            )
        checked_parts(self.form, x, *parts)

    def _decoded_product(self, x: Tensor) -> Tensor:
        if self.form == "rows":
            return F.linear(x, self.coded.centroids().to(x.dtype))[:, self.codes.long()]
        return F.linear(x, self.weight.to(x.dtype))

    def extra_repr(self) -> str:
        """Describe its form, size and error."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, form={self.form!r}, bits={self.bits:.2f}, "
            f"error={self.error:.3g}"
        )


def _product_again(form: str, x: Tensor, *parts: Tensor) -> Callable[..., Tensor]:
    """Return a function that multiplies such an `x` with such parts by a candidate.

    Only the last ones of `PARTS` may be missing.
    """
    missing, shape, flat = (None,) * (len(PARTS) - len(parts)), x.shape, x.ndim == 2
    sizes = [part.untyped_storage().nbytes() for part in parts]

    def compute(multiply: Callable[..., Tensor], x: Tensor, *parts: Tensor) -> Tensor:
        # The guard does not notice that the storage of a tensor was freed.
        if [part.untyped_storage().nbytes() for part in parts] != sizes:
            checked_parts(form, x.reshape(-1, shape[-1]), *parts, *missing)
        if flat:
            return multiply(form, x, *parts, *missing)
        y = multiply(form, x.reshape(-1, shape[-1]), *parts, *missing)
        return y.reshape(*shape[:-1], y.shape[1])

    return compute
