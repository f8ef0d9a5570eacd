"""AdamW, computed by torch."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from hotgrid.errors import ArgumentError

from ._choice import Implementation, expect_implementation, fused_and_foreach
from ._spec import ElementwiseSpec, Value, expect_betas


@dataclass(frozen=True, kw_only=True)
class AdamW(ElementwiseSpec):
    """AdamW of Loshchilov and Hutter 2019, by torch's kernels; equal to torch's bit for bit.

    Attributes:
        betas: The decay of both averages; each may be scheduled.
        eps: Added to the denominator.
        implementation: `fused`, `foreach` or `plain`: which of torch's implementations. None
            is fused.

    Example:
        >>> AdamW(rate=3e-4, betas=(0.8, 0.95), decay=0.1).values["beta1"]
        0.8
    """

    betas: tuple[Value, Value] = (0.9, 0.999)
    eps: float = 1e-8
    implementation: Implementation | None = None

    def __post_init__(self) -> None:
        expect_implementation(self.implementation)
        expect_betas(self)
        if not isinstance(self.eps, int | float) or not 0 <= self.eps < math.inf:
            raise ArgumentError(f"`eps` of AdamW is {self.eps!r}; expected a number, 0 or more")

    @property
    def values(self) -> dict[str, Value]:
        """Rate, decay and both betas."""
        return {**super().values, "beta1": self.betas[0], "beta2": self.betas[1]}

    def slots(self, parameter: Tensor) -> dict[str, Tensor]:
        """Two averages and a counter."""
        fused, _ = fused_and_foreach(self.implementation)
        device = parameter.device if fused else None
        return {
            "step": torch.zeros((), dtype=torch.float32, device=device),
            "average": torch.zeros_like(parameter),
            "average_square": torch.zeros_like(parameter),
        }

    def update(
        self,
        parameters: list[Tensor],
        gradients: list[Tensor],
        slots: dict[str, list[Tensor]],
        values: Mapping[str, float],
    ) -> None:
        """Call torch's functional AdamW."""
        fused, foreach = fused_and_foreach(self.implementation)
        adamw(
            parameters,
            gradients,
            slots["average"],
            slots["average_square"],
            [],
            slots["step"],
            fused=fused,
            foreach=foreach,
            amsgrad=False,
            beta1=values["beta1"],
            beta2=values["beta2"],
            lr=values["rate"],
            weight_decay=values["decay"],
            eps=self.eps,
            maximize=False,
        )
