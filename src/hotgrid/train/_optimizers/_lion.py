"""Lion: the sign of an average."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.tensors._torch_private import (
    foreach_add_,
    foreach_lerp,
    foreach_lerp_,
    foreach_mul_,
    foreach_sign_,
)

from ._spec import ElementwiseSpec, Value


@dataclass(frozen=True, kw_only=True)
class Lion(ElementwiseSpec):
    """Lion of Chen et al. 2023: every element moves by the rate, with half of Adam's state.

    Rates are usually 3 to 10 times smaller than AdamW's, and decay as much larger.

    Attributes:
        betas: The share of the average in the update, and in the next average.

    Example:
        >>> list(Lion(rate=1e-4).slots(torch.ones(3)))
        ['average']
    """

    betas: tuple[Value, Value] = (0.9, 0.99)

    @property
    def values(self) -> dict[str, Value]:
        """Rate, decay and both betas."""
        return {**super().values, "beta1": self.betas[0], "beta2": self.betas[1]}

    def slots(self, parameter: Tensor) -> dict[str, Tensor]:
        """One average."""
        return {"average": torch.zeros_like(parameter)}

    def update(
        self,
        parameters: list[Tensor],
        gradients: list[Tensor],
        slots: dict[str, list[Tensor]],
        values: Mapping[str, float],
    ) -> None:
        """Move by the sign of the average of average and gradient."""
        directions = foreach_lerp(slots["average"], gradients, 1 - values["beta1"])
        foreach_sign_(directions)
        foreach_mul_(parameters, 1 - values["rate"] * values["decay"])
        foreach_add_(parameters, directions, alpha=-values["rate"])
        foreach_lerp_(slots["average"], gradients, 1 - values["beta2"])
