"""Weighted k-means, and books of sub-vectors learned with it."""

import torch
from torch import Tensor

from hotgrid.kernels._codebook._coded import blocked

_PASSES = 12
_AT_ONCE = 2**20  # distances: they stay in the cache
_SAMPLE = 2**15  # sub-vectors that books are learned from
_PAIR_PASSES = 10
_CODES = 16


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
    """Return the weighted mean of the points of each id; ids without points keep theirs."""
    weights = weights.expand_as(points)
    total = torch.zeros_like(old).index_add_(0, ids, weights)
    sums = torch.zeros_like(old).index_add_(0, ids, weights * points)
    return torch.where(total > 0, sums / total.clamp_min(1e-30), old)


def clusters(points: Tensor, weights: Tensor, k: int, draw: torch.Generator) -> Tensor:
    """Return `k` centres `[k, d]` of points `[n, d]`, initialized by k-means++."""
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
    """k-means++: the probability of a start grows with its distance to the others."""
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


def subvectors(
    weight: Tensor, importance: Tensor, width: int, books: int
) -> tuple[Tensor, Tensor]:
    """Return the codes of a matrix and its table of shape `[books, width, 16]`.

    Books are learned in pairs on the residual of earlier pairs. Within a pair all 256 sums are
    tried for each sub-vector.
    """
    rows, cols = weight.shape
    rest = weight.reshape(-1, width).clone()
    matters = importance.reshape(-1, width)
    # With equal weights distances are computed twice as fast.
    alike = bool((matters == matters[0, 0]).all())
    matters = matters[0] if alike else matters.repeat(rows, 1)
    draw = torch.Generator(weight.device).manual_seed(0)
    count = min(_SAMPLE, rest.shape[0])
    some = torch.randint(rest.shape[0], (count,), generator=draw, device=draw.device)
    its = matters if alike else matters[some]
    codes, table = [], []
    while len(table) < books:
        learned = _learned(rest[some], its, min(2, books - len(table)), draw)
        chosen = _chosen(rest, matters, learned)
        for book, code in zip(learned, chosen, strict=True):
            rest -= book[code]
            codes.append(code.view(rows, cols // width))
            table.append(book.T)
    return blocked(torch.cat(codes, 1)), torch.stack(table).contiguous()


def _learned(
    points: Tensor, weights: Tensor, books: int, draw: torch.Generator
) -> list[Tensor]:
    first = clusters(points, weights, _CODES, draw)
    if books == 1:
        return [first]
    left = points - first[nearest(points, weights, first)]
    pair = [first, clusters(left, weights, _CODES, draw)]
    for _ in range(_PAIR_PASSES):
        chosen = _chosen(points, weights, pair)
        for one, other in ((0, 1), (1, 0)):
            left = points - pair[other][chosen[other]]
            pair[one] = means(left, weights, chosen[one], pair[one])
    return pair


def _chosen(points: Tensor, weights: Tensor, books: list[Tensor]) -> list[Tensor]:
    if len(books) == 1:
        return [nearest(points, weights, books[0])]
    sums = (books[0][:, None] + books[1][None]).flatten(0, 1)
    both = nearest(points, weights, sums)
    return [both // _CODES, both % _CODES]
