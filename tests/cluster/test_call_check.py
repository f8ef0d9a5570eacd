"""Ranks that make different calls: all of them raise, and none returns a wrong number."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from hotgrid.cluster import (
    Communicator,
    HaloExchange,
    Message,
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    permute,
    reduce_scatter,
    run_ranks,
    world,
)
from hotgrid.errors import ArgumentError, CommunicationError

from .forked_ranks import run_forked


def refusals(
    size: int, function: Callable[[Communicator], Any], *, checking: bool = False
) -> list[str]:
    """What every rank raised."""

    return run_ranks(size, lambda c: refusal(ArgumentError, function, c), checking=checking)


def refusal(
    kind: type[Exception], function: Callable[[Communicator], Any], c: Communicator
) -> str:
    """What it raised. `pytest.raises` would keep the frames, and with them the group."""
    try:
        function(c)
    except kind as error:
        return str(error)
    raise AssertionError("nothing was raised")


def said(*calls: str) -> list[str]:
    lines = [f"  rank {rank}: {call}" for rank, call in enumerate(calls)]
    return ["\n".join(["ranks make different calls:", *lines])] * len(calls)


ones = torch.ones
MISMATCHES = {
    "sum of two sizes": (
        lambda c: all_reduce(ones(3 + c.rank), c),
        "all_reduce, torch.float32, (3,), sum",
        "all_reduce, torch.float32, (4,), sum",
    ),
    "sum of two shapes with as many numbers": (
        lambda c: all_reduce(ones((3, 4) if c.rank else (2, 6)), c),
        "all_reduce, torch.float32, (2, 6), sum",
        "all_reduce, torch.float32, (3, 4), sum",
    ),
    "sum and mean": (
        lambda c: all_reduce(ones(3), c, "mean" if c.rank else "sum"),
        "all_reduce, torch.float32, (3,), sum",
        "all_reduce, torch.float32, (3,), mean",
    ),
    "the method, not the function": (
        lambda c: c.all_reduce(ones(3 + c.rank)),
        "all_reduce, torch.float32, (3,), sum",
        "all_reduce, torch.float32, (4,), sum",
    ),
    "parts of other sizes than said": (
        lambda c: all_gather(ones(3 + c.rank, 2), c),
        "all_gather, torch.float32, (-1, 2), dim=0, sizes=(3, 3)",
        "all_gather, torch.float32, (-1, 2), dim=0, sizes=(4, 4)",
    ),
    "parts of two dtypes": (
        lambda c: all_gather(ones(3, dtype=(torch.float32, torch.float64)[c.rank]), c),
        "all_gather, torch.float32, (-1,), dim=0, sizes=(3, 3)",
        "all_gather, torch.float64, (-1,), dim=0, sizes=(3, 3)",
    ),
    "a sum that is cut along two dims": (
        lambda c: reduce_scatter(ones(4, 4), c, dim=c.rank),
        "reduce_scatter, torch.float32, (4, 4), dim=0, sizes=(2, 2)",
        "reduce_scatter, torch.float32, (4, 4), dim=1, sizes=(2, 2)",
    ),
    "all to all of two sizes": (
        lambda c: all_to_all(ones(4 + 2 * c.rank, 2), c),
        "all_to_all, torch.float32, (4, 2), dim=0, sizes=(2, 2)",
        "all_to_all, torch.float32, (6, 2), dim=0, sizes=(3, 3)",
    ),
    "two sources": (
        lambda c: broadcast(ones(2), c, source=c.rank),
        "broadcast, torch.float32, (2,), source=0",
        "broadcast, torch.float32, (2,), source=1",
    ),
    "two ways": (
        lambda c: permute(ones(2), c, {0: 1, 1: 0} if c.rank else {0: 1}),
        "permute, torch.float32, (2,), targets=(1, -1)",
        "permute, torch.float32, (2,), targets=(1, 0)",
    ),
    "two calls": (
        lambda c: c.barrier() if c.rank else all_reduce(ones(3), c),
        "all_reduce, torch.float32, (3,), sum",
        "barrier",
    ),
    "margins of two dtypes": (
        lambda c: HaloExchange(c, "2", (8,), 1).exchange(
            ones(6, dtype=(torch.float32, torch.float64)[c.rank])
        ),
        "halo_exchange, ((torch.float32, ()),)",
        "halo_exchange, ((torch.float64, ()),)",
    ),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_a_mismatch_in_the_first_call_is_raised_on_all_ranks(name: str):
    call, *calls = MISMATCHES[name]
    assert refusals(2, call) == said(*calls)


def test_a_known_call_against_a_new_one_is_raised_on_all_ranks():
    def refused(stranger: int) -> list[str]:
        def differ(c: Communicator) -> None:
            all_reduce(ones(3), c)
            # Only one rank finds this call new; the others do not compare it by themselves.
            all_reduce(ones(4 if c.rank == stranger else 3), c)

        return refusals(3, differ)

    # They wait for each other for seconds; all at once.
    with ThreadPoolExecutor(3) as pool:
        for stranger, found in enumerate(pool.map(refused, range(3))):
            sizes = [4 if rank == stranger else 3 for rank in range(3)]
            assert found == said(*[f"all_reduce, torch.float32, ({n},), sum" for n in sizes])


def test_a_rank_that_went_ahead_names_the_call_it_made_then():
    def differ(c: Communicator) -> None:
        broadcast(ones(3), c)
        if c.rank == 0:
            # The source of a broadcast does not wait for the others.
            broadcast(ones(3), c)
        all_reduce(ones(5), c)

    first = "broadcast, torch.float32, (3,), source=0"
    assert refusals(2, differ) == said(first, "all_reduce, torch.float32, (5,), sum")


def test_after_a_mismatch_before_any_data_ranks_go_on():
    def rank(c: Communicator) -> list[float]:
        with pytest.raises(ArgumentError):
            all_reduce(ones(3 + c.rank), c)
        return all_reduce(ones(3), c).tolist()

    assert run_ranks(2, rank) == [[2.0] * 3] * 2


def test_after_a_mismatch_with_data_in_flight_the_group_is_refused():
    def rank(c: Communicator) -> str:
        all_reduce(ones(3), c)
        refusal(ArgumentError, lambda c: all_reduce(ones(3 + c.rank), c), c)
        return refusal(CommunicationError, lambda c: all_reduce(ones(3), c), c)

    for text in run_ranks(2, rank):
        assert "cannot be used any more, because of an earlier mismatch" in text
        assert "rank 1: all_reduce, torch.float32, (4,), sum" in text


def test_known_kinds_in_another_order_are_found_by_checking():
    def differ(c: Communicator) -> None:
        for size in (3, 4, 3 + c.rank):
            all_reduce(ones(size), c)

    known = [f"all_reduce, torch.float32, ({size},), sum" for size in (3, 4)]
    assert refusals(2, differ, checking=True) == said(*known)


def test_parts_that_are_sent_and_expected_in_two_sizes_are_found_by_checking():
    def differ(c: Communicator) -> None:
        sent, expected = ((1, 3), (2, 2))[c.rank], ((1, 2), (2, 2))[c.rank]
        all_to_all(ones(4), c, split_sizes=sent, concat_sizes=expected)

    first, second = refusals(2, differ, checking=True)
    assert first == second
    assert "rank 0 sends 3 elements to rank 1, which expects 2;" in first


def test_only_the_first_call_of_a_kind_sends_headers():
    def rank(c: Communicator) -> list[str]:
        sent: list[str] = []
        c.group = Spy(c.group, sent)
        for _ in range(3):
            for size in (2, 3):
                all_reduce(ones(size), c)
        return sent

    # Rank 0 answers, rank 1 asks: once for each of the two sizes.
    assert run_ranks(2, rank) == [["send"] * 2] * 2


class Spy:
    """A process group that notes the messages that are sent through it."""

    def __init__(self, group: Any, sent: list[str]) -> None:
        self._group = group
        self._sent = sent

    def send(self, *arguments: Any) -> Any:
        self._sent.append("send")
        return self._group.send(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)


def test_messages_of_a_program_do_not_mix_with_headers():
    def rank(c: Communicator) -> float:
        x = torch.tensor([float(c.rank)])
        into = torch.zeros(1)
        pending = c.post([Message(x, 1 - c.rank)], [Message(into, 1 - c.rank)])
        total = all_reduce(x, c)
        pending.wait()
        return total.item() + into.item()

    assert run_ranks(2, rank) == [2.0, 1.0]


def test_communicators_of_one_group_share_what_they_know():
    from hotgrid.cluster import GroupCommunicator

    def rank(c: Communicator) -> list[float]:
        other = GroupCommunicator(c.group)
        all_reduce(ones(3), c)
        return all_reduce(ones(3), other if c.rank else c).tolist()

    assert run_ranks(2, rank) == [[2.0] * 3] * 2


WORKER = """
import os, torch
from hotgrid.cluster import all_gather, world
from hotgrid.errors import ArgumentError
ranks = world(checking=True)
assert ranks.checking
x = torch.ones(3 + ranks.rank, 2)
try:
    all_gather(x, ranks)
except ArgumentError as problem:
    print(str(problem).replace(chr(10), "|"), flush=True)
"""


@pytest.mark.long
def test_processes_raise_instead_of_being_aborted():
    for told in run_forked(WORKER):
        assert told.count("|  rank 1: all_gather, torch.float32, (-1, 2), dim=0") == 1


def test_a_world_of_one_can_be_asked_to_check():
    assert world(checking=True).checking
    assert not world().checking
