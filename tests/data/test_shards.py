"""Documents in files."""

import bz2
import gzip
import itertools
import json
import lzma
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hotgrid.data import Position, Shards
from hotgrid.errors import ArgumentError, DamagedError


def write_lines(path, texts):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))


@pytest.fixture
def folder(tmp_path):
    """Three kinds of files, of which one has many blocks."""
    write_lines(tmp_path / "long.jsonl", [f"long {n} " + "x" * (n % 700) for n in range(3000)])
    write_lines(tmp_path / "short.jsonl", ["short 0", "short 1"])
    (tmp_path / "plain.txt").write_text("a plain text")
    table = pa.table({"text": [f"row {n}" for n in range(50)], "id": list(range(50))})
    pq.write_table(table, tmp_path / "table.parquet", row_group_size=8)
    return tmp_path


def texts(shards, *args, **options):
    return [document.text for document in shards.read(*args, **options)]


def test_every_document_comes_once_in_an_epoch(folder):
    found = texts(Shards([folder]), epochs=1)
    wanted = [f"long {n} " + "x" * (n % 700) for n in range(3000)]
    wanted += ["short 0", "short 1", "a plain text", *(f"row {n}" for n in range(50))]
    assert sorted(found) == sorted(wanted)


def test_epochs_have_their_own_order_which_is_the_seed_s(folder):
    paths = []
    for number in range(6):
        write_lines(folder / f"part{number}.jsonl", [f"{number}"])
        paths.append(folder / f"part{number}.jsonl")
    both = texts(Shards(paths, seed=3), epochs=2)
    assert sorted(both[:6]) == sorted(both[6:]) == [str(n) for n in range(6)]
    assert both[:6] != both[6:]
    assert both == texts(Shards(paths, seed=3), epochs=2)
    assert both != texts(Shards(paths, seed=4), epochs=2)
    assert texts(Shards(paths, shuffle=False), epochs=2) == [str(n) for n in range(6)] * 2


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
def test_ranks_share_the_documents(folder, ranks):
    shards = Shards([folder])
    parts = [texts(shards, rank=rank, ranks=ranks, epochs=1) for rank in range(ranks)]
    assert all(parts)
    assert sorted(itertools.chain(*parts)) == sorted(texts(shards, epochs=1))


def test_ranks_share_the_rows_of_few_blocks(tmp_path):
    write_lines(tmp_path / "a.jsonl", [str(n) for n in range(10)])
    shards = Shards([tmp_path])
    assert texts(shards, rank=1, ranks=4, epochs=1) == ["1", "5", "9"]


@pytest.mark.parametrize("rank", [0, 1])
def test_reading_continues_after_any_document(folder, rank):
    shards = Shards([folder], seed=1)
    documents = list(shards.read(rank=rank, ranks=2, epochs=2))
    for at in range(0, len(documents), 97):
        rest = list(shards.read(documents[at].after, rank=rank, ranks=2, epochs=2))
        assert rest == documents[at + 1 :]


@pytest.mark.parametrize(
    ("suffix", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)]
)
def test_compressed_files_are_read(tmp_path, suffix, pack):
    lines = "".join(json.dumps({"text": str(n)}) + "\n" for n in range(100))
    (tmp_path / f"a.jsonl.{suffix}").write_bytes(pack(lines.encode()))
    (tmp_path / f"b.txt.{suffix}").write_bytes(pack(b"text"))
    found = texts(Shards([tmp_path], shuffle=False), epochs=1)
    assert found == [*(str(n) for n in range(100)), "text"]


def test_lines_belong_to_the_block_of_their_first_byte(tmp_path):
    """Lines that end exactly at the border of a block, or go far beyond it."""
    block = 1 << 18
    first = json.dumps({"text": "a" * (block - 13)}) + "\n"
    assert len(first) == block
    write_lines(tmp_path / "rest.jsonl", ["b", "c" * 3 * block, "d"])
    (tmp_path / "a.jsonl").write_text(first + (tmp_path / "rest.jsonl").read_text())
    shards = Shards([tmp_path / "a.jsonl"])
    assert [text[0] for text in texts(shards, epochs=1)] == ["a", "b", "c", "d"]
    parts = [texts(shards, rank=rank, ranks=2, epochs=1) for rank in range(2)]
    assert sorted(text[0] for part in parts for text in part) == ["a", "b", "c", "d"]


def test_a_text_file_may_hold_several_documents(tmp_path):
    (tmp_path / "a.txt").write_text("one\n%\ntwo\n%\nthree")
    assert texts(Shards([tmp_path], separator="\n%\n"), epochs=1) == ["one", "two", "three"]


def test_whole_objects_and_other_columns(folder):
    pick = Shards([folder / "table.parquet"], column=None, shuffle=False)
    assert texts(pick, epochs=1)[3] == {"text": "row 3", "id": 3}
    assert texts(Shards([folder / "table.parquet"], column="id"), epochs=1) == list(range(50))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl", b'{"text": "x"}\n{"text": \n', "a.jsonl` at byte 14"),
        ("a.jsonl", b'{"txt": "x"}\n', "no `text`; it has `txt`"),
        ("a.jsonl", b"[1]\n", "no `text`"),
        ("a.jsonl.gz", b"not gzip", "a.jsonl.gz` cannot be read"),
        (
            "a.jsonl.gz",
            gzip.compress(b'{"text": "x"}\n' * 99, mtime=0)[:-9],
            "a.jsonl.gz` cannot be read",
        ),
        ("a.txt.xz", lzma.compress(b"x" * 99)[:40] + b"#" * 40, "a.txt.xz` cannot be read"),
        ("a.txt.gz", gzip.compress(b"x", mtime=0)[:10] + b"#" * 40, "a.txt.gz` cannot be read"),
        ("a.txt", b"\xff\xfe", "a.txt` cannot be read"),
        ("a.jsonl", b"[" * 100_000, r"^`.*a.jsonl` at byte 0 is not a line of JSON"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DamagedError, match=words):
        texts(Shards([tmp_path / name]), epochs=1)


def test_a_byte_order_mark_is_no_text(tmp_path):
    for name, content in (("a.txt", "one"), ("b.jsonl", '{"text": "one"}')):
        (tmp_path / name).write_bytes(content.encode("utf-8-sig"))
        assert texts(Shards([tmp_path / name]), epochs=1) == ["one"]


def test_tables_without_the_column_and_no_tables(folder):
    with pytest.raises(DamagedError, match=r"no column `txt`; did you mean `text`\?"):
        texts(Shards([folder / "table.parquet"], column="txt"), epochs=1)
    (folder / "bad.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DamagedError, match=r"bad\.parquet"):
        Shards([folder / "bad.parquet"])


def test_paths_that_name_nothing_are_errors(tmp_path):
    with pytest.raises(ArgumentError, match=r"`.*none/\*\.jsonl`: no file"):
        Shards([tmp_path / "none" / "*.jsonl"])
    (tmp_path / "a.zip").write_bytes(b"")
    with pytest.raises(ArgumentError, match=r"a\.zip`: hotgrid reads"):
        Shards([tmp_path / "a.zip"])


def test_a_pipe_in_a_folder_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(ArgumentError):
        Shards([tmp_path])


def test_no_document_at_all_is_an_error_not_a_loop(tmp_path):
    (tmp_path / "a.jsonl").write_text("\n\n")
    with pytest.raises(ArgumentError, match="no document"):
        next(Shards([tmp_path]).read())


def test_a_rank_that_is_not_there(folder):
    with pytest.raises(ArgumentError, match="`rank` 2"):
        next(Shards([folder]).read(rank=2, ranks=2))


def test_a_position_is_three_numbers():
    assert Position() == (0, 0, 0)
