"""The differentiable collectives.

One convention of gradients holds for all of them: the loss is the sum of the losses of all
ranks, and every rank calls `backward` on its own. A gradient is then the derivative of that
sum. If all ranks compute the same loss, it is counted once for each rank: divide
it by `communicator.size`, or let one rank keep it and the others take 0 times theirs.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from hotgrid.cluster._communicator import Communicator
from hotgrid.cluster._halo import HaloExchange
from hotgrid.errors import ArgumentError
from hotgrid.tensors import expect_dim

from ._arguments import expect_op, expect_operands, expect_rank, expect_sizes, expected_cut
from ._operators import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    EXTEND,
    PERMUTE,
    REDUCE_SCATTER,
)


def all_reduce(
    x: Tensor, communicator: Communicator, op: Literal["sum", "mean", "max"] = "sum"
) -> Tensor:
    """Sum, average or take the largest of a tensor over all ranks.

    The largest of NaN and anything is NaN.

    Gradient: the gradients of all ranks are summed for `"sum"` and averaged for `"mean"`.
    For `"max"` their sum goes to the rank that has the largest value; ranks that share it
    get equal parts.

    Args:
        x: A tensor of the same shape on all ranks.
        communicator: The ranks.
        op: What is done, element by element.

    Returns:
        The same on every rank, shaped as `x`.

    Raises:
        ArgumentError: `op` is another word, or the dtype cannot do it.

    Example:
        >>> ranks = lambda c: all_reduce(torch.tensor([c.rank, 1.0]), c, "mean")
        >>> run_ranks(2, ranks)[0]
        tensor([0.5000, 1.0000])
    """
    expect_operands(x, communicator)
    expect_op(x, op, ("sum", "mean", "max"))
    return ALL_REDUCE(x, op, communicator)


def all_gather(
    x: Tensor, communicator: Communicator, dim: int = 0, sizes: Sequence[int] | None = None
) -> Tensor:
    """Put the tensors of all ranks one after the other, on every rank.

    Gradient: every rank gets the sum over ranks of the gradient of its own part, which is
    `reduce_scatter`.

    Args:
        x: The own part; shapes differ at most along `dim`.
        communicator: The ranks.
        dim: Along which dim parts are joined.
        sizes: The size along `dim` of every rank's part; needed where they differ.

    Returns:
        The joined parts, in the order of ranks.

    Raises:
        ArgumentError: `sizes` does not match the tensors.
        DimensionError: There is no such dim.

    Example:
        >>> ranks = lambda c: all_gather(torch.full((c.rank + 1,), c.rank), c, sizes=(1, 2))
        >>> run_ranks(2, ranks)[0]
        tensor([0, 1, 1])
    """
    expect_operands(x, communicator)
    dim = expect_dim(x, dim)
    if sizes is None:
        sizes = (x.shape[dim],) * communicator.size
    expect_sizes("sizes", sizes, communicator)
    rank = communicator.rank
    if sizes[rank] != x.shape[dim]:
        raise ArgumentError(
            f"`sizes` {tuple(sizes)} gives rank {rank} {sizes[rank]}, but its part has "
            f"{x.shape[dim]} along dim {dim}"
        )
    return ALL_GATHER(x, dim, sizes, communicator)


def reduce_scatter(
    x: Tensor,
    communicator: Communicator,
    dim: int = 0,
    op: Literal["sum", "mean"] = "sum",
    sizes: Sequence[int] | None = None,
) -> Tensor:
    """Sum or average a tensor over all ranks, and leave every rank its own part.

    Gradient: every rank gets the gradients of all parts, joined, which is `all_gather`;
    for `"mean"` divided by the number of ranks.

    Args:
        x: A tensor of the same shape on all ranks.
        communicator: The ranks.
        dim: Along which dim the result is cut.
        op: What is done, element by element.
        sizes: The size along `dim` of every rank's part; by default equal, and where
            that is not possible the first ranks get one more.

    Returns:
        The own part of the sum.

    Raises:
        ArgumentError: `op` is another word, the dtype cannot do it, or `sizes` does not fit.
        DimensionError: There is no such dim.

    Example:
        >>> run_ranks(2, lambda c: reduce_scatter(torch.arange(3.0), c))
        [tensor([0., 2.]), tensor([4.])]
    """
    expect_operands(x, communicator)
    expect_op(x, op, ("sum", "mean"))
    dim = expect_dim(x, dim)
    sizes = expected_cut(x, dim, sizes, communicator, "sizes")
    out = REDUCE_SCATTER(x, dim, sizes, communicator)
    return out / communicator.size if op == "mean" else out


def all_to_all(
    x: Tensor,
    communicator: Communicator,
    split_dim: int = 0,
    concat_dim: int = 0,
    *,
    split_sizes: Sequence[int] | None = None,
    concat_sizes: Sequence[int] | None = None,
) -> Tensor:
    """Split a tensor into one part for every rank, send them, and join what arrives.

    With two different dims this turns a tensor that is cut along one of them into one
    that is cut along the other.

    Gradient: the parts are sent back, which is `all_to_all` with the
    dims and sizes exchanged.

    Args:
        x: What is cut.
        communicator: The ranks.
        split_dim: Along which dim it is cut.
        concat_dim: Along which dim the incoming parts are joined.
        split_sizes: How much of `split_dim` goes to each rank; by default equal, and where
            that is not possible the first ranks get one more.
        concat_sizes: How much of `concat_dim` comes from each rank; needed where ranks
            differ in it.

    Returns:
        The parts for this rank, in the order of ranks.

    Raises:
        ArgumentError: `split_sizes` or `concat_sizes` does not match.
        DimensionError: There is no such dim.

    Example:
        >>> rows = lambda c: torch.arange(4).reshape(2, 2)[c.rank : c.rank + 1]
        >>> run_ranks(2, lambda c: all_to_all(rows(c), c, 1, 0))[0]
        tensor([[0],
                [2]])
    """
    expect_operands(x, communicator)
    split_dim, concat_dim = expect_dim(x, split_dim), expect_dim(x, concat_dim)
    split_sizes = expected_cut(x, split_dim, split_sizes, communicator, "split_sizes")
    if concat_sizes is None:
        same = split_dim == concat_dim
        count = split_sizes[communicator.rank] if same else x.shape[concat_dim]
        concat_sizes = (count,) * communicator.size
        # Compiled code does without: a graph contains no Python objects.
        if same and not torch.compiler.is_compiling():
            facts = (x.dtype, x.shape, "dim=", split_dim, "sizes=", tuple(split_sizes))
            communicator.agree("all_to_all", *facts)
    expect_sizes("concat_sizes", concat_sizes, communicator)
    return ALL_TO_ALL(x, split_dim, concat_dim, split_sizes, concat_sizes, communicator)


def broadcast(x: Tensor, communicator: Communicator, source: int = 0) -> Tensor:
    """Copy the tensor of one rank to all ranks.

    Gradient: the rank `source` gets the sum of the gradients of all ranks, the others 0.

    Args:
        x: A tensor of the same shape on all ranks; only that of `source` is read.
        communicator: The ranks.
        source: The rank that has it.

    Returns:
        The tensor of `source`, on every rank.

    Raises:
        ArgumentError: There is no such rank.

    Example:
        >>> run_ranks(2, lambda c: broadcast(torch.tensor(c.rank), c, source=1))
        [tensor(1), tensor(1)]
    """
    expect_operands(x, communicator)
    expect_rank("source", source, communicator)
    return BROADCAST(x, source, communicator)


def permute(x: Tensor, communicator: Communicator, targets: Mapping[int, int]) -> Tensor:
    """Send tensors from rank to rank.

    Gradient: each is sent back to where its tensor came from; a rank that sent nothing gets 0.

    Args:
        x: A tensor of the same shape on all ranks.
        communicator: The ranks.
        targets: Which rank sends to which, `{source: target}`. No target may appear twice.

    Returns:
        What was sent to this rank. If nothing was, zeros that may share one place in
        memory: copy them before writing into them.

    Raises:
        ArgumentError: There is no such rank, or two send to the same.

    Example:
        >>> run_ranks(2, lambda c: permute(torch.tensor(c.rank + 5), c, {0: 1}))
        [tensor(0), tensor(5)]
    """
    expect_operands(x, communicator)
    for source, target in targets.items():
        expect_rank("source", source, communicator)
        expect_rank("target", target, communicator)
    if len(set(targets.values())) < len(targets):
        raise ArgumentError(
            f"`targets` {dict(targets)} sends to one rank twice; use `all_reduce` for sums"
        )
    return PERMUTE(
        x, [targets.get(rank, -1) for rank in range(communicator.size)], communicator
    )


def to_device(x: Tensor, communicator: Communicator, target: int, source: int = 0) -> Tensor:
    """Move a tensor from the device of one rank to that of another.

    All ranks call it; those that neither send nor receive do nothing. It is `permute`
    with one pair. Between devices of one process, `x.to(device)` is differentiable already.

    Gradient: it goes back from `target` to `source`; the others get 0. For that the rank
    `source` must call `backward` too, on a loss that its result is part of.

    Args:
        x: A tensor of the same shape on all ranks; only that of `source` is read.
        communicator: The ranks.
        target: Where it goes.
        source: Where it is.

    Returns:
        The tensor of `source` on `target`; zeros elsewhere, as `permute` gives them.

    Raises:
        ArgumentError: There is no such rank.

    Example:
        >>> run_ranks(3, lambda c: to_device(torch.tensor(c.rank + 5), c, target=2))
        [tensor(0), tensor(0), tensor(5)]
    """
    expect_operands(x, communicator)
    expect_rank("source", source, communicator)
    expect_rank("target", target, communicator)
    targets = [-1] * communicator.size
    targets[source] = target
    return PERMUTE(x, targets, communicator)


def halo_exchange(x: Tensor, halo: HaloExchange) -> Tensor:
    """Put margins around the own block, filled with cells of the neighbours.

    Gradient: the gradient of every margin is added, at the rank that owns those cells, to
    the gradient of the cells themselves.

    Args:
        x: The own block, `[..., *halo.block.size]`.
        halo: The ranks, the grid and the margins.

    Returns:
        The block with its margins, `[..., *halo.padded.size]`.

    Raises:
        ArgumentError: `x` has another size than the block.

    Example:
        >>> halo = HaloExchange(SingleRank(), 1, (3,), margin=(1,))
        >>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> wide = halo_exchange(x, halo)
        >>> wide.tolist()
        [3.0, 1.0, 2.0, 3.0, 1.0]
        >>> wide.sum().backward()
        >>> x.grad
        tensor([2., 1., 2.])
    """
    if not isinstance(halo, HaloExchange):
        raise ArgumentError(f"`halo` must be a HaloExchange, got {halo!r}")
    return EXTEND(x, halo)
