"""Data split among ranks, and a seed per rank."""

import pytest
import torch
from hypothesis import given, strategies as st

from hotgrid.cluster import rank_seed, shard_of
from hotgrid.errors import ArgumentError

COUNTS = st.integers(1, 60)
RANKS = st.integers(1, 9)
ORDER = [5, 4, 2, 6]
SEED = 411788715114236230


@given(COUNTS, RANKS, st.integers(0, 5), st.booleans())
def test_every_item_is_seen_exactly_once(items, size, epoch, shuffle):
    options = {"epoch": epoch, "shuffle": shuffle, "even": False}
    shards = [shard_of(items, rank, size, **options) for rank in range(size)]
    assert torch.cat(shards).sort().values.tolist() == list(range(items))


@given(COUNTS, RANKS)
def test_even_shards_are_equally_long_and_leave_nothing_out(items, size):
    shards = [shard_of(items, rank, size) for rank in range(size)]
    assert len({len(shard) for shard in shards}) == 1
    assert set(torch.cat(shards).tolist()) == set(range(items))
    assert len(torch.cat(shards)) < items + size


@given(COUNTS, RANKS, RANKS)
def test_ranks_together_see_one_order_however_many_they_are(items, few, many):
    def order(size):
        found = torch.full((items,), -1)
        for rank in range(size):
            found[rank::size] = shard_of(items, rank, size, seed=3, even=False)
        return found

    assert torch.equal(order(few), order(many))


def test_epochs_and_seeds_change_the_order_and_nothing_else_does():
    first = shard_of(50, 0, 2, epoch=1, seed=2)
    assert torch.equal(first, shard_of(50, 0, 2, epoch=1, seed=2))
    torch.manual_seed(99)
    assert torch.equal(first, shard_of(50, 0, 2, epoch=1, seed=2))
    for other in ({"epoch": 2, "seed": 2}, {"epoch": 1, "seed": 3}, {"epoch": 2, "seed": 1}):
        assert not torch.equal(first, shard_of(50, 0, 2, **other))


def test_the_order_is_the_one_that_is_written_down():
    """Runs are resumed on other machines."""
    assert shard_of(8, 0, 2).tolist() == ORDER
    assert rank_seed(0, 0) == SEED


def test_seeds_differ():
    seeds = {rank_seed(seed, rank) for seed in range(30) for rank in range(30)}
    assert len(seeds) == 900
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_what_cannot_be_shared():
    with pytest.raises(ArgumentError, match="`rank` 2 is not one of 2 ranks"):
        shard_of(5, 2, 2)
    with pytest.raises(ArgumentError, match="nothing to share"):
        shard_of(0, 0, 2)
