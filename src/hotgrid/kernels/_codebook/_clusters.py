"""k-means, weighted: what all codebooks are learned with."""

import torch
from torch import Tensor

_PASSES = 12
_AT_ONCE = 2**20  # distances: they stay in the cache


def nearest(points: Tensor, weights: Tensor, centres: Tensor) -> Tensor:
    """Return for each point `[n, d]` the centre `[k, d]` that is nearest.

    The distance is the sum of `weights * (point - centre)**2`, weights `[n, d]` or `[d]`.
    """
    step = max(1, _AT_ONCE // max(1, centres.shape[0]))
    squares, twice = (centres**2).T, -2 * centres.T
    if weights.ndim == 1:
        own, mixed = weights @ squares, weights[:, None] * twice
        away = (torch.addmm(own, some, mixed) for some in points.split(step))
    else:
        both = zip(points.split(step), weights.split(step), strict=True)
        away = (its @ squares + (some * its) @ twice for some, its in both)
    # Twice as fast as argmin.
    return torch.cat([each.min(1).indices for each in away])


def means(points: Tensor, weights: Tensor, ids: Tensor, old: Tensor) -> Tensor:
    """Return the weighted mean of the points of each id; an id without any keeps its old."""
    weights = weights.expand_as(points)
    total = torch.zeros_like(old).index_add_(0, ids, weights)
    sums = torch.zeros_like(old).index_add_(0, ids, weights * points)
    return torch.where(total > 0, sums / total.clamp_min(1e-30), old)


def clusters(points: Tensor, weights: Tensor, k: int, draw: torch.Generator) -> Tensor:
    """Return `k` centres `[k, d]` of points `[n, d]`, started apart from each other."""
    centres = _spread(points, weights, min(k, points.shape[0]), draw)
    for _ in range(_PASSES):
        ids = nearest(points, weights, centres)
        moved = means(points, weights, ids, centres)
        if torch.equal(moved, centres):
            break
        centres = moved
    if centres.shape[0] < k:
        centres = torch.cat([centres, centres[:1].expand(k - centres.shape[0], -1)])
    return centres


def _spread(points: Tensor, weights: Tensor, k: int, draw: torch.Generator) -> Tensor:
    """Draw each start with a chance that grows with the distance to those drawn before."""
    weights = weights.expand_as(points)
    first = int(torch.randint(points.shape[0], (), generator=draw, device=draw.device))
    chosen, distance = [first], points.new_full(points.shape[:1], float("inf"))
    for _ in range(k - 1):
        gap = points - points[chosen[-1]]
        distance = torch.minimum(distance, (weights * gap * gap).sum(1))
        # In float64 and by a sum: torch.multinomial takes no more than 2^24 of them.
        heap = distance.double().cumsum(0)
        if heap[-1] <= 0:
            break
        at = heap[-1] * torch.rand((), generator=draw, dtype=heap.dtype, device=draw.device)
        chosen.append(min(int(torch.searchsorted(heap, at)), points.shape[0] - 1))
    return points[chosen]
