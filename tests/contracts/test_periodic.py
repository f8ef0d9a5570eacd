"""Checks on the published schedule."""

import threading

import pytest

from hotgrid.contracts import (
    ContractError,
    PeriodicContract,
    Schedule,
    assert_shape_periodically,
)
from hotgrid.errors import ArgumentError

# From the reference implementation: 2,500 calls, longest period 1,000.
PUBLISHED = [*range(11), 12, 16, 24, 40, 72, 136, 264, 520, 1032, 2032]


def test_the_published_schedule():
    schedule = Schedule()
    assert [call for call in range(2500) if schedule.due()] == PUBLISHED


def test_a_short_longest_period():
    schedule = Schedule(3)
    assert [call for call in range(25) if schedule.due()] == [*range(11), 12, 15, 18, 21, 24]
    schedule = Schedule(1)
    assert all(schedule.due() for _ in range(50))
    with pytest.raises(ArgumentError, match="`longest` must be at least 1, got 0"):
        Schedule(0)


def caught_calls(check) -> list[int]:
    hits = []
    for call in range(2500):
        try:
            check()
        except ContractError:
            hits.append(call)
    return hits


def test_a_periodic_contract_keeps_the_schedule():
    contract = PeriodicContract("b 3")
    assert caught_calls(lambda: contract.check((2, 4))) == PUBLISHED
    fine = PeriodicContract("b n*p", longest=5)
    assert caught_calls(lambda: fine.check((2, 12), {"p": 4})) == []


def test_each_place_has_its_own_schedule():
    def first():
        assert_shape_periodically("b 3", (2, 4))

    def second():
        assert_shape_periodically("b 3", (2, 4))

    assert caught_calls(first) == PUBLISHED
    assert caught_calls(second) == PUBLISHED


def test_threads_share_one_schedule():
    schedule = Schedule()
    due = []
    threads = [
        threading.Thread(target=lambda: due.append(sum(schedule.due() for _ in range(500))))
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # 2,500 calls in all. Races move checks by a call or two; they neither stop nor pile up.
    assert abs(sum(due) - len(PUBLISHED)) <= 2 * len(threads)
