"""Communicators: what they do with real ranks, and how they fail."""

import threading
import weakref
from typing import Any

import pytest
import torch
import torch.distributed as dist

from hotgrid.cluster import GroupCommunicator, Message, SingleRank, all_or_raise, run_ranks
from hotgrid.errors import ArgumentError, CommunicationError, StoreError

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.float16,
    torch.bfloat16,
    torch.float64,
    torch.complex64,
]


def test_every_rank_knows_its_place():
    assert run_ranks(3, lambda c: (c.rank, c.size)) == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_moves(dtype):
    def rank(c):
        x = torch.tensor([c.rank, 1, 0]).to(dtype)
        passed, shared = torch.empty_like(x), x.clone()
        sends = [Message(x, (c.rank + 1) % 3, tag=4)]
        c.post(sends, [Message(passed, (c.rank - 1) % 3, tag=4)]).wait()
        c.broadcast(shared, 2)
        return passed, shared, c.all_gather(x), c.all_to_all(x, [1, 1, 1], [1, 1, 1])

    whole = torch.tensor([[0, 1, 0], [1, 1, 0], [2, 1, 0]]).to(dtype)
    for r, (passed, shared, gathered, turned) in enumerate(run_ranks(3, rank)):
        assert torch.equal(passed, whole[r - 1])
        assert torch.equal(shared, whole[2])
        assert torch.equal(gathered, whole)
        assert torch.equal(turned, whole[:, r])


def test_reductions():
    def rank(c):
        total, largest = torch.tensor([c.rank, -c.rank]), torch.tensor([c.rank, -c.rank])
        here = torch.tensor([1.0 + c.rank])
        c.all_reduce(total)
        c.all_reduce(largest, "max")
        c.reduce(here, 1)
        return total.tolist(), largest.tolist(), here.item(), c.reduce_scatter(torch.eye(3) * 2)

    results = run_ranks(3, rank)
    assert [each[:2] for each in results] == [([3, -3], [2, 0])] * 3
    assert results[1][2] == 6.0
    for r, each in enumerate(results):
        assert torch.equal(each[3], 6 * torch.eye(3)[r])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda c, x: c.all_reduce(x[:, 0]), "is not contiguous"),
        (lambda c, x: c.reduce(x.T, 0), "is not contiguous"),
        (lambda c, x: c.broadcast(x[::2], 0), "is not contiguous"),
        (lambda c, x: c.all_reduce(x * 1j, "max"), "'max' of real numbers"),
        (lambda c, x: c.all_reduce(x, "prod"), "`op` 'prod' is not supported"),
    ],
)
def test_what_a_backend_would_do_wrongly_is_refused(call, text):
    with pytest.raises(ArgumentError, match=text):
        run_ranks(2, lambda c: call(c, torch.ones(4, 2)))


def test_tags_distinguish_messages():
    def rank(c):
        if c.rank == 0:
            c.post([Message(torch.tensor([k]), 1, tag=k) for k in (1, 2)], []).wait()
            return None
        found = [torch.zeros(1, dtype=torch.int64) for _ in range(2)]
        c.receive(found[1], 0, tag=2)
        c.receive(found[0], 0, tag=1)
        return [x.item() for x in found]

    assert run_ranks(2, rank)[1] == [1, 2]


def test_send_receive_and_barrier():
    def rank(c):
        x = torch.arange(3) * (c.rank == 0)
        c.send(x, 1) if c.rank == 0 else c.receive(x, 0)
        c.barrier()
        return x.tolist()

    assert run_ranks(2, rank) == [[0, 1, 2]] * 2


def test_small_values_of_unequal_length():
    texts = ["", "ü" * 10, "long " * 50]
    found = run_ranks(3, lambda c: c.gather_json({"text": texts[c.rank], "at": (c.rank, None)}))
    assert found == [[{"text": text, "at": [r, None]} for r, text in enumerate(texts)]] * 3


def test_checking_shows_every_rank():
    def rank(c):
        c.agree("step", torch.float32, (c.rank // 2,))

    for checking in (True, False):
        with pytest.raises(ArgumentError) as found:
            run_ranks(3, rank, checking=checking)
        assert "rank 1: step, torch.float32, (0,)" in str(found.value)
        assert "rank 2: step, torch.float32, (1,)" in str(found.value)


def test_alone_nothing_moves_and_nothing_is_shared():
    alone, x = SingleRank(), torch.arange(4.0)
    for result in (
        alone.all_gather(x),
        alone.reduce_scatter(x[None]),
        alone.all_to_all(x, [4], [4]),
    ):
        assert torch.equal(result.flatten(), x)
        assert result.data_ptr() != x.data_ptr()
    for change in (
        alone.all_reduce,
        lambda x: alone.reduce(x, 0),
        lambda x: alone.broadcast(x, 0),
    ):
        change(x)
        assert torch.equal(x, torch.arange(4.0))
    alone.barrier()
    alone.post([], []).wait()
    with pytest.raises(ArgumentError, match="no rank 3 here"):
        alone.send(x, 3)


def test_the_default_group_is_never_taken_silently():
    with pytest.raises(ArgumentError, match=r"torch\.distributed\.group\.WORLD"):
        GroupCommunicator(None)
    assert not dist.is_initialized()


def test_a_lost_rank_ends_the_others_at_once():
    def rank(c):
        if c.rank == 1:
            raise KeyError("gone")
        try:
            c.all_reduce(torch.ones(1))
        except CommunicationError as error:
            texts.append(str(error))
            raise

    texts = []
    with pytest.raises(KeyError, match="gone") as found:
        run_ranks(3, rank, timeout=20)
    assert found.value.__notes__ == ["raised by rank 1 of 3"]
    assert len(texts) == 2
    assert all("lost another rank: all_reduce" in text for text in texts)


def test_a_message_that_never_comes_is_an_error():
    def rank(c):
        if c.rank == 0:
            c.receive(torch.zeros(1), 1)
        else:
            held.append(c)

    held = []
    said = (
        r"rank 0 of 2 lost rank 1: a message did not end after [\d.]+ s \(Timed out .*look at "
    )
    said += r"its output first.* `--resume`.*raise `cluster\.timeout`"
    with pytest.raises(CommunicationError, match=said):
        run_ranks(2, rank, timeout=1.5)


def test_there_must_be_a_rank():
    with pytest.raises(ArgumentError, match="cannot run 0 ranks"):
        run_ranks(0, lambda c: None)


def test_a_second_communicator_is_not_in_the_way_of_the_first():
    def rank(c):
        other = c.beside()
        x, y = torch.tensor([c.rank]), torch.tensor([10 * c.rank])
        # In the other order on the other rank: one group alone would mix them up.
        calls = [lambda: c.all_reduce(x), lambda: other.all_reduce(y)]
        threads = [threading.Thread(target=call) for call in calls[:: 1 - 2 * c.rank]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return x.item(), y.item(), c.beside().gather_json(c.rank)

    assert run_ranks(2, rank) == [(1, 10, [0, 1])] * 2
    assert SingleRank().beside().size == 1


def test_together_all_raise_what_one_raises():
    def rank(c):
        def work():
            if c.rank == 1:
                raise StoreError("the disk is full")
            return c.rank

        with pytest.raises(StoreError) as found:
            all_or_raise(c, work)
        return str(found.value), all_or_raise(c, lambda: 10 * c.rank)

    words = ["rank 1: the disk is full", "the disk is full", "rank 1: the disk is full"]
    assert run_ranks(3, rank) == [(text, 10 * r) for r, text in enumerate(words)]


def test_a_group_ends_after_what_a_failed_rank_made_with_it():
    # DDP's reducer must not be the last to hold it: it would end it while holding the GIL.
    groups: list[weakref.ref[Any]] = []
    alive: list[bool] = []

    class Made:
        def __del__(self) -> None:
            alive.append(groups[0]() is not None)

    def rank(ranks):
        groups.append(weakref.ref(ranks.group))
        made = Made()
        raise ValueError(id(made))

    with pytest.raises(ValueError):
        run_ranks(1, rank)
    assert alive == [True] and groups[0]() is None
