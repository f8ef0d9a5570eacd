"""Norms, as modules and by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError, near


class RMSNorm(nn.Module):
    """Divide by the root of the mean square over the last dimension.

    The mean is taken in float32 or wider, whatever the dtype of the input.

    Args:
        size: The size of the last dimension.
        eps: Added to the mean square.
        learned: Whether there is a gain for each element, `weight`, which begins at 1.
        device: The device of the gain.
        dtype: The dtype of the gain.
    """

    def __init__(
        self,
        size: int,
        *,
        eps: float = 1e-6,
        learned: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.size, self.eps = size, eps
        gain = torch.empty(size, device=device, dtype=dtype) if learned else None
        self.weight = None if gain is None else nn.Parameter(gain)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the gain to 1."""
        if self.weight is not None:
            nn.init.ones_(self.weight)

    @checked(x="... size", bind="self.size", returns="... size")
    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension."""
        weight = None if self.weight is None else self.weight.to(x.dtype)
        return F.rms_norm(x, (self.size,), weight, self.eps)

    def extra_repr(self) -> str:
        """Return the arguments."""
        return f"{self.size}, eps={self.eps:g}, learned={self.weight is not None}"


class LayerNorm(nn.Module):
    """Subtract the mean over the last dimension and divide by the standard deviation.

    Args:
        size: The size of the last dimension.
        eps: Added to the variance.
        learned: Whether there are `weight`, which begins at 1, and `bias`.
        bias: Whether there is a `bias`, which begins at 0.
        device: Their device.
        dtype: Their dtype.
    """

    def __init__(
        self,
        size: int,
        *,
        eps: float = 1e-5,
        learned: bool = True,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.size, self.eps = size, eps

        def made(wanted: bool) -> nn.Parameter | None:
            return (
                nn.Parameter(torch.empty(size, device=device, dtype=dtype)) if wanted else None
            )

        self.weight = made(learned)
        self.bias = made(learned and bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        if self.weight is not None:
            nn.init.ones_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    @checked(x="... size", bind="self.size", returns="... size")
    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension."""
        weight = None if self.weight is None else self.weight.to(x.dtype)
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return F.layer_norm(x, (self.size,), weight, bias, self.eps)

    def extra_repr(self) -> str:
        """Return the arguments."""
        learned, bias = self.weight is not None, self.bias is not None
        return f"{self.size}, eps={self.eps:g}, learned={learned}, bias={bias}"


def _plain_rms(size: int, **options: Any) -> nn.Module:
    return RMSNorm(size, learned=False, **options)


def _no_norm(size: int, **options: Any) -> nn.Module:
    return nn.Identity()


def _group(size: int, groups: int = 32, **options: Any) -> nn.Module:
    return nn.GroupNorm(groups, size, **options)


NORMS: MappingProxyType[str, Callable[..., nn.Module]] = MappingProxyType(
    {
        "rms": RMSNorm,
        "rms_plain": _plain_rms,
        "layer": LayerNorm,
        "batch2d": nn.BatchNorm2d,
        "group": _group,
        "none": _no_norm,
    }
)
"""Functions that make a norm, by name; they take features, options, `device` and `dtype`."""


@dataclass(frozen=True)
class Norm:
    """A norm by name, one of `NORMS`; called with a number of features it makes the module.

    `rms`, `rms_plain` (without parameters) and `layer` are over the last dimension;
    `batch2d` and `group` over channels, the second dimension. It is data: a config can
    hold it, and blocks take it or its name.

    Example:
        >>> Norm("rms", {"eps": 1e-5})(8)
        RMSNorm(8, eps=1e-05, learned=True)

    Raises:
        ArgumentError: There is no norm of this name.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in NORMS:
            raise ArgumentError(
                f"there is no norm `{self.name}`{near(self.name, NORMS)} "
                f"(there are {', '.join(NORMS)})"
            )

    def __call__(
        self,
        size: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> nn.Module:
        """Make the module."""
        return NORMS[self.name](size, device=device, dtype=dtype, **self.options)


def norm_of(norm: "str | Norm") -> Norm:
    """A norm that is given by name or as data."""
    return Norm(norm) if isinstance(norm, str) else norm
