"""`CrossAttention`: between the bytes and the vectors of patches."""

import torch
from torch import Tensor, nn

from hotgrid.contracts import checked
from hotgrid.nn import RMSNorm

from ._patch_index import PatchIndex


class CrossAttention(nn.Module):
    """Attention from vectors of patches to their bytes, or from bytes to such vectors.

    A byte belongs to one patch, so scores exist for pairs of a byte and a vector of its patch
    only: the work grows with the bytes, not with bytes times patches. The input is added
    to the output, and the caller adds it once more, as in the published models.

    Args:
        size: The size of bytes and of vectors.
        heads: How many heads.
        eps: Added under the root of norms.
    """

    def __init__(self, size: int, heads: int, *, eps: float) -> None:
        super().__init__()
        self.size, self.heads, self.scale = size, heads, (size // heads) ** -0.5
        self.q_norm = RMSNorm(size, eps=eps)
        self.k_norm = RMSNorm(size, eps=eps)
        self.q = nn.Linear(size, size, bias=False)
        self.k = nn.Linear(size, size, bias=False)
        self.v = nn.Linear(size, size, bias=False)
        self.out = nn.Linear(size, size, bias=False)

    @checked(vectors="b p k size", x="b t size", bind="self.size", returns="b p k size")
    def pool(self, vectors: Tensor, x: Tensor, index: PatchIndex) -> Tensor:
        """Return the vectors of patches after they attended to the bytes of their patch."""
        q, k, v = self._projected(vectors, x)
        # A place more, for bytes beyond all patches.
        shape = (len(x), index.patches + 1, *q.shape[2:])
        own = index.own[..., None, None]
        mine = _taken(nn.functional.pad(q, (0, 0, 0, 0, 0, 0, 0, 1)), index.own)
        scores = (mine * k[:, :, None]).sum(-1) * self.scale
        where = own.expand_as(scores)
        highest = scores.new_full(shape[:-1], -torch.inf)
        highest = highest.scatter_reduce(1, where, scores.detach(), "amax")
        weights = (scores - highest.gather(1, where)).exp()
        total = weights.new_zeros(shape[:-1]).scatter_add(1, where, weights)
        share = (weights / total.gather(1, where))[..., None] * v[:, :, None]
        found = share.new_zeros(shape).scatter_add(1, own[..., None].expand_as(share), share)
        return self.out(found[:, :-1].flatten(-2)) + vectors

    @checked(vectors="b p k size", x="b t size", bind="self.size", returns="b t size")
    def spread(self, x: Tensor, vectors: Tensor, index: PatchIndex) -> Tensor:
        """Return bytes after they attended to the vectors of the patch that they read."""
        q, k, v = self._projected(x, vectors)
        keys, values = _taken(k, index.read), _taken(v, index.read)
        scores = (q[:, :, None] * keys).sum(-1) * self.scale
        found = (scores.softmax(2)[..., None] * values).sum(2)
        return self.out(found.flatten(-2)) + x

    def _projected(self, queries: Tensor, others: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        others = self.k_norm(others)
        found = (self.q(self.q_norm(queries)), self.k(others), self.v(others))
        q, k, v = (each.unflatten(-1, (self.heads, -1)) for each in found)
        return q, k, v


def _taken(of_patches: Tensor, index: Tensor) -> Tensor:
    """The row of the patch of each byte: `(b, p, ...)` to `(b, t, ...)`."""
    rows = torch.arange(len(index), device=index.device)[:, None]
    return of_patches[rows, index]
