"""Batches of packed rows: complete, resumable after any batch, honest about errors."""

import json
import random
import threading
from pathlib import Path

import pytest
import torch

from hotgrid.data import PackedBatches, Shards
from hotgrid.errors import ArgumentError, DamagedError


def encode(texts):
    return [list(text.encode()) for text in texts]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("shards")
    numbers = random.Random(0)
    for shard in range(3):
        lines = [
            json.dumps({"text": f"{shard}.{n} " + "ab" * numbers.randrange(150)})
            for n in range(400)
        ]
        (path / f"{shard}.jsonl").write_text("\n".join(lines))
    return path


def loader(folder: Path, **options):
    given = {"batch": 4, "length": 128, "start": [0], "waiting": 50, "epochs": 2, "at_once": 16}
    return PackedBatches(Shards([folder]), encode, **{**given, **options})


def drained(batches):
    return list(batches)


def test_rows_hold_what_the_documents_hold(folder):
    batches = loader(folder, epochs=1, shuffle=0)
    rows = torch.cat(drained(batches))
    assert rows.shape[1] == 128
    assert (rows[:, 0] == 0).all()
    counters = batches.counters
    assert (counters.files, counters.documents) == (3, 1200)
    assert counters.bytes == counters.tokens
    assert int((rows != 0).sum()) == counters.packed
    assert counters.rows == len(rows)
    # All but what is left over for less than a batch.
    assert counters.tokens - counters.packed < 4 * 128
    assert counters.loss == 0


@pytest.mark.parametrize("rest", ["keep", "drop"])
@pytest.mark.parametrize("shuffle", [0, 32])
def test_it_resumes_after_any_batch(folder, rest, shuffle):
    options = {"rest": rest, "shuffle": shuffle, "rank": 1, "ranks": 2}
    whole_loader = loader(folder, **options)
    whole = drained(whole_loader)
    for cut in (0, 1, 7, len(whole) // 2, len(whole) - 1, len(whole)):
        first = loader(folder, **options)
        begun = [next(first) for _ in range(cut)]
        second = loader(folder, **options)
        second.load(first.state())
        first.close()
        rest_of = drained(second)
        assert len(begun) + len(rest_of) == len(whole)
        assert all(map(torch.equal, begun + rest_of, whole))
        assert second.counters == whole_loader.counters


def test_the_state_does_not_depend_on_how_far_ahead_the_thread_is(folder):
    states = []
    for ahead in (1, 20):
        batches = loader(folder, ahead=ahead)
        for _ in range(5):
            next(batches)
        states.append(batches.state())
        batches.close()
    assert states[0] == states[1]
    assert json.loads(json.dumps(states[0])) == states[0]


def test_closing_stops_the_thread_and_iterating_goes_on(folder):
    whole = drained(loader(folder))
    before = set(threading.enumerate())
    batches = loader(folder, ahead=2)
    begun = [next(batches) for _ in range(3)]
    assert set(threading.enumerate()) - before
    batches.close()
    assert not set(threading.enumerate()) - before
    assert all(map(torch.equal, begun + drained(batches), whole))


def test_dropping_the_rest_loses_what_it_says(folder):
    batches = loader(folder, rest="drop", shuffle=0, epochs=1)
    rows = torch.cat(drained(batches))
    counters = batches.counters
    assert counters.loss > 0.1
    assert int((rows != 0).sum()) == counters.packed


def test_an_error_in_the_thread_is_raised_in_the_consumer_every_time(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "good"}\nbad\n')
    batches = loader(tmp_path, epochs=1)
    for _ in range(2):
        with pytest.raises(DamagedError, match="not a line of JSON"):
            next(batches)


def test_the_end_stays_the_end(folder):
    batches = loader(folder, epochs=1)
    drained(batches)
    with pytest.raises(StopIteration):
        next(batches)


def test_a_damaged_state_is_refused(folder):
    batches = loader(folder)
    next(batches)
    state = batches.state()
    with pytest.raises(DamagedError, match="not the state of a loader"):
        loader(folder).load({key: value for key, value in state.items() if key != "numbers"})
    with pytest.raises(DamagedError, match="not the state of a loader"):
        loader(folder).load({**state, "waiting": {**state["waiting"], "lengths": [3]}})
    with pytest.raises(DamagedError, match="not the state of a loader"):
        loader(folder).load({**state, "numbers": [1, 2]})


@pytest.mark.parametrize("name", ["batch", "ahead", "at_once"])
def test_wrong_numbers_are_named(folder, name):
    with pytest.raises(ArgumentError, match=f"`{name}` must be at least 1, got 0"):
        loader(folder, **{name: 0})


@pytest.mark.parametrize("start", [[0], []])
def test_documents_without_tokens_are_an_error(tmp_path, start):
    (tmp_path / "a.jsonl").write_text('{"text": ""}\n' * 40)
    with pytest.raises(ArgumentError, match=r"no document of 1 files.*has any tokens"):
        next(loader(tmp_path, epochs=None, start=start))


def test_files_without_documents_are_an_error(tmp_path):
    (tmp_path / "a.jsonl").write_text("\n\n")
    with pytest.raises(ArgumentError):
        next(loader(tmp_path, epochs=None))
