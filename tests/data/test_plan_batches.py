"""Batches of plans: the same for any number of workers, ranks and restarts."""

import gc
import json
import shutil
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.data import (
    ClassFolders,
    ColumnType,
    DecodeRandomCrop,
    JsonLines,
    Normalise,
    Operator,
    Order,
    Pad,
    Plan,
    PlanBatches,
    RandomFlip,
    SampleDraws,
    Samples,
    Source,
    Tokenise,
    cache_columns,
    operator,
    plan_speed,
    set_encoder,
    source,
)
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.train import TensorBatches, Trainer

set_encoder("bytes of text", lambda text: list(text.encode()))


@source("tested_numbers")
@dataclass(frozen=True)
class Numbers(Source):
    """Samples that are their own number; some are damaged."""

    count: int = 20
    damaged: tuple[int, ...] = ()

    def columns(self):
        return {"x": ColumnType("int64"), "row": ColumnType("int64", (2,))}

    def open(self):
        return OpenNumbers(self)


class OpenNumbers(Samples):
    def __init__(self, of: Numbers) -> None:
        self.of, self.reads = of, 0

    def __len__(self):
        return self.of.count

    def read(self, index, columns):
        self.reads += 1
        if index in self.of.damaged:
            raise DamagedError(f"number {index} is bad")
        found = {"x": index, "row": np.array([index, -index])}
        return {name: found[name] for name in columns}

    def place(self, index):
        return f"number {index}"


@operator("tested_noise", inputs={"x": "int64"}, outputs={"noise": "int64"})
def noise(x: int, *, draws: SampleDraws) -> int:
    # Workers overtake each other.
    time.sleep(draws.uniform() * 1e-3)
    return draws.below(10**12) + x


NUMBERS = Plan(Numbers()).then("tested_noise", "x", "noise").yielding("x", "noise", "row")


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    from PIL import Image

    place = tmp_path_factory.mktemp("photos")
    draws = np.random.default_rng(0)
    for n in range(22):
        file = place / f"class-{n % 3}" / f"{n:03}.jpg"
        file.parent.mkdir(exist_ok=True)
        size = (draws.integers(20, 60), draws.integers(20, 60), 3)
        Image.fromarray(draws.integers(0, 256, size, dtype=np.uint8)).save(file)
    return place


def photo_plan(place: Path) -> Plan:
    plan = Plan(ClassFolders(str(place)), order=Order(seed=3))
    plan = plan.then(DecodeRandomCrop(16, 12), "data", "pixels").then(
        RandomFlip(), "pixels", "flipped"
    )
    return plan.then(Normalise(), "flipped", "floats").yielding("pixels", "floats", "label")


def taken(plan: Plan, size: int, count: int, first: int = 0, **more) -> list[dict]:
    with PlanBatches(plan, size, **more) as batches:
        return [batches.batch(n) for n in range(first, first + count)]


def same(one: list[dict], other: list[dict]) -> bool:
    return len(one) == len(other) and all(
        {*a} == {*b}
        and all(
            torch.equal(a[name], b[name]) and a[name].dtype == b[name].dtype
            if isinstance(a[name], torch.Tensor)
            else a[name] == b[name]
            for name in a
        )
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_batches_do_not_depend_on_the_number_of_workers(photos, workers):
    plan = photo_plan(photos)
    alone = taken(plan, 5, 9, workers=1, ahead=1)
    assert same(taken(plan, 5, 9, workers=workers, ahead=3), alone)
    numbers = taken(NUMBERS, 7, 6, workers=1, ahead=1)
    assert same(taken(NUMBERS, 7, 6, workers=workers, ahead=5), numbers)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 12), st.sampled_from([1, 2, 7]), st.sampled_from([1, 2, 7]))
def test_a_loader_continues_anywhere_in_an_epoch(stop, workers, again):
    whole = taken(NUMBERS, 6, 14, workers=1)
    with PlanBatches(NUMBERS, 6, workers=workers) as batches:
        first = [next(batches) for _ in range(stop)]
        state = json.loads(json.dumps(batches.state()))
    with PlanBatches(NUMBERS, 6, workers=again, ahead=2) as batches:
        batches.load(state)
        rest = [next(batches) for _ in range(14 - stop)]
    assert same(first + rest, whole)


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_share_the_rows_of_a_batch(ranks):
    whole = taken(NUMBERS, 6, 5)
    parts = []
    for rank in range(ranks):
        with PlanBatches(NUMBERS, 6, rank=rank, ranks=ranks) as batches:
            parts.append([next(batches) for _ in range(5)])
    for at, batch in enumerate(whole):
        for name in batch:
            joined = torch.stack([part[at][name] for part in parts], 1).flatten(0, 1)
            assert torch.equal(joined, batch[name])


def test_an_epoch_has_every_sample_once_and_epochs_differ():
    epochs = [torch.cat([b["x"] for b in taken(NUMBERS, 5, 4, first)]) for first in (0, 4)]
    assert all(sorted(each.tolist()) == [*range(20)] for each in epochs)
    assert not torch.equal(*epochs)
    other = torch.cat([b["x"] for b in taken(replace(NUMBERS, order=Order(seed=1)), 5, 4)])
    assert not torch.equal(other, epochs[0])


def test_samples_draw_other_numbers_in_every_epoch_and_step():
    first, second = taken(NUMBERS, 20, 2, last="short")
    by_number = lambda batch: batch["noise"][batch["x"].argsort()]
    assert not (by_number(first) == by_number(second)).any()
    twice = NUMBERS.then("tested_noise", "x", "other").yielding("noise", "other")
    (batch,) = taken(twice, 20, 1)
    assert not (batch["noise"] == batch["other"]).any()
    # A step more does not change what the others draw.
    assert torch.equal(batch["noise"], first["noise"])


def test_the_last_batch_is_dropped_or_short():
    with PlanBatches(NUMBERS, 6, epochs=2) as batches:
        assert len(batches) == 3
        assert [len(batch["x"]) for batch in batches] == [6] * 6
    with PlanBatches(NUMBERS, 6, epochs=2, last="short") as batches:
        assert len(batches) == 4
        assert [len(batch["x"]) for batch in batches] == [6, 6, 6, 2] * 2


def test_sampling_with_replacement():
    plan = replace(NUMBERS, order=Order(seed=4, samples=1000))
    batches = taken(plan, 100, 10)
    found = torch.cat([batch["x"] for batch in batches])
    counts = torch.bincount(found, minlength=20)
    # 50 each, with a standard deviation of 6.9.
    assert counts.sum() == 1000 and counts.min() > 20 and counts.max() < 80
    # A sample that is drawn twice is not the same twice.
    assert len(torch.cat([batch["noise"] for batch in batches]).unique()) == 1000


@pytest.fixture
def texts(tmp_path) -> Plan:
    lengths = np.random.default_rng(0).integers(1, 33, 60).tolist()
    rows = "".join(json.dumps({"text": "x" * n, "n": n}) + "\n" for n in lengths)
    (tmp_path / "a.jsonl").write_text(rows)
    plan = Plan(JsonLines((str(tmp_path / "a.jsonl"),), {"text": "text", "n": "int64"}))
    plan = plan.then(Tokenise("bytes of text"), "text", "ids").then("length", "ids", "length")
    return plan.yielding("ids", "length")


@pytest.mark.parametrize("column", ["n", "length"], ids=["of the source", "computed"])
@pytest.mark.parametrize("last", ["drop", "short"])
def test_buckets_hold_samples_of_similar_length(texts, column, last):
    plan = replace(texts, order=Order(buckets=(8, 16, 32), length=column))
    with PlanBatches(plan, 4, epochs=1, last=last) as batches:
        found = [*batches]
        assert len(found) == len(batches)
    seen = 0
    for batch in found:
        longest = batch["ids"].shape[1]
        below = {8: 0, 16: 8, 32: 16}[longest]
        assert ((batch["length"] > below) & (batch["length"] <= longest)).all()
        assert ((batch["ids"] != 0).sum(1) == batch["length"]).all()
        seen += len(batch["length"])
    assert seen == 60 if last == "short" else seen % 4 == 0 and seen > 48
    # Buckets take turns at random.
    assert len({batch["ids"].shape[1] for batch in found[:6]}) > 1
    assert same(taken(plan, 4, 3, workers=7), taken(plan, 4, 3, workers=1))


def test_what_is_longer_than_all_buckets_is_named(texts):
    plan = replace(texts, order=Order(buckets=(8, 16), length="n"))
    with pytest.raises(ArgumentError, match=r"`n` 3\d, more than the last of `buckets`"):
        PlanBatches(plan, 4)
    with pytest.raises(ArgumentError, match="`text`, which is text"):
        PlanBatches(replace(texts, order=Order(buckets=(8,), length="text")), 4)


def test_a_sample_without_a_length_is_a_damaged_sample(tmp_path):
    lines = "".join(f'{{"n": {n}}}\n' for n in (1, "null", 3, 5))
    (tmp_path / "a.jsonl").write_text(lines)
    rows = JsonLines((str(tmp_path / "a.jsonl"),), {"n": "int64"})
    plan = Plan(rows, order=Order(buckets=(4, 8), length="n"), corrupt="drop")
    with PlanBatches(plan, 4, last="short", epochs=1) as batches:
        assert sorted(n for batch in batches for n in batch["n"].tolist()) == [1, 3, 5]
        assert [each.index for each in batches.corrupt] == [1]


def test_samples_of_different_sizes_are_padded(texts):
    (batch,) = taken(replace(texts, order=Order(shuffle=False)), 10, 1)
    assert batch["ids"].shape == (10, int(batch["length"].max()))
    fixed = texts.then(Pad(5, 9.0), "ids", "five").yielding("five")
    assert taken(fixed, 10, 1)[0]["five"].shape == (10, 5)


BAD = replace(NUMBERS, source=Numbers(20, (3, 4, 11)))


def test_a_damaged_sample_is_replaced_by_another_of_its_batch():
    plan = replace(BAD, order=Order(shuffle=False))
    with PlanBatches(plan, 5, epochs=1, workers=2) as batches:
        found = torch.stack([batch["x"] for batch in batches]).tolist()
        corrupt = batches.corrupt
    assert found == [[0, 1, 2, 0, 0], [5, 6, 7, 8, 9], [10, 12, 12, 13, 14], [*range(15, 20)]]
    assert [(each.index, each.place, each.reason) for each in corrupt] == [
        (n, f"number {n}", f"number {n} is bad") for n in (3, 4, 11)
    ]
    assert same(taken(BAD, 5, 8, workers=7), taken(BAD, 5, 8, workers=1))
    # The substitute is not the same again: it draws other numbers.
    (first, *_) = taken(plan, 5, 1)
    assert len(first["noise"].unique()) == 5


def test_substitutes_do_not_depend_on_the_ranks():
    whole = taken(BAD, 10, 4)
    for rank in (0, 1):
        with PlanBatches(BAD, 10, rank=rank, ranks=2) as batches:
            for batch in whole:
                assert torch.equal(next(batches)["noise"], batch["noise"][rank::2])


def test_a_damaged_sample_is_left_out():
    plan = replace(BAD, order=Order(shuffle=False), corrupt="drop")
    found = [batch["row"][:, 0].tolist() for batch in taken(plan, 5, 4)]
    assert found == [[0, 1, 2], [5, 6, 7, 8, 9], [10, 12, 13, 14], [*range(15, 20)]]


def test_a_damaged_sample_ends_the_run():
    with pytest.raises(DamagedError, match=r"`number (3|4|11)`: the source .* is bad"):
        taken(replace(BAD, corrupt="raise"), 5, 4)
    with pytest.raises(
        DamagedError, match=r"3 samples are damaged, more than `most_corrupt` 2"
    ):
        taken(replace(BAD, most_corrupt=2), 5, 4)
    with pytest.raises(DamagedError, match="all 5 samples of batch 0"):
        taken(Plan(Numbers(5, (0, 1, 2, 3, 4))), 5, 1)


def test_damaged_samples_are_listed_in_a_file(tmp_path):
    file = tmp_path / "bad" / "samples.jsonl"
    taken(BAD, 5, 8, quarantine=file)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted(row["index"] for row in rows) == [3, 4, 11]
    assert {row["place"] for row in rows} == {"number 3", "number 4", "number 11"}
    with PlanBatches(replace(BAD, most_corrupt=3), 5, quarantine=file) as again:
        assert [each.index for each in again.corrupt] == [3, 4, 11]
        again.batch(0)
    assert len(file.read_text().splitlines()) == 3
    file.write_text("nonsense\n")
    with pytest.raises(ArgumentError, match=r"samples\.jsonl"):
        PlanBatches(BAD, 5, quarantine=file)


def test_a_damaged_file_names_path_operator_and_reason(photos, tmp_path):
    import shutil

    shutil.copytree(photos, tmp_path / "some")
    file = tmp_path / "some" / "class-1" / "001.jpg"
    file.write_bytes(file.read_bytes()[:300])
    (tmp_path / "some" / "class-0" / "000.jpg").write_bytes(b"hello")
    with PlanBatches(photo_plan(tmp_path / "some"), 22, epochs=1) as batches:
        next(batches)
        first, second = batches.corrupt
    assert (first.place, second.place) == (
        str(file.parent.parent / "class-0/000.jpg"),
        str(file),
    )
    assert first.operator == second.operator == "decode_random_crop"
    assert first.column == "pixels"
    assert first.reason == "it is not an image of a kind that Pillow knows"


@operator("tested_failing", inputs={"x": "int64"}, outputs={"y": "int64"})
def failing(x: int) -> int:
    return x.nothing  # pyright: ignore


@dataclass(frozen=True)
class Liar(Operator):
    """Promises one shape and makes another."""

    inputs: ClassVar = {"x": "int64"}

    def outputs(self, types):
        return {"y": ColumnType("int64", (3,))}

    def run(self, x):
        return np.array([x])


operator("tested_liar")(Liar)


def test_a_mistake_in_an_operator_is_not_a_damaged_sample():
    plan = Plan(Numbers()).then("tested_failing", "x", "y")
    with pytest.raises(AttributeError) as found:
        taken(plan, 5, 1)
    assert any("`tested_failing`, sample" in note for note in found.value.__notes__)
    with pytest.raises(ArgumentError, match=r"`y` is int64\[3\], but `tested_liar` made \[1\]"):
        taken(Plan(Numbers()).then("tested_liar", "x", "y"), 5, 1)


def test_memory_of_a_batch_is_not_used_while_something_holds_it():
    plan = replace(NUMBERS, order=Order(shuffle=False)).yielding("row")
    with PlanBatches(plan, 5, ahead=2) as batches:
        first = next(batches)["row"]
        kept = first[2]
        array = next(batches)["row"].numpy()
        del first
        gc.collect()
        places = {next(batches)["row"].data_ptr() for _ in range(20)}
        assert kept.tolist() == [2, -2]
        assert array[:, 0].tolist() == [5, 6, 7, 8, 9]
        assert kept.storage_offset() and kept.untyped_storage().data_ptr() not in places
    # What nobody holds is used again: 20 batches share the memory of a few.
    assert len(places) < 8


def test_page_locked_memory_is_left_to_torch(monkeypatch):
    # Torch alone knows whether a copy to a GPU is under way, by the storage it allocated.
    made, empty = [], torch.empty

    def locked(*sizes, pin_memory, **more):
        assert pin_memory
        made.append(empty(*sizes, **more))
        return made[-1]

    monkeypatch.setattr(torch, "empty", locked)
    plan = replace(NUMBERS, order=Order(shuffle=False)).yielding("row")
    with PlanBatches(plan, 5, workers=1, ahead=1, pin=True) as batches:
        found = [next(batches)["row"].clone() for _ in range(4)]
        last = next(batches)["row"]
    assert [rows[0, 0].item() for rows in found] == [0, 5, 10, 15]
    # No memory was taken a second time, and none is wrapped in another storage.
    assert len(made) >= 5
    storages = {each.untyped_storage()._cdata for each in made}
    assert last.untyped_storage()._cdata in storages


def test_no_more_is_prepared_than_asked_for():
    plan = Plan(Numbers(1000))
    with PlanBatches(plan, 10, ahead=3, workers=2) as batches:
        batches.batch(0)
        samples = batches._runner.samples
        for _ in range(1000):
            if samples.reads >= 40:
                break
            time.sleep(0.01)
        time.sleep(0.1)
        assert samples.reads == 40


def test_closing_stops_the_threads_and_a_loader_can_go_on():
    batches = PlanBatches(NUMBERS, 5, workers=3)
    first = [next(batches), next(batches)]
    batches.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("hotgrid-data")]
    rest = [next(batches)]
    batches.close()
    assert same(first + rest, taken(NUMBERS, 5, 3))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PlanBatches(NUMBERS, 0), "`size` must be at least 1, got 0"),
        (lambda: PlanBatches(NUMBERS, 5, workers=0), "`workers` must be at least 1, got 0"),
        (lambda: PlanBatches(NUMBERS, 5, last="keep"), "`last` is 'keep'"),
        (lambda: PlanBatches(NUMBERS, 5, rank=2, ranks=2), "`rank` 2"),
        (lambda: PlanBatches(NUMBERS, 21), "no batch of 21"),
        (lambda: PlanBatches(NUMBERS, 5).batch(0, 0, 2), "shared equally"),
        (lambda: PlanBatches(NUMBERS, 5).load({"next": 1, "of": "plan a"}), "plan a"),
        (lambda: Order(buckets=(3, 2), length="a"), "ascending"),
        (lambda: Order(buckets=(3,)), "given together"),
        (lambda: Order(samples=3, shuffle=False), "`samples`"),
        (lambda: Order(samples=0), "`samples` 0"),
        (lambda: Order(samples=3, buckets=(3,), length="a"), "cannot be combined"),
        (lambda: Plan(Numbers(), corrupt="keep"), "`corrupt` is 'keep'"),
    ],
    ids=[str(n) for n in range(13)],
)
def test_wrong_arguments_are_named(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


def test_a_state_belongs_to_these_samples_and_batches(tmp_path):
    """Batches of another number of samples, or with another end, are other batches."""
    file = tmp_path / "x.jsonl"
    file.write_text("".join(f'{{"x": {n}}}\n' for n in range(20)))
    plan = Plan(JsonLines((str(file),), {"x": "int64"}))
    with PlanBatches(plan, 8) as batches:
        next(batches)
        state = batches.state()
    batches = PlanBatches(plan, 8, last="short")
    with batches, pytest.raises(ArgumentError, match=r"2 batches of 8.*3 batches of 8"):
        batches.load(state)
    file.write_text(file.read_text() + '{"x": 20}\n')
    batches = PlanBatches(plan, 8)
    with batches, pytest.raises(ArgumentError, match=r"20 samples.*21 samples"):
        batches.load(state)


def test_a_run_is_not_resumed_with_other_batches(tmp_path):
    """The trainer compares the identity of the batches."""

    def train(plan: Plan, steps: int, **options: Any) -> None:
        layer = torch.nn.Linear(1, 1)
        with PlanBatches(plan, 4) as batches:
            Trainer(
                layer,
                lambda module, batch: module(batch["noise"][:, None] / 1e12).square().mean(),
                batches,
                torch.optim.SGD(layer.parameters(), lr=0.1),
                steps=steps,
                folder=tmp_path / "run",
            ).run(**options)

    train(NUMBERS, 2)
    with pytest.raises(ArgumentError, match="plan"):
        train(replace(NUMBERS, order=Order(seed=9)), 4, resume=True)


def test_what_is_no_state_is_refused():
    with pytest.raises(DamagedError, match="not the state"):
        PlanBatches(NUMBERS, 5).load({"next": "x"})


def weights(plan: Plan, folder: Path, steps: int, workers: int) -> torch.Tensor:
    torch.manual_seed(0)
    layer = torch.nn.Linear(1, 1)
    loss = lambda module, batch: (module(batch["noise"][:, None] / 1e12) - 0.5).square().mean()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    with PlanBatches(plan, 4, workers=workers) as batches:
        Trainer(layer, loss, batches, optimizer, steps=steps, folder=folder, show=False).run()
    return torch.cat([each.detach().flatten() for each in layer.parameters()])


def test_a_trainer_resumes_exactly(tmp_path):
    whole = weights(NUMBERS, tmp_path / "whole", 13, 1)
    weights(NUMBERS, tmp_path / "parts", 7, 2)
    assert torch.equal(weights(NUMBERS, tmp_path / "parts", 13, 7), whole)


def test_the_order_is_that_of_other_batches_of_hotgrid():
    """Plans and tensors with the same seed see the same samples."""
    tensors = TensorBatches(torch.arange(20), 5, seed=9)
    plan = replace(NUMBERS, order=Order(seed=9))
    for at, batch in enumerate(taken(plan, 5, 4)):
        assert torch.equal(batch["x"], tensors.batch(at))


def test_a_cache_has_the_same_samples(photos, tmp_path):
    plan = Plan(ClassFolders(str(photos)), order=Order(seed=3))
    plan = plan.then("decode_centre_crop", "data", "pixels", height=16, width=12)
    plan = plan.then(RandomFlip(), "pixels", "flipped").yielding("flipped", "label")
    cached = cache_columns(plan, tmp_path / "cache", ["pixels", "label"], workers=2)
    assert [step.operator for step in cached.steps] == ["random_flip"]
    assert same(taken(cached, 5, 9), taken(plan, 5, 9))
    with PlanBatches(cached, 5) as batches:
        assert batches.facts == {"classes": ["class-0", "class-1", "class-2"]}
    # The same again uses what is there; another plan is refused.
    assert cache_columns(plan, tmp_path / "cache", ["pixels", "label"]) == cached
    with pytest.raises(ArgumentError, match="another plan"):
        cache_columns(plan, tmp_path / "cache", ["pixels"])
    with pytest.raises(ArgumentError, match="`random_flip` is random"):
        cache_columns(plan, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_cache_notices_that_its_sources_have_changed(tmp_path):
    rows, cache = tmp_path / "rows", tmp_path / "rows" / "cache"
    rows.mkdir()
    (rows / "a.jsonl").write_text('{"x": 1}\n')
    plan = Plan(JsonLines((str(rows / "*.jsonl"),), {"x": "int64"}))
    first = cache_columns(plan, cache)
    assert cache_columns(plan, cache) == first
    (rows / "b.jsonl").write_text('{"x": 2}\n')
    with pytest.raises(ArgumentError, match=r"b\.jsonl` has changed"):
        cache_columns(plan, cache)
    (rows / "b.jsonl").unlink()
    assert cache_columns(plan, cache) == first
    (rows / "a.jsonl").write_text('{"x": 3}\n{"x": 4}\n')
    with pytest.raises(ArgumentError, match=r"a\.jsonl` has changed"):
        cache_columns(plan, cache)
    # What was cached may be deleted.
    (rows / "a.jsonl").unlink()
    assert cache_columns(plan, cache) == first


def test_a_cache_notices_a_photo_that_came(photos, tmp_path):
    root = tmp_path / "photos"
    shutil.copytree(photos, root)
    plan = Plan(ClassFolders(str(root))).yielding("label")
    cache_columns(plan, tmp_path / "cache")
    kind = next(each for each in root.iterdir() if each.is_dir())
    shutil.copy(next(kind.iterdir()), kind / "another.png")
    with pytest.raises(ArgumentError, match="has changed"):
        cache_columns(plan, tmp_path / "cache")


def test_a_cache_leaves_out_what_is_damaged(tmp_path):
    plan = replace(BAD, steps=(), yields=("x", "row"), order=Order(shuffle=False))
    cached = cache_columns(plan, tmp_path / "cache")
    found = torch.cat([batch["x"] for batch in taken(cached, 17, 1)])
    assert found.tolist() == [n for n in range(20) if n not in (3, 4, 11)]
    with pytest.raises(DamagedError, match="more than"):
        cache_columns(replace(plan, most_corrupt=1), tmp_path / "other")
    assert [each.name for each in tmp_path.iterdir()] == ["cache"]


def test_a_cache_holds_what_differs_in_size(photos, tmp_path):
    plan = Plan(ClassFolders(str(photos)), order=Order(shuffle=False))
    plan = plan.then("decode_image", "data", "image").yielding("image", "path", "data")
    cached = cache_columns(plan, tmp_path / "cache")
    assert same(taken(cached, 3, 7), taken(plan, 3, 7))
    (ragged,) = taken(plan, 22, 1, pad=False)
    assert len({image.shape for image in ragged["image"]}) > 5


def test_a_damaged_cache_is_refused(tmp_path):
    plan = Plan(Numbers(), order=Order(shuffle=False)).yielding("x", "row")
    cached = cache_columns(plan, tmp_path / "cache")
    np.save(tmp_path / "cache" / "x.npy", np.arange(3))
    with pytest.raises(DamagedError, match=r"x\.npy"):
        cached.source.open()
    (tmp_path / "cache" / "x.npy").unlink()
    with pytest.raises(DamagedError, match=r"x\.npy"):
        cached.source.open()
    (tmp_path / "cache" / "columns.json").write_text("{}")
    with pytest.raises(DamagedError, match=r"columns\.json"):
        cached.source.columns()


def test_speed_is_measured(photos):
    found = plan_speed(photo_plan(photos), 4, workers=2, seconds=0.2)
    assert found.samples > 0 and found.first > 0 and found.corrupt == 0
    assert [*found.steps] == ["read", "decode_random_crop", "random_flip", "normalise"]


def test_a_text_that_is_not_utf8_is_not_cached(tmp_path):
    (tmp_path / "photos" / "a").mkdir(parents=True)
    (tmp_path / "photos" / "a" / "\udcff.png").write_bytes(b"")
    plan = Plan(ClassFolders(str(tmp_path / "photos"))).yielding("path")
    with pytest.raises(ArgumentError, match=r"column `path` has the text 'a/\\udcff.png'"):
        cache_columns(plan, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
