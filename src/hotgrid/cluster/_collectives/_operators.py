"""The operators of the differentiable collectives: forward, backward, and result shapes.

Every transpose is another collective of this file, so gradients have gradients.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from hotgrid.cluster._block import Block
from hotgrid.cluster._communicator import Communicator, Message, plain

from ._operator import Operator

_FEW = 256


def _copy(x: Tensor) -> Tensor:
    return x.clone(memory_format=torch.contiguous_format)


def _like(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


# all_reduce


def _all_reduce(x: Tensor, op: str, communicator: Communicator) -> Tensor:
    communicator.agree("all_reduce", x.dtype, x.shape, op)
    if op == "max" and x.is_floating_point():
        return _largest(x, communicator)
    out = _copy(x)
    communicator.all_reduce(out, "max" if op == "max" else "sum")
    return out.div_(communicator.size) if op == "mean" else out


def _largest(x: Tensor, communicator: Communicator) -> Tensor:
    """The largest over ranks, and NaN where one has NaN.

    Backends do not agree on the order of NaN, but on that of integers: the bits of a
    float have its order, once those of negative ones are inverted.
    """
    wide = x if x.dtype == torch.float64 else x.float()
    kind = torch.int64 if x.dtype == torch.float64 else torch.int32
    # There are two kinds of NaN, and only the positive one is above all.
    bits = _copy(torch.where(wide.isnan(), torch.nan, wide)).view(kind)
    turned = torch.iinfo(kind).max
    order = torch.where(bits < 0, bits ^ turned, bits)
    communicator.all_reduce(order, "max")
    return torch.where(order < 0, order ^ turned, order).view(wide.dtype).to(x.dtype)


def _all_reduce_back(
    g: Tensor, kept: Sequence[Tensor], op: str, communicator: Communicator
) -> Tensor:
    if op != "max":
        return ALL_REDUCE(g, op, communicator)
    x, largest = kept
    mine = (x == largest).to(g.dtype)
    total, ties = ALL_REDUCE(torch.stack([g, mine]), "sum", communicator)
    return mine * total / ties


ALL_REDUCE = Operator(
    "all_reduce",
    "str op",
    _all_reduce,
    lambda x, op, c: _like(x),
    _all_reduce_back,
    keeps=lambda op, c: op == "max",
)


# all_gather and reduce_scatter: transposes of each other


def _all_gather(
    x: Tensor, dim: int, sizes: Sequence[int], communicator: Communicator
) -> Tensor:
    fixed = (*x.shape[:dim], -1, *x.shape[dim + 1 :])
    communicator.agree("all_gather", x.dtype, fixed, "dim=", dim, "sizes=", tuple(sizes))
    rows, longest = x.movedim(dim, 0), max(sizes)
    if min(sizes) == longest:
        return communicator.all_gather(rows).flatten(0, 1).movedim(0, dim).contiguous()
    padded = rows.new_zeros((longest, *rows.shape[1:]))
    padded[: len(rows)] = rows
    parts = communicator.all_gather(padded)
    owned = [part[:count] for part, count in zip(parts, sizes, strict=True)]
    return torch.cat(owned).movedim(0, dim).contiguous()


def _gathered(x: Tensor, dim: int, sizes: Sequence[int], communicator: Communicator) -> Tensor:
    return x.new_empty((*x.shape[:dim], sum(sizes), *x.shape[dim + 1 :]))


ALL_GATHER = Operator(
    "all_gather",
    "int dim, SymInt[] sizes",
    _all_gather,
    _gathered,
    lambda g, kept, dim, sizes, c: REDUCE_SCATTER(g, dim, sizes, c),
)


def _reduce_scatter(
    x: Tensor, dim: int, sizes: Sequence[int], communicator: Communicator
) -> Tensor:
    facts = (x.dtype, x.shape, "dim=", dim, "sizes=", tuple(sizes))
    communicator.agree("reduce_scatter", *facts)
    rows, longest = x.movedim(dim, 0), max(sizes)
    if min(sizes) == longest:
        parts = rows.unflatten(0, (len(sizes), longest))
    else:
        parts = rows.new_zeros((len(sizes), longest, *rows.shape[1:]))
        for part, piece in zip(parts, rows.split(list(sizes)), strict=True):
            part[: len(piece)] = piece
    own = communicator.reduce_scatter(parts)[: sizes[communicator.rank]]
    # Never the buffer of the communicator itself, which is longer than the result.
    return _copy(own.movedim(0, dim)) if len(own) < longest or dim else own


def _scattered(x: Tensor, dim: int, sizes: Sequence[int], communicator: Communicator) -> Tensor:
    own = sizes[communicator.rank]
    return x.new_empty((*x.shape[:dim], own, *x.shape[dim + 1 :]))


REDUCE_SCATTER = Operator(
    "reduce_scatter",
    "int dim, SymInt[] sizes",
    _reduce_scatter,
    _scattered,
    lambda g, kept, dim, sizes, c: ALL_GATHER(g, dim, sizes, c),
)


# all_to_all: its own transpose, with the roles of both dims exchanged


def _all_to_all(
    x: Tensor,
    split_dim: int,
    concat_dim: int,
    split_sizes: Sequence[int],
    concat_sizes: Sequence[int],
    communicator: Communicator,
) -> Tensor:
    cut = (split_dim, concat_dim)
    fixed = tuple(-1 if dim in cut else n for dim, n in enumerate(x.shape))
    # Along one dim each pair of ranks may have its own size; along two, sizes are common.
    sizes = None if split_dim == concat_dim else (tuple(split_sizes), tuple(concat_sizes))
    communicator.agree("all_to_all", x.dtype, fixed, "dims=", cut, "sizes=", sizes)
    sent = [part.reshape(-1) for part in plain(x).split(list(split_sizes), split_dim)]
    shapes = []
    for count in concat_sizes:
        shape = list(x.shape)
        shape[split_dim] = split_sizes[communicator.rank]
        shape[concat_dim] = count
        shapes.append(torch.Size(shape))
    counts = [shape.numel() for shape in shapes]
    flat = communicator.all_to_all(torch.cat(sent), [len(each) for each in sent], counts)
    parts = [each.view(shape) for each, shape in zip(flat.split(counts), shapes, strict=True)]
    return torch.cat(parts, concat_dim)


def _exchanged(
    x: Tensor,
    split_dim: int,
    concat_dim: int,
    split_sizes: Sequence[int],
    concat_sizes: Sequence[int],
    communicator: Communicator,
) -> Tensor:
    shape = list(x.shape)
    shape[split_dim] = split_sizes[communicator.rank]
    shape[concat_dim] = sum(concat_sizes)
    return x.new_empty(shape)


ALL_TO_ALL = Operator(
    "all_to_all",
    "int split_dim, int concat_dim, SymInt[] split_sizes, SymInt[] concat_sizes",
    _all_to_all,
    _exchanged,
    lambda g, kept, split_dim, concat_dim, split_sizes, concat_sizes, c: ALL_TO_ALL(
        g, concat_dim, split_dim, concat_sizes, split_sizes, c
    ),
)


# broadcast and reduce: transposes of each other


def _broadcast(x: Tensor, source: int, communicator: Communicator) -> Tensor:
    communicator.agree("broadcast", x.dtype, x.shape, "source=", source)
    out = _copy(x) if communicator.rank == source else _like(x)
    communicator.broadcast(out, source)
    return out


def _reduce(x: Tensor, target: int, communicator: Communicator) -> Tensor:
    communicator.agree("reduce", x.dtype, x.shape, "target=", target)
    out = _copy(x)
    communicator.reduce(out, target)
    return out if communicator.rank == target else out.zero_()


BROADCAST = Operator(
    "broadcast",
    "int source",
    _broadcast,
    lambda x, source, c: _like(x),
    lambda g, kept, source, c: REDUCE(g, source, c),
)

REDUCE = Operator(
    "reduce",
    "int target",
    _reduce,
    lambda x, target, c: _like(x),
    lambda g, kept, target, c: BROADCAST(g, target, c),
)


# permute


def _permute(x: Tensor, targets: Sequence[int], communicator: Communicator) -> Tensor:
    """`targets` has for each rank where its tensor goes, or -1."""
    communicator.agree("permute", x.dtype, x.shape, "targets=", tuple(targets))
    rank = communicator.rank
    target = targets[rank]
    if target == rank:
        return _copy(x)
    sends = (Message(plain(x), target),) if target >= 0 else ()
    if rank in targets:
        out = _like(x)
        communicator.post(sends, (Message(out, targets.index(rank)),)).wait()
        return out
    if not sends:
        return _nothing(x)
    pending = communicator.post(sends, ())
    out = _nothing(x)
    pending.wait()
    return out


def _nothing(x: Tensor) -> Tensor:
    """Zeros for ranks that get nothing; large ones share one element in memory."""
    # Two operations cost more than a few zeros.
    if x.numel() > _FEW:
        return x.new_zeros(()).expand_as(x)
    return torch.zeros_like(x, memory_format=torch.contiguous_format)


def _permuted(x: Tensor, targets: Sequence[int], communicator: Communicator) -> Tensor:
    return _like(x) if communicator.rank in targets else _nothing(x)


def _back(targets: Sequence[int]) -> list[int]:
    return [
        list(targets).index(rank) if rank in targets else -1 for rank in range(len(targets))
    ]


PERMUTE = Operator(
    "permute",
    "int[] targets",
    _permute,
    _permuted,
    lambda g, kept, targets, c: PERMUTE(g, _back(targets), c),
)


# extend and fold: transposes of each other


def _sized(x: Tensor, block: Block) -> Tensor:
    return x.new_empty((*x.shape[: x.ndim - len(block.size)], *block.size))


EXTEND = Operator(
    "extend",
    "",
    lambda x, halo: halo.extend(x),
    lambda x, halo: _sized(x, halo.padded),
    lambda g, kept, halo: FOLD(g, halo),
)

FOLD = Operator(
    "fold",
    "",
    lambda x, halo: halo.fold(x),
    lambda x, halo: _sized(x, halo.block),
    lambda g, kept, halo: EXTEND(g, halo),
)
