"""Muon: momentum, orthogonalised."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from hotgrid.cluster import Communicator
from hotgrid.errors import ArgumentError, near

from ._orthogonal import NEWTON_SCHULZ, POLAR_EXPRESS, Recipe
from ._spec import Bound, OptimizerSpec, Value
from ._stacked import BoundMuon

# The step of an orthogonal update that suits matrices of every shape.
_SCALES: dict[str, Callable[[int, int], float]] = {
    "spectral": lambda rows, columns: math.sqrt(max(1.0, rows / columns)),
    "rms": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
    "none": lambda rows, columns: 1.0,
}
_COMPUTES = {"bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True, kw_only=True)
class Muon(OptimizerSpec):
    """Muon of Jordan et al. 2024: momentum with all singular values set to about 1.

    For matrices; the weights of convolutions are flattened to matrices. Embeddings, heads,
    norms and biases are better off with `AdamW`. Matrices of one shape are updated by one
    batched call, compiled on a GPU; where all have at most 67 million elements, a step is one
    CUDA graph. With several ranks each orthogonalises its share.

    Attributes:
        momentum: The share of the average in the next average.
        nesterov: Whether momentum looks ahead.
        method: `polar-express`, or `newton-schulz`.
        steps: Iterations, 1 to 5 of `polar-express`, any number of `newton-schulz`.
        variance: The decay of NorMuon's averages over rows or columns; None for none.
        cautious: Whether decay skips elements that the update moves away from zero.
        equilibrate: Whether rows are scaled to the same norm before.
        renormalise: Whether the norm is set to that of an orthogonal matrix.
        scale: How the rate depends on the shape: `spectral` is sqrt(max(1, rows / columns)),
            `rms` is 0.2 sqrt(max(rows, columns)), which suits the rates of AdamW; or `none`.
            Decay does not depend on the shape.
        compute: The dtype of the iterations; by default bfloat16 on a GPU, else float32.
        compiled: Whether to compile; by default on a GPU.

    Raises:
        ArgumentError: A setting is unknown or out of its range.

    Example:
        >>> Muon(rate=0.02, momentum=Warmup(steps=300, peak=0.95), decay=0.1).method
        'polar-express'
    """

    momentum: Value = 0.95
    nesterov: bool = True
    method: Literal["polar-express", "newton-schulz"] = "polar-express"
    steps: int = 5
    variance: float | None = None
    cautious: bool = False
    equilibrate: bool = False
    renormalise: bool = False
    scale: Literal["spectral", "rms", "none"] = "spectral"
    compute: Literal["bfloat16", "float32", "float64"] | None = None
    compiled: bool | None = None

    def __post_init__(self) -> None:
        _expect("method", self.method, ("polar-express", "newton-schulz"))
        _expect("scale", self.scale, tuple(_SCALES))
        if self.compute is not None:
            _expect("compute", self.compute, tuple(_COMPUTES))
        most = len(POLAR_EXPRESS) if self.method == "polar-express" else 100
        if not 1 <= self.steps <= most:
            raise ArgumentError(
                f"`steps` of Muon is {self.steps}; {self.method} has 1 to {most}"
            )
        if self.variance is not None and not 0 <= self.variance < 1:
            raise ArgumentError(
                f"`variance` of Muon is {self.variance}; expected 0 <= variance < 1, or None"
            )

    @property
    def values(self) -> dict[str, Value]:
        """Rate, decay and momentum."""
        return {**super().values, "momentum": self.momentum}

    def check(self, path: str, parameter: nn.Parameter) -> None:
        """Refuse a parameter that is not a matrix."""
        super().check(path, parameter)
        if parameter.ndim < 2:
            raise ArgumentError(
                f"Muon trains matrices, and `{path}` has the shape {tuple(parameter.shape)}; "
                "leave it to AdamW, such as with `[@rank=2]` in the selector"
            )
        if not parameter.numel():
            raise ArgumentError(
                f"Muon trains matrices, and `{path}` of shape {tuple(parameter.shape)} has no "
                "elements; give it the spec 'frozen'"
            )

    def bind(self, parameters: Mapping[str, nn.Parameter], ranks: Communicator) -> Bound:
        """Return the optimizer of these parameters, with a fresh state."""
        on_gpu = any(p.device.type == "cuda" for p in parameters.values())
        name = self.compute or ("bfloat16" if on_gpu else "float32")
        polar = self.method == "polar-express"
        recipe = Recipe(
            coefficients=POLAR_EXPRESS[: self.steps] if polar else NEWTON_SCHULZ * self.steps,
            margin=1.01 if polar else 1.0,
            compute=_COMPUTES[name],
            nesterov=self.nesterov,
            equilibrate=self.equilibrate,
            renormalise=self.renormalise,
            variance=self.variance,
            cautious=self.cautious,
        )
        return BoundMuon(parameters, recipe, _SCALES[self.scale], ranks, self.compiled)


def _expect(field: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ArgumentError(
            f"`{field}` of Muon is {value!r}; expected one of {', '.join(known)}"
            f"{near(value, known)}"
        )
