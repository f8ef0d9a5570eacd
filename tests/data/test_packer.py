"""The packer against a slow one that looks at every waiting sequence."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hotgrid.data import Packer
from hotgrid.errors import ArgumentError

START = np.array([-1])
lengths = st.lists(st.integers(0, 25), max_size=60)


def sequences(sizes):
    """Sequences of which every element says where it comes from."""
    return [np.arange(size) + 1000 * number for number, size in enumerate(sizes)]


def slow_rows(texts, length, waiting, rest):
    """The rule in its words: the longest that fits, else the shortest is cut."""
    queue, rows = list(texts), []
    left: list[list[int]] = []

    def add(text):
        step = length - 1 if rest == "keep" else max(1, len(text))
        left.extend([-1, *text[at : at + step]] for at in range(0, len(text), step))

    while True:
        while queue and (len(left) < waiting or sum(map(len, left)) < length):
            add(list(queue.pop(0)))
        if sum(map(len, left)) < length:
            return rows
        row = []
        while len(row) < length:
            space = length - len(row)
            fitting = [text for text in left if len(text) <= space]
            chosen = max(fitting, key=len) if fitting else min(left, key=len)
            left = [text for text in left if text is not chosen]
            row += chosen[:space]
            if len(chosen) > space and rest == "keep":
                left.append([-1, *chosen[max(1, space) :]])
        rows.append(row)


@given(lengths, st.integers(2, 12), st.integers(1, 8), st.sampled_from(["keep", "drop"]))
@settings(deadline=None, max_examples=200)
def test_rows_are_those_of_the_slow_packer(sizes, length, waiting, rest):
    texts = sequences(sizes)
    packer = Packer(length, start=START, waiting=waiting, rest=rest)
    assert [row.tolist() for row in packer.rows(texts)] == slow_rows(
        texts, length, waiting, rest
    )


@given(lengths, st.integers(2, 12), st.integers(1, 8))
@settings(deadline=None, max_examples=100)
def test_nothing_is_lost_or_doubled_if_the_rest_is_kept(sizes, length, waiting):
    packer = Packer(length, start=START, waiting=waiting)
    rows = list(packer.rows(sequences(sizes)))
    packed = [int(value) for row in rows for value in row if value >= 0]
    waits = [int(value) for each in packer.state for value in each if value >= 0]
    whole = [int(value) for each in sequences(sizes) for value in each]
    assert sorted(packed + waits) == sorted(whole)
    assert packer.packed == len(packed)
    assert packer.dropped == 0


@given(lengths, st.integers(2, 12), st.integers(1, 8))
@settings(deadline=None, max_examples=100)
def test_what_is_dropped_is_counted(sizes, length, waiting):
    packer = Packer(length, start=START, waiting=waiting, rest="drop")
    rows = list(packer.rows(sequences(sizes)))
    packed = sum(int((row >= 0).sum()) for row in rows)
    waits = sum(len(each) - 1 for each in packer.state)
    assert packer.packed == packed
    assert packed + packer.dropped + waits == sum(sizes)


def test_every_row_begins_with_the_start():
    packer = Packer(7, start=np.array([-1, -2]), waiting=5)
    rows = list(packer.rows(sequences([3, 9, 1, 20, 4, 4, 2, 8])))
    assert len(rows) > 3
    assert all(row[:2].tolist() == [-1, -2] for row in rows)


def test_sequences_may_have_more_axes():
    start = np.array([[0, 0]])
    texts = [np.stack([text, text % 2], axis=1) for text in sequences([4, 3, 6, 2])]
    rows = list(Packer(5, start=start, waiting=2).rows(texts))
    assert all(row.shape == (5, 2) for row in rows)
    assert all(((row[:, 0] % 2) == row[:, 1]).all() for row in rows)


def test_packing_continues_from_its_state():
    texts = sequences([5, 9, 2, 7, 7, 1, 12, 3, 3, 8])
    whole = [row.tolist() for row in Packer(6, start=START, waiting=3).rows(texts)]
    first = Packer(6, start=START, waiting=3)
    source = iter(texts)
    rows = first.rows(source)
    begun = [next(rows).tolist() for _ in range(4)]
    second = Packer(6, start=START, waiting=3)
    second.state = first.state
    assert begun + [row.tolist() for row in second.rows(source)] == whole


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"length": 1}, "`length` 1"),
        ({"rest": "lose"}, "'lose'"),
        ({"waiting": 0}, "`waiting` must be at least 1, got 0"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(ArgumentError, match=words):
        Packer(**{"length": 8, "start": START, **options})
