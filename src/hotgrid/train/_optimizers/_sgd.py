"""Stochastic gradient descent, computed by torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.optim.sgd import sgd

from ._choice import Implementation, expect_implementation, fused_and_foreach
from ._spec import ElementwiseSpec, Value


@dataclass(frozen=True, kw_only=True)
class SGD(ElementwiseSpec):
    """Gradient descent with momentum, by torch's kernels; equal to torch's bit for bit.

    As in torch, `decay` is added to the gradient.

    Attributes:
        momentum: The share of the last update in the next; 0 needs no state.
        nesterov: Whether momentum looks ahead.
        implementation: `fused`, `foreach` or `plain`: which of torch's implementations. None
            is fused, or foreach for 16-bit parameters on a CPU.

    Example:
        >>> SGD(rate=0.1, momentum=0.9).slots(torch.ones(3))
        {'momentum': tensor([0., 0., 0.])}
    """

    momentum: Value = 0.0
    nesterov: bool = False
    implementation: Implementation | None = None

    def __post_init__(self) -> None:
        expect_implementation(self.implementation)

    @property
    def values(self) -> dict[str, Value]:
        """Rate, decay and momentum."""
        return {**super().values, "momentum": self.momentum}

    def slots(self, parameter: Tensor) -> dict[str, Tensor]:
        """The momentum, unless there never is any."""
        return {} if self.momentum == 0 else {"momentum": torch.zeros_like(parameter)}

    def update(
        self,
        parameters: list[Tensor],
        gradients: list[Tensor],
        slots: dict[str, list[Tensor]],
        values: Mapping[str, float],
    ) -> None:
        """Call torch's functional SGD."""
        chosen = self.implementation
        if chosen is None and any(
            p.device.type == "cpu" and p.itemsize < 4 for p in parameters
        ):
            # The fused kernel for CPUs is wrong in 16 bits (seen with torch 2.13).
            chosen = "foreach"
        fused, foreach = fused_and_foreach(chosen)
        none: Sequence[Tensor | None] = [None] * len(parameters)
        sgd(
            parameters,
            gradients,
            cast(list[Tensor | None], slots.get("momentum", none)),
            fused=fused,
            foreach=foreach,
            weight_decay=values["decay"],
            momentum=values["momentum"] if slots else 0.0,
            lr=values["rate"],
            dampening=0.0,
            nesterov=self.nesterov and bool(slots),
            maximize=False,
        )
