"""The streaming shuffle."""

import itertools

import pytest
from hypothesis import given, strategies as st

from hotgrid.data import ShuffleBuffer
from hotgrid.errors import ArgumentError


@given(st.integers(0, 50), st.integers(1, 20), st.integers(0, 5), st.data())
def test_everything_comes_once(count, size, seed, data):
    fill_rate = data.draw(st.integers(1, size))
    buffer = ShuffleBuffer(size, fill_rate, seed)
    assert sorted(buffer.shuffled(range(count))) == list(range(count))


@given(st.integers(1, 20), st.integers(1, 40))
def test_no_item_comes_before_it_can_be_in_the_buffer(size, count):
    for place, item in enumerate(ShuffleBuffer(size, size, 3).shuffled(range(count))):
        assert item < place + size


def test_a_low_fill_rate_reads_little_before_the_first_item():
    read = []
    source = (read.append(item) or item for item in itertools.count())
    next(ShuffleBuffer(100, 3).shuffled(source))
    assert len(read) == 3


def test_a_buffer_of_one_keeps_the_order():
    assert list(ShuffleBuffer(1, 1).shuffled(range(20))) == list(range(20))


def test_the_order_depends_on_the_seed_alone():
    orders = [list(ShuffleBuffer(16, 16, seed).shuffled(range(64))) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_every_place_is_drawn_about_equally_often():
    """A buffer that is filled first draws its first item uniformly: chi-square, 9 degrees."""
    firsts = [next(ShuffleBuffer(10, 10, seed).shuffled(range(10))) for seed in range(2000)]
    counts = [firsts.count(item) for item in range(10)]
    # The value that chance exceeds once in a million.
    assert sum((count - 200) ** 2 / 200 for count in counts) < 45.1


def test_it_continues_from_items_and_draws():
    whole = list(ShuffleBuffer(8, 2, 5).shuffled(range(40)))
    source = iter(range(40))
    first = ShuffleBuffer(8, 2, 5)
    begun = list(itertools.islice(first.shuffled(source), 11))
    second = ShuffleBuffer(8, 2, 5)
    second.items, second.draws = list(first.items), first.draws
    assert begun + list(second.shuffled(source)) == whole


@pytest.mark.parametrize(("size", "rate"), [(4, 0), (4, 5), (0, 1)])
def test_a_wrong_rate_is_named(size, rate):
    with pytest.raises(ArgumentError, match=f"`fill_rate` {rate}"):
        ShuffleBuffer(size, rate)
