"""Where documents come from: every kind of input, cut and limited as it should be."""

import base64
import bz2
import gzip
import io
import json
import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from hotgrid.blt import Corpus, IngestSettings, count_input, ingest
from hotgrid.blt._ingest import _pool, _work
from hotgrid.blt._ingest._inputs import _archives, _rows, _units
from hotgrid.blt._ingest._inputs._read import read_unit
from hotgrid.blt._ingest._inputs._record import Fault, Record
from hotgrid.blt._ingest._inputs._units import list_units
from hotgrid.blt._ingest._near import NearDuplicates, signature, similarity
from hotgrid.errors import ArgumentError, DamagedError

from .corpora import TEXT, bits, png, tar, zipped

LINES = b"".join(b"line %d of a long text\n" % n for n in range(600))
PACKED = {"tar": "", "tar.gz": "gz", "tgz": "gz", "tar.bz2": "bz2", "tar.xz": "xz"}


def run(tmp_path: Path, *paths: Path | str, **settings) -> Corpus:
    """A corpus of these paths."""
    made = IngestSettings(**settings)
    ingest([str(each) for each in paths], tmp_path / "out", made, workers=0)
    return Corpus(tmp_path / "out")


def names(corpus: Corpus) -> list[str]:
    return [row["name"].rsplit("/", 1)[-1] for row in corpus.rows()]


def reasons(corpus: Corpus) -> dict[str, str]:
    return {row["name"].rsplit("/", 1)[-1]: row["reason"] for row in corpus.quarantined()}


def test_folders_are_walked_in_order_without_hidden_files(tmp_path: Path):
    for name in ("b.txt", "a/z.txt", "a/B.md", ".git/x.txt", "a/.hidden"):
        file = tmp_path / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    (tmp_path / "in" / "link.txt").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "in" / "pipe.txt")
    found = run(tmp_path, tmp_path / "in")
    assert [each.data for each in found] == [b"a/B.md", b"a/z.txt", b"b.txt"]
    assert set(reasons(found)) == {"link.txt", "pipe.txt"}
    assert set(reasons(found).values()) == {"it is not a regular file"}


def test_a_link_in_a_folder_does_not_hide_the_file_that_it_points_to(tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "target.txt").write_text("the text")
    (tmp_path / "in" / "a link.txt").symlink_to("target.txt")
    found = run(tmp_path, tmp_path / "in")
    assert names(found) == ["target.txt"]
    assert reasons(found) == {"a link.txt": "it is not a regular file"}


def test_patterns_links_and_repeated_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt", "c.md"):
        Path(name).write_text(name)
    Path("named").symlink_to("c.md")
    found = run(tmp_path, "*.txt", "named", "a.txt")
    assert names(found) == ["a.txt", "b.txt", "named"]
    with pytest.raises(ArgumentError, match=r"no file matches `\*.xml`"):
        run(tmp_path, "*.xml")
    with pytest.raises(ArgumentError, match=r"`a.tx`; did you mean `a.txt`\?.*--text"):
        run(tmp_path, "a.tx")


def test_the_output_is_not_an_input(tmp_path: Path):
    (tmp_path / "a.txt").write_text("a")
    for _ in range(2):
        assert names(run(tmp_path, tmp_path)) == ["a.txt"]


def test_wrong_arguments_leave_an_earlier_corpus_where_it_is(tmp_path: Path):
    out = run(tmp_path, *_file(tmp_path)).folder
    before = bits(out)
    for path, problem in (
        (tmp_path / "nosuch.txt", "there is no file or folder"),
        (tmp_path / "*.nope", "no file matches"),
        (out, "its own input"),
        (out / "documents", "its own input"),
    ):
        with pytest.raises(ArgumentError, match=problem):
            ingest([str(path)], out, workers=0)
        assert bits(out) == before
    with pytest.raises(DamagedError, match="not a valid reference"):
        ingest(["hf://models/a/b"], out, workers=0)
    assert bits(out) == before
    for options, problem in (
        ({"timeout": 0.0}, "`timeout` must be more than 0"),
        ({"timeout": float("nan")}, "`timeout` must be more than 0"),
        ({"settings": IngestSettings(model="nano", device="nosuch")}, "`nosuch`, which cannot"),
    ):
        with pytest.raises(ArgumentError, match=problem):
            ingest([], out, texts=["a"], **options)
        assert bits(out) == before


def test_folders_that_cannot_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("in/closed", "in/open"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "in" / "link").symlink_to("open")
    (tmp_path / "in" / "open" / "a.txt").write_bytes(TEXT)
    listed = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = run(tmp_path, tmp_path / "in")
    assert [each.data for each in found] == [TEXT]
    reasons = {Path(row["name"]).name: row["reason"] for row in found.quarantined()}
    assert reasons == {
        "closed": "the folder cannot be read",
        "link": "it is not a regular file",
    }


def test_an_empty_path_is_not_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    _file(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match=r"empty; the working folder is `\."):
        ingest([""], tmp_path / "out", workers=0)
    with pytest.raises(ArgumentError, match="a path is empty"):
        count_input([""])
    assert not (tmp_path / "out").exists()


def _file(tmp_path: Path) -> list[Path]:
    (tmp_path / "text.txt").write_bytes(TEXT)
    return [tmp_path / "text.txt"]


@pytest.mark.parametrize("pattern", ["drafts/*", "./drafts/*", "./*/a.txt"])
def test_patterns_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
):
    (tmp_path / "drafts").mkdir()
    for name in ("drafts/a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    assert [each.data for each in run(tmp_path, ".", include=(pattern,))] == [b"drafts/a.txt"]
    assert [each.data for each in run(tmp_path, ".", exclude=(pattern,))] == [b"b.txt"]


def test_include_and_exclude(tmp_path: Path):
    # Patterns do not see where the folder lies.
    tmp_path = tmp_path / "corpora"
    (tmp_path / "in").mkdir(parents=True)
    for name in ("a.txt", "b.md", "c.txt"):
        (tmp_path / "in" / name).write_text(name)
    (tmp_path / "in" / "d.tar").write_bytes(tar({"x.txt": b"x", "y.md": b"y"}, "w"))
    assert names(run(tmp_path, tmp_path / "in", include=("*.txt", "*.tar"))) == [
        "a.txt",
        "c.txt",
        "d.tar!x.txt",
    ]
    assert names(run(tmp_path, tmp_path / "in", exclude=("*.tar", "*/c*"))) == ["a.txt", "b.md"]


@pytest.mark.parametrize("newlines", [True, False])
def test_long_texts_are_cut_after_lines_or_characters(tmp_path: Path, newlines: bool):
    text = "".join(f"{n} Boxkämpfer" + ("\n" if newlines else " ") for n in range(4000))
    (tmp_path / "long.txt").write_text(text)
    found = run(tmp_path, tmp_path / "long.txt", document_bytes=10_000)
    parts = [each.data for each in found]
    assert b"".join(parts).decode() == text
    assert len(parts) == -(-len(text.encode()) // 10_000)
    for part in parts:
        part.decode()
        assert len(part) < 10_000 + (1 << 14)
        assert not newlines or part.endswith(b"\n")


def test_units_of_a_long_file_give_the_documents_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    data = np.random.default_rng(0).integers(0, 256, 60_000, dtype=np.uint8).tobytes()
    (tmp_path / "noise.dat").write_bytes(b"\x01" + data)
    whole = [each.data for each in run(tmp_path, tmp_path / "noise.dat", document_bytes=2048)]
    monkeypatch.setattr(_units, "BLOCK", 4096)
    parts = [each.data for each in run(tmp_path, tmp_path / "noise.dat", document_bytes=2048)]
    assert parts == whole
    assert b"".join(parts) == b"\x01" + data


def test_rows_of_blocks_are_those_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    rows = [{"text": f"row {n} " + "x" * (n * 7 % 50)} for n in range(60)]
    lines = [json.dumps(row) for row in rows]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    whole = run(tmp_path, tmp_path / "rows.jsonl")
    assert [each.data.decode() for each in whole] == [row["text"] for row in rows]
    for module in ("_units", "_rows"):
        monkeypatch.setattr(f"hotgrid.blt._ingest._inputs.{module}.BLOCK", 101)
    assert names(run(tmp_path, tmp_path / "rows.jsonl")) == names(whole)
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    packed = run(tmp_path, tmp_path / "rows.jsonl.gz")
    assert [each.data.decode() for each in packed] == [row["text"] for row in rows]


def test_a_line_of_many_blocks_is_read_twice_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "rows.jsonl").write_bytes(b"x" * 400_000 + b'\n{"text": "last"}')
    reads: list[int] = []

    class Counted(io.BufferedReader):
        def readline(self, size: int | None = -1) -> bytes:
            line = super().readline(-1 if size is None else size)
            reads.append(len(line))
            return line

    for module in ("_units", "_rows"):
        monkeypatch.setattr(f"hotgrid.blt._ingest._inputs.{module}.BLOCK", 4096)
    monkeypatch.setattr(_rows, "_STEP", 4096, raising=False)
    monkeypatch.setattr(os, "fdopen", lambda number, _: Counted(io.FileIO(number)))
    settings = IngestSettings(file_bytes=2048, document_bytes=1024)
    units = list(list_units([str(tmp_path / "rows.jsonl")], [], settings))
    fault, last = [each for unit in units for each in read_unit(unit, settings)]
    assert isinstance(fault, Fault)
    assert isinstance(last, Record)
    assert len(units) == 98
    assert sum(reads) < 3 * 400_000


def test_columns_are_mapped_by_type(tmp_path: Path):
    row = {
        "id": "first",
        "caption": "a picture",
        "image": {"bytes": base64.b64encode(png()).decode(), "path": "x.png"},
        "turns": [{"role": "user"}],
        "count": 3,
        "none": None,
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    [document] = run(tmp_path, tmp_path / "rows.jsonl")
    views = {each["label"]: each for each in document.row["views"]}
    assert list(views) == ["caption/text", "image/image", "turns/text"]
    assert document.row["name"].endswith("@0:first")
    assert document.row["modality"] == "mixed"
    assert document.data[: len("a picture")] == b"a picture"
    assert views["image/image"]["extra"]["width"] == 40
    # No patch goes over from one view to the next.
    ends = set(np.cumsum(document.tensors["patch_lengths"]).tolist())
    assert {each["end"] for each in views.values()} <= ends
    [chosen] = run(tmp_path, tmp_path / "rows.jsonl", columns=("caption",))
    assert chosen.data == b"a picture"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[1, 2]", "a list, not an object"),
        ("null", "is null, not an object"),
        ("true", "a truth value, not an object"),
        ("1e999", "a number, not an object"),
        ('{"a": 1}', "no text and no media"),
        ('{"a": ', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"image": {"path": "/etc/passwd"}}', "only hf:// is followed"),
        ('{"image": {"bytes": "***"}}', "not base64"),
        (json.dumps({"text": "x" * 5000}), "above the limit of 4,096"),
    ],
)
def test_rows_that_cannot_be_read(tmp_path: Path, line: str, reason: str):
    (tmp_path / "rows.jsonl").write_text(f'{{"text": "good"}}\n{line}\n"last"\n')
    found = run(tmp_path, tmp_path / "rows.jsonl", file_bytes=4096, document_bytes=2048)
    assert [each.data for each in found] == [b"good", b"last"]
    [said] = reasons(found).values()
    assert reason in said or (line[0] == "[" and "above the limit" in said)


def test_objects_with_a_path_of_their_own_are_json(tmp_path: Path):
    """Such as of a data set of source code; only `bytes` and `path` alone are media."""
    rows = [
        {"text": "one", "meta": {"path": "src/a.py", "repo": "x"}},
        {"text": "two", "meta": {"bytes": 12}},
        {"text": "three", "meta": {"bytes": "no base64", "note": "x"}},
        {"text": "four", "meta": [{"bytes": "no base64", "at": 1}]},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = run(tmp_path, tmp_path / "rows.jsonl")
    metas = [json.dumps(row["meta"], sort_keys=True) for row in rows]
    assert [each.data.decode() for each in found] == [
        row["text"] + meta for row, meta in zip(rows, metas, strict=True)
    ]


def test_columns_can_have_any_name(tmp_path: Path):
    """JSON can name half a character, which SQLite cannot hold."""
    lines = ['{"\\ud800": "one", "b": "two"}', '{"\\udc80": "three", "b": "four"}']
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    found = run(tmp_path, tmp_path / "rows.jsonl")
    assert [each.data for each in found] == [b"onetwo", b"threefour"]
    labels = [[view["label"] for view in row["views"]] for row in found.rows()]
    assert labels == [["\\ud800/text", "b/text"], ["\\udc80/text", "b/text"]]


def test_columns_of_one_name_are_refused(tmp_path: Path):
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    parquet.write_table(table, tmp_path / "data.parquet")
    found = run(tmp_path, tmp_path / "data.parquet")
    assert len(found) == 0
    assert reasons(found) == {"data.parquet#0": "it has more than one column `text`"}


def test_bytes_in_other_objects_are_base64(tmp_path: Path):
    table = pa.table({"text": ["x"], "keys": [[{"key": b"\0\xff", "n": 1}]]})
    parquet.write_table(table, tmp_path / "data.parquet")
    [document] = run(tmp_path, tmp_path / "data.parquet")
    assert document.data == b'x[{"key": "AP8=", "n": 1}]'


def test_parquet_by_row_groups(tmp_path: Path):
    texts = [f"row {n}" for n in range(25)]
    images = [{"bytes": png(seed=n), "path": None} if n < 2 else None for n in range(25)]
    table = pa.table({"text": texts, "image": images, "number": list(range(25))})
    parquet.write_table(table, tmp_path / "data.parquet", row_group_size=10)
    found = run(tmp_path, tmp_path / "data.parquet", columns=("text",))
    assert [each.data.decode() for each in found] == texts
    assert names(found)[10] == "data.parquet#1.0"
    both = run(tmp_path, tmp_path / "data.parquet")
    assert [row["modality"] for row in both.rows()][:3] == ["mixed", "mixed", "text"]
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing PAR1")
    bad = run(tmp_path, tmp_path / "bad.parquet")
    assert "not a parquet file" in reasons(bad)["bad.parquet"]


def test_lists_of_media_are_views_of_a_row(tmp_path: Path):
    images = [{"bytes": png(seed=n), "path": f"{n}.png"} for n in range(2)]
    table = pa.table({"text": ["two"], "images": [images], "raw": [[png(seed=2)]]})
    parquet.write_table(table, tmp_path / "data.parquet")
    [document] = run(tmp_path, tmp_path / "data.parquet")
    views = {view["label"]: view["modality"] for view in document.row["views"]}
    assert views == {
        "text/text": "text",
        "images/0/image": "image",
        "images/1/image": "image",
        "raw/0/image": "image",
    }


def test_arrow_files_are_not_taken_for_bytes(tmp_path: Path):
    table = pa.table({"text": ["one", "two"]})
    (tmp_path / "in").mkdir()
    with pa.ipc.new_stream(tmp_path / "in" / "data.arrow", table.schema) as file:
        file.write_table(table)
    parquet.write_table(table, tmp_path / "in" / "data.parquet")
    found = run(tmp_path, tmp_path / "in")
    assert [each.data for each in found] == [b"one", b"two"]
    assert "write the rows as parquet" in reasons(found)["data.arrow"]


def test_times_in_parquet_are_left_out(tmp_path: Path):
    """Python has no value for some, and for others only with pandas."""
    kinds = (pa.timestamp("ns"), pa.duration("ns"), pa.time64("ns"), pa.timestamp("s"))
    some = {f"t{n}": pa.array([10**13 + 1, 7], kind) for n, kind in enumerate(kinds)}
    parquet.write_table(pa.table({"text": ["one", "two"], **some}), tmp_path / "data.parquet")
    found = run(tmp_path, tmp_path / "data.parquet")
    assert [each.data for each in found] == [b"one", b"two"]
    nothing = run(tmp_path, tmp_path / "data.parquet", columns=("t0",))
    assert list(reasons(nothing)) == ["data.parquet#0.0", "data.parquet#0.1"]
    assert "no text and no media in its columns (t0)" in reasons(nothing)["data.parquet#0.0"]


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "tgz", "tar.bz2", "tar.xz", "zip"])
def test_archives(tmp_path: Path, ending: str):
    members = {"a.txt": b"first", "b/image.png": png(), "long.txt": LINES}
    data = zipped(members) if ending == "zip" else tar(members, "w:" + PACKED[ending])
    (tmp_path / f"some.{ending}").write_bytes(data)
    found = run(tmp_path, tmp_path / f"some.{ending}", document_bytes=4096)
    assert [row["modality"] for row in found.rows()] == ["text", "image", *["text"] * 4]
    joined = b"".join(each.data for each in found if "long" in each.row["name"])
    assert joined == members["long.txt"]
    assert names(found)[0] == f"some.{ending}!a.txt"


def test_packed_files_and_archives_in_archives(tmp_path: Path):
    inner = zipped({"deep.txt": b"deep"})
    for _ in range(2):
        inner = zipped({"in.zip": inner, "at.txt": TEXT[: len(inner) % 40 + 3]})
    (tmp_path / "outer.zip").write_bytes(inner)
    found = run(tmp_path, tmp_path / "outer.zip")
    assert names(found)[0] == "outer.zip!in.zip!in.zip!deep.txt"
    (tmp_path / "more.zip").write_bytes(zipped({"outer.zip": inner}))
    assert "depth of 3" in next(iter(reasons(run(tmp_path, tmp_path / "more.zip")).values()))
    for ending, pack in (("gz", gzip), ("bz2", bz2), ("xz", lzma)):
        (tmp_path / f"x.txt.{ending}").write_bytes(pack.compress(TEXT))
        [document] = run(tmp_path, tmp_path / f"x.txt.{ending}")
        assert document.data == TEXT


def test_bombs_are_refused_with_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_archives, "_FREE", 1 << 17)
    zeros = bytes(1 << 19)
    bombs = {
        "a.gz": gzip.compress(zeros),
        "b.zip": zipped({"x.txt": zeros}),
        "c.tar.gz": tar({"x.txt": zeros}),
        "d.bz2": bz2.compress(zeros),
        "e.jsonl.gz": gzip.compress(b"\n" * len(zeros)),
    }
    for name, data in bombs.items():
        (tmp_path / name).write_bytes(data)
        found = run(tmp_path, tmp_path / name)
        reason = list(reasons(found).values())[-1]
        assert "500 times its size, the limit (a decompression bomb?)" in reason
        small = run(tmp_path, tmp_path / name, archive_bytes=100_000)
        assert "100,000 bytes, the limit" in list(reasons(small).values())[-1]


def test_members_do_not_leave_the_archive(tmp_path: Path):
    (tmp_path / "bad.tar").write_bytes(tar({"../../up.txt": b"up", "/etc/x": b"x"}, "w"))
    found = run(tmp_path, tmp_path / "bad.tar")
    assert [each.data for each in found] == [b"up", b"x"]
    inside = {path.name for path in tmp_path.iterdir()}
    assert inside == {"bad.tar", "out"}


def test_files_that_must_be_whole_have_a_limit(tmp_path: Path):
    data = png(200, 200)
    (tmp_path / "large.png").write_bytes(data)
    found = run(tmp_path, tmp_path / "large.png", file_bytes=5000, document_bytes=5000)
    assert "(--file-bytes)" in reasons(found)["large.png"]
    (tmp_path / "large.zip").write_bytes(zipped({"x.png": data}))
    found = run(tmp_path, tmp_path / "large.zip", file_bytes=5000, document_bytes=5000)
    assert "(--file-bytes)" in reasons(found)["large.zip!x.png"]


def test_a_limit_takes_the_first_documents(tmp_path: Path):
    (tmp_path / "in").mkdir()
    for n in range(6):
        (tmp_path / "in" / f"{n}.txt").write_text("" if n == 1 else str(n))
    found = run(tmp_path, tmp_path / "in", limit=3)
    assert [each.data for each in found] == [b"0", b"2", b"3"]
    assert len(list((tmp_path / "out" / "documents").rglob("*.safetensors"))) == 3
    (tmp_path / "rows.jsonl").write_text("\n".join(f'"{n}"' for n in range(9)))
    assert len(run(tmp_path, tmp_path / "rows.jsonl", limit=4)) == 4


@pytest.mark.parametrize("workers", [0, 2])
def test_a_limit_ends_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int):
    (tmp_path / "in").mkdir()
    for n in range(50):
        (tmp_path / "in" / f"{n:02}.txt").write_text(f"text {n}")
    done = []
    work, give = _pool.Worker.work, _pool.Processes._give
    monkeypatch.setattr(
        _pool.Worker, "work", lambda *a, **more: done.append(1) or work(*a, **more)
    )
    monkeypatch.setattr(_pool.Processes, "_give", lambda *a: done.append(1) or give(*a))
    made = IngestSettings(limit=3)
    ingest([str(tmp_path / "in")], tmp_path / "out", made, workers=workers)
    assert [each.data for each in Corpus(tmp_path / "out")] == [b"text 0", b"text 1", b"text 2"]
    assert 3 <= len(done) <= 3 + workers


def test_counts_without_writing(tmp_path: Path):
    (tmp_path / "a.png").write_bytes(png()[:60])
    (tmp_path / "b.txt").write_bytes(TEXT)
    (tmp_path / "c.txt").write_bytes(b"")
    found = count_input([str(tmp_path)], texts=["more"])
    assert found == {
        "image": {"documents": 1, "bytes": 60},
        "text": {"documents": 2, "bytes": len(TEXT) + 4},
        "quarantined": {"documents": 1},
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "b.txt", "c.txt"]
    limited = count_input([str(tmp_path)], IngestSettings(limit=1), texts=["more"])
    assert limited == {"text": {"documents": 1, "bytes": 4}}


def test_the_output_is_not_counted(tmp_path: Path):
    (tmp_path / "a.txt").write_text("a text")
    run(tmp_path, tmp_path / "a.txt")
    found = count_input([str(tmp_path)], out=tmp_path / "out")
    assert found == {"text": {"documents": 1, "bytes": 6}}


def test_a_reason_is_the_same_in_every_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Messages of decoders can say where an object lies in memory."""
    (tmp_path / "a.gif").write_bytes(b"GIF89a" + bytes(20))
    assert reasons(run(tmp_path, tmp_path / "a.gif")) == {
        "a.gif": "the image is damaged: it cannot be identified"
    }
    fault = Fault("x", f"cannot read {object()}")
    monkeypatch.setattr(_work, "read_unit", lambda unit, settings: iter([fault]))
    assert reasons(run(tmp_path, tmp_path / "a.gif")) == {"x": "cannot read <object object>"}


def test_standard_input_is_counted(monkeypatch: pytest.MonkeyPatch):
    class Stdin:
        buffer = io.BytesIO(TEXT)

    monkeypatch.setattr("sys.stdin", Stdin)
    assert count_input(["-"]) == {"text": {"documents": 1, "bytes": len(TEXT)}}


def exact(a: str, b: str) -> float:
    """The Jaccard similarity of shingles, counted."""
    one, two = (
        {each[at : at + 12] for at in range(len(each) - 11)}
        for each in (" ".join(text.lower().split()) for text in (a, b))
    )
    return len(one & two) / len(one | two)


def words(seed: int, count: int) -> list[str]:
    letters = np.random.default_rng(seed).integers(97, 123, (count, 6), dtype=np.uint8)
    return [bytes(row).decode() for row in letters]


@pytest.mark.parametrize("count", [40, 400])
@pytest.mark.parametrize("changed", [0.0, 0.02, 0.1, 0.3])
def test_signatures_estimate_the_similarity_of_texts(count: int, changed: float):
    """128 bins: a standard deviation of at most 0.045; the mean of 20 pairs is closer."""
    estimates, wanted = [], []
    for seed in range(20):
        first = words(seed, count)
        other = list(first)
        for at in np.random.default_rng(seed).choice(count, int(changed * count), False):
            other[at] = "changed"
        a, b = " ".join(first), "  ".join(other).upper()
        estimates.append(similarity(signature(a.encode()), signature(b.encode())))
        wanted.append(exact(a, b))
    assert abs(np.mean(estimates) - np.mean(wanted)) < 0.04


def test_near_duplicates_are_found_by_buckets():
    documents = [" ".join(words(seed, 300)) for seed in range(30)]
    near = NearDuplicates(0.8)
    for number, each in enumerate(documents):
        assert near.find(str(number), signature(each.encode())) is None
    for number, each in enumerate(documents):
        changed = each.replace(each[600:606], "xxxxxx")
        found = near.find("again", signature(changed.encode()))
        assert found is not None
        assert found[0] == str(number)


def test_near_duplicates_are_left_out(tmp_path: Path):
    (tmp_path / "in").mkdir()
    text = " ".join(words(0, 300))
    (tmp_path / "in" / "a.txt").write_text(text)
    (tmp_path / "in" / "b.txt").write_text(text.replace(text[70:80], "Something"))
    (tmp_path / "in" / "c.txt").write_text(" ".join(words(1, 300)))
    found = run(tmp_path, tmp_path / "in", near=0.8)
    assert names(found) == ["a.txt", "c.txt"]
    [row] = map(json.loads, (found.folder / "duplicates.jsonl").read_text().splitlines())
    assert (row["name"][-5:], row["of"][-5:]) == ("b.txt", "a.txt")
    assert 0.8 <= row["similarity"] < 1
    assert len(run(tmp_path, tmp_path / "in")) == 3
    (tmp_path / "in" / "b2.txt").write_bytes((tmp_path / "in" / "b.txt").read_bytes())
    copied = run(tmp_path, tmp_path / "in", near=0.8).folder / "duplicates.jsonl"
    # What is named is in the corpus, also for a copy of a document that was left out.
    lines = [json.loads(line) for line in copied.read_text().splitlines()]
    assert [(each["of"][-5:], each["similarity"]) for each in lines] == [
        ("a.txt", row["similarity"])
    ] * 2
    (tmp_path / "in" / "b2.txt").unlink()
    (tmp_path / "in" / "d.txt").write_text(text)
    assert len(run(tmp_path, tmp_path / "in", duplicates=True)) == 4
