"""Activations by name."""

from collections.abc import Callable
from types import MappingProxyType

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hotgrid.errors import ArgumentError, near


def _relu2(x: Tensor) -> Tensor:
    return F.relu(x).square()


def _gelu_tanh(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


ACTIVATIONS: MappingProxyType[str, Callable[[Tensor], Tensor]] = MappingProxyType(
    {
        "relu": F.relu,
        "relu2": _relu2,
        "leaky_relu": F.leaky_relu,
        "gelu": F.gelu,
        "gelu_tanh": _gelu_tanh,
        "silu": F.silu,
        "mish": F.mish,
        "softplus": F.softplus,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "hardswish": F.hardswish,
        "identity": lambda x: x,
    }
)
"""Functions of each element, by name."""


class Activation(nn.Module):
    """A function of each element, by name: one of `ACTIVATIONS`.

    `relu2` is the square of `relu`; `silu` is also known as swish.

    Example:
        >>> Activation("relu2")(torch.tensor([-1.0, 3.0]))
        tensor([0., 9.])

    Raises:
        ArgumentError: There is no activation of this name.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        if name not in ACTIVATIONS:
            raise ArgumentError(
                f"there is no activation `{name}`{near(name, ACTIVATIONS)} "
                f"(there are {', '.join(ACTIVATIONS)})"
            )
        self.name = name

    def forward(self, x: Tensor) -> Tensor:
        """Apply it to each element."""
        return ACTIVATIONS[self.name](x)

    def extra_repr(self) -> str:
        """Return the name."""
        return self.name
