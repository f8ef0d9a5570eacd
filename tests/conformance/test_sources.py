"""What every source must do. One enters by being registered with `@source` in hotgrid."""

import gzip
import io
import json
import struct
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from hotgrid.data import (
    ArrowFiles,
    CachedColumns,
    ClassFolders,
    Concatenated,
    HubFolder,
    IdxFiles,
    JsonLines,
    Order,
    Plan,
    PlanBatches,
    Selected,
    Source,
    Split,
    TarShards,
    cache_columns,
    sources,
)
from hotgrid.errors import ArgumentError, HotgridError

MAKERS: dict[str, Callable[[Path], Source]] = {}


def maker(kind: str):
    def register(function: Callable[[Path], Source]):
        MAKERS[kind] = function
        return function

    return register


@maker("class_folders")
def class_folders(place: Path) -> Source:
    for n in range(7):
        file = place / "photos" / f"class {n % 3}" / "deeper" / f"{n}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes([n]) * n)
    return ClassFolders(str(place / "photos"))


@maker("idx")
def idx(place: Path) -> Source:
    pixels = np.arange(7 * 2 * 3, dtype=np.uint8).reshape(7, 2, 3)
    head = struct.pack(">BBBB3I", 0, 0, 8, 3, 7, 2, 3)
    (place / "images.gz").write_bytes(gzip.compress(head + pixels.tobytes()))
    (place / "labels").write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, 7) + bytes(range(7)))
    floats = np.linspace(0, 1, 7).astype(">f4")
    (place / "floats").write_bytes(struct.pack(">BBBBI", 0, 0, 13, 1, 7) + floats.tobytes())
    files = {"pixels": "images.gz", "label": "labels", "weight": "floats"}
    return IdxFiles({name: str(place / file) for name, file in files.items()})


@maker("json_lines")
def json_lines(place: Path) -> Source:
    rows = [{"text": f"text {n}", "x": n, "ids": [n] * n, "more": {"a": [n]}} for n in range(7)]
    lines = [json.dumps(row) for row in rows]
    (place / "a.jsonl").write_text("\n\n".join(lines[:4]) + "\r\n")
    (place / "b.jsonl").write_text("\n".join(lines[4:]))
    types = {"text": "text", "x": "int64", "ids": "int64[?]", "more": "json"}
    return JsonLines((str(place / "?.jsonl"),), types)


@maker("tar")
def tar(place: Path) -> Source:
    for shard in range(2):
        with tarfile.open(place / f"shard-{shard:02}.tar", "w") as opened:
            for n in range(3 + shard):
                for suffix, data in (("jpg", bytes([n])), ("cls", b"%d" % n), ("txt", b"hi")):
                    member = tarfile.TarInfo(f"folder/{shard}{n}.{suffix}")
                    member.size = len(data)
                    opened.addfile(member, io.BytesIO(data))
    types = {"jpg": "bytes", "cls": "int64", "txt": "text"}
    return TarShards((str(place / "shard-{00..01}.tar"),), types)


def table() -> Any:
    columns = {
        "image": [{"bytes": bytes([n]), "path": f"{n}.png"} for n in range(7)],
        "label": list(range(7)),
        "text": [f"text {n}" for n in range(7)],
        "ids": [[n] * n for n in range(7)],
    }
    return pyarrow.table(columns)


@maker("arrow")
def arrow(place: Path) -> Source:
    found = table()
    pyarrow.parquet.write_table(found.slice(0, 4), place / "a.parquet", row_group_size=3)
    with pyarrow.ipc.new_file(place / "b.arrow", found.schema) as file:
        file.write_table(found.slice(4), max_chunksize=2)
    return ArrowFiles((str(place / "a.parquet"), str(place / "b.arrow")))


@maker("hub_folder")
def hub_folder(place: Path) -> Source:
    (place / "data").mkdir()
    found = table()
    said = {"info": {"features": {"label": {"names": list("abcdefg"), "_type": "ClassLabel"}}}}
    found = found.replace_schema_metadata({"huggingface": json.dumps(said)})
    pyarrow.parquet.write_table(found, place / "data" / "train-00000-of-00001.parquet")
    pyarrow.parquet.write_table(found[:1], place / "data" / "test-00000-of-00001.parquet")
    return HubFolder(str(place))


@maker("columns")
def columns(place: Path) -> Source:
    source = json_lines(place)
    cache_columns(Plan(source), place / "cache")
    return CachedColumns(str(place / "cache"))


@maker("selection")
def selection(place: Path) -> Source:
    return Selected(Concatenated((idx(place), idx(place))), 2, -5, numbers=(*range(14),))


@maker("split")
def split(place: Path) -> Source:
    return Split(Concatenated((idx(place), idx(place))), (0.5, 0.25), seed=3)


@maker("concatenation")
def concatenation(place: Path) -> Source:
    return Concatenated((Selected(idx(place), stop=3), Selected(idx(place), 3)))


every_source = pytest.mark.parametrize("kind", sorted(MAKERS))


@pytest.fixture
def made(kind: str, tmp_path: Path) -> Source:
    return MAKERS[kind](tmp_path)


def read_all(source: Source) -> list[dict[str, Any]]:
    opened = source.open()
    return [opened.read(n, [*source.columns()]) for n in range(len(opened))]


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(np.all(np.asarray(one == other)))


def test_every_source_of_hotgrid_is_here():
    own = {kind for kind, cls in sources().items() if cls.__module__.startswith("hotgrid.")}
    assert own == {*MAKERS}


@every_source
def test_values_are_of_the_types_that_the_columns_have(made: Source):
    types = made.columns()
    rows = read_all(made)
    assert len(rows) == 7
    for row in rows:
        assert {*row} == {*types}
        assert {name: types[name].problem(value) for name, value in row.items()} == (
            dict.fromkeys(row)
        )


@every_source
def test_it_goes_through_json(made: Source):
    plan = Plan(made)
    again = Plan.from_json(plan.to_json())
    assert again == plan
    pairs = zip(read_all(again.source), read_all(made), strict=True)
    assert all(same(a[name], b[name]) for a, b in pairs for name in b)


@every_source
def test_any_order_and_many_threads_read_the_same(made: Source):
    rows, opened = read_all(made), made.open()
    names = [*made.columns()]
    order = np.random.default_rng(0).integers(0, len(opened), 200).tolist()
    with ThreadPoolExecutor(4) as threads:
        found = [*threads.map(lambda n: opened.read(n, names), order)]
    assert all(
        same(found[at][name], rows[n][name]) for at, n in enumerate(order) for name in names
    )


@every_source
def test_only_the_columns_asked_for_are_returned(made: Source):
    opened = made.open()
    for name in made.columns():
        assert [*opened.read(3, (name,))] == [name]
    assert opened.read(3, ()) == {}


@every_source
def test_a_whole_column_is_what_the_samples_have(made: Source):
    rows, opened = read_all(made), made.open()
    for name in made.columns():
        column = opened.values(name)
        assert all(np.array_equal(a, row[name]) for a, row in zip(column, rows, strict=True))


@every_source
def test_a_place_names_a_file(made: Source, tmp_path: Path):
    opened = made.open()
    places = [opened.place(n) for n in range(len(opened))]
    assert all(str(tmp_path) in place for place in places)
    files = [str(p) for p in tmp_path.rglob("*")]
    assert all(any(place.startswith(file) for file in files) for place in places)


@every_source
def test_its_text_names_the_kind(made: Source, kind: str):
    assert str(made).startswith(kind)


@every_source
def test_a_plan_of_it_makes_batches(made: Source):
    with PlanBatches(Plan(made, order=Order(seed=5)), 3, last="short", epochs=1) as batches:
        assert sum(len(next(iter(batch.values()))) for batch in batches) == 7


@every_source
def test_what_is_missing_is_an_error_that_names_it(kind: str, made: Source):
    fields = made.to_plain()

    def elsewhere(value: Any) -> Any:
        if isinstance(value, str) and value.startswith("/"):
            return "/nowhere" + value
        if isinstance(value, dict):
            return {k: elsewhere(v) for k, v in value.items()}
        return [elsewhere(v) for v in value] if isinstance(value, list) else value

    moved = Source.from_plain(elsewhere(fields))
    with pytest.raises(HotgridError, match="/nowhere"):
        assert moved.columns()
        moved.open()
    with pytest.raises(ArgumentError, match="unheard_of"):
        Source.from_plain({**fields, "unheard_of": 1})
