"""Codebooks of sub-vectors: 16 codes a book, sub-vectors are sums of one code of each."""

import torch
from torch import Tensor

from ._clusters import clusters, means, nearest
from ._coded import blocked

_SAMPLE = 2**15  # sub-vectors that books are learned from
_PASSES = 10
_CODES = 16


def subvectors(
    weight: Tensor, importance: Tensor, width: int, books: int
) -> tuple[Tensor, Tensor]:
    """Return the codes of a matrix and its table of shape `[books, width, 16]`.

    Books are learned in pairs on what the pairs before have left. Within a pair all 256
    sums are tried for each sub-vector, so it is as good as one book of that many, less the
    freedom that a sum does not have.
    """
    rows, cols = weight.shape
    rest = weight.reshape(-1, width).clone()
    matters = importance.reshape(-1, width)
    # Where all columns matter alike, distances are computed twice as fast.
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
    for _ in range(_PASSES):
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
