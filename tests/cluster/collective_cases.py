"""Each collective with what it means on one process, as functions of all ranks' tensors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.cluster import (
    Communicator,
    HaloExchange,
    Mesh,
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    halo_exchange,
    join,
    permute,
    reduce_scatter,
    take,
    to_device,
)

SIZES = (2, 3, 1, 2)


@dataclass(frozen=True)
class Case:
    """A collective, its twin on one process, and the shape of a rank's tensor."""

    shape: Callable[[int], tuple[int, ...]]
    collective: Callable[[Tensor, Communicator], Tensor]
    twin: Callable[[Sequence[Tensor]], list[Tensor]]


def same(*shape: int) -> Callable[[int], tuple[int, ...]]:
    return lambda rank: shape


def on_all(make: Callable[[Sequence[Tensor]], Tensor]):
    return lambda xs: [make(xs) for _ in xs]


def permuted(targets: dict[int, int]):
    back = {target: source for source, target in targets.items()}
    return lambda xs: [
        xs[back[rank]] if rank in back else torch.zeros_like(x) for rank, x in enumerate(xs)
    ]


def turned(xs: Sequence[Tensor]) -> list[Tensor]:
    """Cut along the last dim, joined along the first."""
    return [torch.cat([x.split((2, 1, 1, 1), 1)[rank] for x in xs]) for rank in range(len(xs))]


HALO = {"mesh": "2x2", "size": (5, 6), "margin": 2, "periodic": (True, False)}
BLOCKS = Mesh("2x2").blocks((5, 6))


def extended(xs: Sequence[Tensor]) -> list[Tensor]:
    whole = join(xs, BLOCKS)
    return [take(whole, block.padded(2, (True, False))) for block in BLOCKS]


CASES = {
    "all_reduce sum": Case(same(3, 2), all_reduce, on_all(sum)),
    "all_reduce mean": Case(
        same(3, 2),
        lambda x, c: all_reduce(x, c, "mean"),
        on_all(lambda xs: sum(xs) / len(xs)),
    ),
    "all_reduce max": Case(
        same(3, 2),
        lambda x, c: all_reduce(x, c, "max"),
        on_all(lambda xs: torch.stack(list(xs)).amax(0)),
    ),
    "all_gather": Case(same(3, 2), all_gather, on_all(lambda xs: torch.cat(list(xs)))),
    "all_gather dim": Case(
        same(3, 2),
        lambda x, c: all_gather(x, c, -1),
        on_all(lambda xs: torch.cat(list(xs), -1)),
    ),
    "all_gather uneven": Case(
        lambda rank: (2, SIZES[rank]),
        lambda x, c: all_gather(x, c, 1, SIZES),
        on_all(lambda xs: torch.cat(list(xs), 1)),
    ),
    "reduce_scatter": Case(same(8, 2), reduce_scatter, lambda xs: list(sum(xs).split(2))),
    "reduce_scatter mean": Case(
        same(2, 8),
        lambda x, c: reduce_scatter(x, c, 1, "mean"),
        lambda xs: list((sum(xs) / 4).split(2, 1)),
    ),
    "reduce_scatter uneven": Case(
        same(3, 6),
        lambda x, c: reduce_scatter(x, c, 1),
        lambda xs: list(sum(xs).split((2, 2, 1, 1), 1)),
    ),
    "reduce_scatter sizes": Case(
        same(8),
        lambda x, c: reduce_scatter(x, c, sizes=SIZES),
        lambda xs: list(sum(xs).split(SIZES)),
    ),
    "all_to_all": Case(
        same(4, 2),
        all_to_all,
        lambda xs: [torch.stack([x[rank] for x in xs]) for rank in range(4)],
    ),
    "all_to_all uneven": Case(
        lambda rank: (SIZES[rank], 5),
        lambda x, c: all_to_all(x, c, 1, 0, concat_sizes=SIZES),
        turned,
    ),
    "broadcast": Case(same(3, 2), lambda x, c: broadcast(x, c, 2), on_all(lambda xs: xs[2])),
    "permute ring": Case(
        same(3, 2),
        lambda x, c: permute(x, c, {r: (r + 1) % 4 for r in range(4)}),
        permuted({r: (r + 1) % 4 for r in range(4)}),
    ),
    "permute some": Case(
        same(3), lambda x, c: permute(x, c, {0: 2, 1: 1}), permuted({0: 2, 1: 1})
    ),
    "to_device": Case(
        same(3, 2), lambda x, c: to_device(x, c, target=3, source=1), permuted({1: 3})
    ),
    "halo_exchange": Case(
        lambda rank: (2, *BLOCKS[rank].size),
        lambda x, c: halo_exchange(x, HaloExchange(c, **HALO)),
        extended,
    ),
}
