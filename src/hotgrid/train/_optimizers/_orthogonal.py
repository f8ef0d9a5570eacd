"""The mathematics of Muon on stacks `[n, *shape]`, of matrices `[n, rows, columns]` where said.

Rate, decay and momentum come as numbers, or as tensors without dims where the functions are
compiled: a number would be compiled in.
"""

from typing import NamedTuple

import torch
from torch import Tensor

# a, b, c of x -> a x + b x^3 + c x^5, for every iteration.
Coefficients = tuple[tuple[float, float, float], ...]

# Amsel, Persson, Musco, Gower 2025 (arXiv 2505.16932): the best polynomials in turn, for
# singular values from 1e-3 on, with a margin of 2 % for low precision.
POLAR_EXPRESS: Coefficients = (
    (8.156554524902461, -22.48329292557795, 15.878769915207462),
    (4.042929935166739, -2.808917465908714, 0.5000178451051316),
    (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
    (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
    (2.3465413258596377, -1.7097828382687081, 0.42323551169305323),
)
# Jordan 2024: one polynomial, steep at zero; small singular values stay below 0.7.
NEWTON_SCHULZ: Coefficients = ((3.4445, -4.7750, 2.0315),)

Number = float | Tensor


class Recipe(NamedTuple):
    """The settings that do not change from step to step.

    Attributes:
        coefficients: The coefficients of the polynomials, one tuple for each iteration.
        margin: The norm is taken larger by this factor, so that rounding stays below 1.
        compute: The dtype of the iterations.
        nesterov: Whether momentum looks ahead.
        equilibrate: Whether rows are scaled to the same norm first.
        renormalise: Whether the norm is set to that of an orthogonal matrix.
        variance: The decay of NorMuon's averages; None is without.
        cautious: Whether decay skips elements that the update moves away from zero.
    """

    coefficients: Coefficients
    margin: float
    compute: torch.dtype
    nesterov: bool
    equilibrate: bool
    renormalise: bool
    variance: float | None
    cautious: bool


def directions(gradients: Tensor, average: Tensor, momentum: Number, recipe: Recipe) -> Tensor:
    """Move the average towards the gradients, and return the matrices to orthogonalise."""
    g, mean = _wide(gradients), _wide(average)
    mean = mean + (g - mean) * (1 - momentum)
    average.copy_(mean)
    return g + (mean - g) * momentum if recipe.nesterov else mean


def orthogonalise(matrices: Tensor, recipe: Recipe) -> Tensor:
    """Return matrices `[n, rows, columns]` with their singular values moved to about 1."""
    if recipe.equilibrate:
        rows = _norm(matrices, -1).clamp_min(1e-6)
        matrices = matrices * (_norm(matrices) / matrices.shape[-2] ** 0.5 / rows)
    norm = _norm(matrices) * recipe.margin
    x = (matrices / norm.clamp_min(1e-7)).to(recipe.compute)
    # The Gram matrix of the shorter side is the smaller one.
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    one = torch.eye(x.shape[-2], dtype=_wide(x).dtype, device=x.device)
    for a, b, c in recipe.coefficients:
        gram = x @ x.mT
        # With `a` on the diagonal only small matrices are read and written between products;
        # in bfloat16 the result is nearer to the exact one than that of a x + (b.. + c..) x.
        polynomial = a * one + b * _wide(gram) + c * _wide(gram @ gram)
        x = polynomial.to(x.dtype) @ x
    return x.mT if tall else x


def normalise(matrices: Tensor, variance: Tensor | None, recipe: Recipe) -> Tensor:
    """Set the norm of matrices, and even out rows or columns by running variance (NorMuon)."""
    x = _wide(matrices)
    if recipe.renormalise:
        x = x * (min(x.shape[-2:]) ** 0.5 / _norm(x).clamp_min(1e-6))
    if variance is None or recipe.variance is None:
        return x
    # One average for each index of the longer side.
    dim = -1 if variance.shape[-1] == 1 else -2
    mean = x.square().mean(dim, keepdim=True)
    variance.add_((mean - variance) * (1 - recipe.variance))
    scale = variance.clamp_min(1e-10).rsqrt()
    before = mean.sum((-2, -1), keepdim=True)
    after = (mean * scale.square()).sum((-2, -1), keepdim=True)
    # The update keeps the norm it had.
    return x * (scale * (before.sqrt() / after.sqrt().clamp_min(1e-10)))


def descend(
    parameters: Tensor, update: Tensor, rate: Number, shrink: Number, recipe: Recipe
) -> None:
    """Subtract `rate` times the update, and `shrink` times the parameters, in place."""
    x = _wide(parameters)
    kept = x * shrink
    if recipe.cautious:
        kept = kept * (update * x >= 0)
    parameters.copy_(x - kept - update * rate)


def whole_update(
    parameters: Tensor,
    gradients: Tensor,
    average: Tensor,
    variance: Tensor | None,
    momentum: Number,
    rate: Number,
    shrink: Number,
    recipe: Recipe,
) -> None:
    """Make one step of Muon on one rank; changes everything but the gradients."""
    x = directions(gradients, average, momentum, recipe)
    x = normalise(orthogonalise(x.flatten(2), recipe), variance, recipe)
    descend(parameters, x.reshape(parameters.shape), rate, shrink, recipe)


def _wide(x: Tensor) -> Tensor:
    """Low precision as float32; the rest unchanged."""
    return x if x.dtype == torch.float64 else x.float()


def _norm(x: Tensor, dim: int | tuple[int, int] = (-2, -1)) -> Tensor:
    return torch.linalg.vector_norm(_wide(x), dim=dim, keepdim=True)
