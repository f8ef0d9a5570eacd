"""`MLP`: two linear maps with an activation between, gated or not."""

from types import MappingProxyType

import torch
from torch import Tensor, nn

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError, near

from ._activations import ACTIVATIONS, Activation

# A gate of this activation multiplies what goes up.
GATED = MappingProxyType({"swiglu": "silu", "geglu": "gelu", "reglu": "relu", "glu": "sigmoid"})


class MLP(nn.Module):
    """`down(activation(up(x)))`; for a gated one `down(activation(gate(x)) * up(x))`.

    Args:
        size: The size of the last dimension, before and after.
        hidden: The size in between. Gated ones have half as many matrices again; 8/3 of
            `size` in place of 4 gives about the same number of parameters.
        activation: One of `ACTIVATIONS`, or a gated one: `swiglu`, `geglu`, `reglu`, `glu`.
        bias: Whether the linear maps have one.
        dropout: The share of hidden elements set to 0 in training.
        device: The device of the parameters.
        dtype: Their dtype.

    Raises:
        ArgumentError: There is no activation of this name.
    """

    def __init__(
        self,
        size: int,
        hidden: int,
        activation: str = "relu2",
        *,
        bias: bool = False,
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        names = (*GATED, *ACTIVATIONS)
        if activation not in names:
            raise ArgumentError(
                f"there is no activation `{activation}`{near(activation, names)} "
                f"(there are {', '.join(names)})"
            )
        self.size = size

        def linear(inner: int, outer: int) -> nn.Linear:
            return nn.Linear(inner, outer, bias, device, dtype)

        self.up = linear(size, hidden)
        self.gate = linear(size, hidden) if activation in GATED else None
        self.activation = Activation(GATED.get(activation, activation))
        self.dropout = nn.Dropout(dropout) if dropout else None
        self.down = linear(hidden, size)

    @checked(x="... size", bind="self.size", returns="... size")
    def forward(self, x: Tensor) -> Tensor:
        """Map the last dimension."""
        if self.gate is None:
            hidden = self.activation(self.up(x))
        else:
            hidden = self.activation(self.gate(x)) * self.up(x)
        if self.dropout is not None:
            hidden = self.dropout(hidden)
        return self.down(hidden)
