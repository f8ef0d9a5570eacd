"""Formats of sources: odd and hostile files, and what each format promises."""

import gzip
import io
import json
import os
import struct
import tarfile
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings, strategies as st

from hotgrid.data import (
    ArrowFiles,
    ClassFolders,
    Concatenated,
    HubFolder,
    IdxFiles,
    JsonLines,
    Order,
    Pad,
    Plan,
    PlanBatches,
    Selected,
    Split,
    TarShards,
)
from hotgrid.errors import ArgumentError, DamagedError


def photos(place: Path) -> Path:
    for name in ("cat/1.jpg", "cat/2.JPG", "cat/notes.txt", "dog/x/3.png", "9.jpg"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(name.encode())
    (place / "empty").mkdir()
    return place


def test_class_folders_are_sorted_and_leave_out_other_files(tmp_path):
    opened = ClassFolders(str(photos(tmp_path))).open()
    rows = [opened.read(n, ["path", "label", "class_name"]) for n in range(len(opened))]
    assert [(*row.values(),) for row in rows] == [
        ("cat/1.jpg", 0, "cat"),
        ("cat/2.JPG", 0, "cat"),
        ("dog/x/3.png", 1, "dog"),
    ]
    assert opened.facts == {"classes": ["cat", "dog"]}
    assert opened.read(2, ["data"]) == {"data": b"dog/x/3.png"}
    with pytest.raises(ArgumentError, match=r"no folder with files that end in \.gif"):
        ClassFolders(str(tmp_path), (".gif",)).open()


def test_a_link_in_a_class_folder_is_refused_unless_asked_for(tmp_path):
    place = photos(tmp_path / "photos")
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    (place / "cat" / "3.jpg").symlink_to(tmp_path / "secret.jpg")
    with pytest.raises(DamagedError, match=r"cat/3\.jpg` is a link"):
        ClassFolders(str(place)).open()
    opened = ClassFolders(str(place), links=True).open()
    assert opened.read(2, ["data"]) == {"data": b"secret"}


def test_a_file_that_becomes_a_link_is_refused(tmp_path):
    place = photos(tmp_path)
    opened = ClassFolders(str(place)).open()
    (place / "cat" / "1.jpg").unlink()
    with pytest.raises(DamagedError, match="missing"):
        opened.read(0, ["data"])
    (place / "cat" / "1.jpg").symlink_to(place / "cat" / "2.JPG")
    with pytest.raises(DamagedError, match="regular"):
        opened.read(0, ["data"])


def test_a_pipe_is_refused_and_never_waited_for(tmp_path):
    place = photos(tmp_path)
    os.mkfifo(place / "cat" / "pipe.jpg")
    with pytest.raises(DamagedError, match=r"pipe\.jpg` is a pipe"):
        ClassFolders(str(place)).open()
    os.mkfifo(tmp_path / "a.tar")
    with pytest.raises(DamagedError, match=r"a\.tar` is a pipe"):
        TarShards((str(tmp_path / "a.tar"),), {"jpg": "bytes"}).open()
    os.mkfifo(tmp_path / "labels")
    with pytest.raises(DamagedError, match="labels` is a pipe"):
        IdxFiles({"label": str(tmp_path / "labels")}).columns()


def idx(data: bytes, *sizes: int, kind: int = 8) -> bytes:
    return struct.pack(f">BBBB{len(sizes)}I", 0, 0, kind, len(sizes), *sizes) + data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        idx(b"", 3),
        idx(b"1234", 3),
        idx(b"", 2**31, 2**31),
        idx(b"", 2**32 - 1),
        idx(b"123", 3, kind=7),
        b"\0\0\x08\x03\0\0",
    ],
    ids=["empty", "text", "short", "long", "huge", "large", "type", "head"],
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_damaged_idx_files_are_named(data, packed, tmp_path):
    path = tmp_path / ("a.gz" if packed else "a")
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(DamagedError, match=str(path)):
        IdxFiles({"label": str(path)}).open()


def test_a_cut_gz_is_named(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(idx(os.urandom(1000), 1000))[:-200])
    with pytest.raises(DamagedError, match=r"a\.gz"):
        IdxFiles({"label": str(tmp_path / "a.gz")}).open()


def test_idx_numbers_are_big_endian(tmp_path):
    values = np.array([1, -2, 70000], ">i4")
    (tmp_path / "a").write_bytes(idx(values.tobytes(), 3, kind=12))
    (tmp_path / "b").write_bytes(idx(values.astype(">f8").tobytes(), 3, 1, kind=14))
    source = IdxFiles({"a": str(tmp_path / "a"), "b": str(tmp_path / "b")})
    assert {name: str(kind) for name, kind in source.columns().items()} == {
        "a": "int64",
        "b": "float64[1]",
    }
    assert source.open().values("a") == [1, -2, 70000]
    assert source.open().read(2, ["b"])["b"].tolist() == [70000.0]
    (tmp_path / "c").write_bytes(idx(b"12", 2))
    with pytest.raises(ArgumentError, match="different numbers of samples"):
        IdxFiles({"a": str(tmp_path / "a"), "c": str(tmp_path / "c")}).open()


@settings(max_examples=30)
@given(st.lists(st.text(max_size=20), max_size=12), st.booleans(), st.data())
def test_every_line_of_json_is_found(texts, ends, data):
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "a.jsonl"
        blank = st.sampled_from(["\n", "\r\n", "\n\n", "\n  \n"])
        lines = [json.dumps({"t": t}) + data.draw(blank) for t in [*texts, "last"]]
        text = "".join(lines)
        path.write_bytes((text if ends else text.rstrip()).encode())
        found = JsonLines((str(path),), {"t": "text"}).open().values("t")
    assert found == [*texts, "last"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "not a line of JSON"),
        ("[1]", "not a JSON object"),
        ('{"y": 1}', "no `x`"),
        ('{"x": "a"}', "column `x` is 'a' instead of int64"),
        ('{"x": [1]}', "column `x` is a shape"),
        ("[" * 100_000, "not a line of JSON"),
    ],
    ids=[str(n) for n in range(6)],
)
def test_a_damaged_line_is_named(line, words, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n' + line + "\n")
    opened = JsonLines((str(tmp_path),), {"x": "int64"}).open()
    assert opened.read(0, ["x"]) == {"x": 1}
    with pytest.raises(DamagedError, match=words):
        opened.read(1, ["x"])
    assert opened.place(1) == f"{tmp_path / 'a.jsonl'} at byte 9"


def shard(path: Path, *members: tuple[str, bytes] | tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as opened:
        for each in members:
            if isinstance(each, tarfile.TarInfo):
                opened.addfile(each)
            else:
                info = tarfile.TarInfo(each[0])
                info.size = len(each[1])
                opened.addfile(info, io.BytesIO(each[1]))
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname = kind, target
    return found


@pytest.mark.parametrize(
    ("member", "words"),
    [
        (("../1.jpg", b"a"), r"`\.\./1\.jpg` outside"),
        (("a/../../1.jpg", b"a"), "outside"),
        (("/etc/1.jpg", b"a"), r"`/etc/1\.jpg` outside"),
        (special("1.jpg", tarfile.SYMTYPE, "/etc/passwd"), r"`1\.jpg` that is a link"),
        (special("1.jpg", tarfile.LNKTYPE, "0.jpg"), "a link"),
        (special("1.jpg", tarfile.FIFOTYPE), "not a regular file"),
        (special("1.jpg", tarfile.CHRTYPE), "not a regular file"),
    ],
    ids=["above", "inside above", "absolute", "link", "hard link", "pipe", "device"],
)
def test_hostile_members_of_a_tar_are_refused(member, words, tmp_path):
    path = shard(tmp_path / "a.tar", ("0.jpg", b"fine"), member)
    with pytest.raises(DamagedError, match=words):
        TarShards((str(path),), {"jpg": "bytes"}).open()


def test_samples_of_a_tar(tmp_path):
    shard(
        tmp_path / "a.tar",
        ("x/1.jpg", b"one"),
        ("x/1.seg.png", b"mask"),
        ("x/1.json", b'{"a": 1}'),
        ("x/2.jpg", b"two, incomplete"),
        ("x/3.JPG", b"three"),
        ("x/3.json", b"not json"),
        ("x/3.seg.png", b""),
        ("x/3.other", b""),
    )
    types = {"jpg": "bytes", "seg.png": "bytes", "json": "json"}
    opened = TarShards((str(tmp_path),), types, most_bytes=8).open()
    assert opened.read(0, ["key", "jpg", "seg_png", "json"]) == {
        "key": "x/1",
        "jpg": b"one",
        "seg_png": b"mask",
        "json": {"a": 1},
    }
    assert len(opened) == 2 and opened.facts == {"incomplete": 1}
    assert opened.place(1) == f"{tmp_path / 'a.tar'} member x/3"
    with pytest.raises(DamagedError, match="column `json` cannot be read"):
        opened.read(1, ["json"])
    small = TarShards((str(tmp_path),), types, most_bytes=2).open()
    with pytest.raises(DamagedError, match="more than `most_bytes` 2"):
        small.read(0, ["jpg"])
    with pytest.raises(ArgumentError, match="no member that ends in gif"):
        TarShards((str(tmp_path),), {"gif": "bytes"}).open()


def test_arrays_of_a_tar_are_arrays_in_a_batch(tmp_path):
    members = [(f"{n}.{kind}", b"[%d, 2]" % n) for n in range(2) for kind in ("row", "ids")]
    path = shard(tmp_path / "a.tar", *members)
    rows = TarShards((str(path),), {"row": "float32[2]", "ids": "int64[?]"})
    plan = Plan(rows, order=Order(shuffle=False)).then(Pad(3), "ids", "padded")
    with PlanBatches(plan.yielding("row", "padded"), 2) as batches:
        batch = next(batches)
    assert batch["row"].tolist() == [[0.0, 2.0], [1.0, 2.0]]
    assert batch["padded"].tolist() == [[0, 2, 0], [1, 2, 0]]


def test_what_is_no_tar_is_refused(tmp_path):
    (tmp_path / "a.tar").write_bytes(b"hello" * 1000)
    with pytest.raises(DamagedError, match="not an uncompressed tar"):
        TarShards((str(tmp_path),), {"jpg": "bytes"}).open()
    path = shard(tmp_path / "a.tar", ("1.jpg", b"x" * 5000))
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(DamagedError, match=r"a\.tar"):
        TarShards((str(tmp_path),), {"jpg": "bytes"}).open()
    with pytest.raises(ArgumentError, match="million"):
        TarShards(("a-{0..99999999}.tar",), {"jpg": "bytes"}).open()


def test_arrow_files_that_differ_are_refused(tmp_path):
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "a.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"b": [1]}), tmp_path / "b.parquet")
    with pytest.raises(DamagedError, match=r"b\.parquet` has other columns"):
        ArrowFiles((str(tmp_path),)).open()
    (tmp_path / "b.parquet").write_bytes(b"hello")
    with pytest.raises(DamagedError, match=r"b\.parquet` is not a parquet file"):
        ArrowFiles((str(tmp_path),)).open()
    (tmp_path / "c.arrow").write_bytes(b"hello, this is no arrow file at all")
    with pytest.raises(DamagedError, match=r"c\.arrow` is not an Arrow file"):
        ArrowFiles((str(tmp_path / "c.arrow"),)).open()


def test_nulls_are_damaged_samples(tmp_path):
    pyarrow.parquet.write_table(pyarrow.table({"a": [1, None]}), tmp_path / "a.parquet")
    opened = ArrowFiles((str(tmp_path),)).open()
    with pytest.raises(DamagedError, match="column `a` is null"):
        opened.read(1, ["a"])


def test_a_null_inside_a_list_is_damage(tmp_path):
    # NumPy would make a float of it, and a cast the smallest number there is.
    lists = pyarrow.array([[1, 2], [3, None]])
    pyarrow.parquet.write_table(pyarrow.table({"a": lists}), tmp_path / "a.parquet")
    opened = ArrowFiles((str(tmp_path),)).open()
    assert opened.read(0, ["a"])["a"].tolist() == [1, 2]
    with pytest.raises(DamagedError, match="column `a` has a null inside"):
        opened.read(1, ["a"])


def test_few_row_groups_are_kept(tmp_path):
    table = pyarrow.table({"a": list(range(100))})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet", row_group_size=10)
    opened = ArrowFiles((str(tmp_path),), groups=2).open()
    order = np.random.default_rng(0).permutation(100).tolist()
    assert [opened.read(n, ["a"])["a"] for n in order] == order
    assert len(opened._kept) == 2


def saved(place: Path, values: list[int], features: dict) -> None:
    """What `datasets.Dataset.save_to_disk` writes."""
    place.mkdir(parents=True)
    table = pyarrow.table({"label": values})
    with pyarrow.ipc.new_stream(place / "data-00000-of-00001.arrow", table.schema) as file:
        file.write_table(table)
    (place / "dataset_info.json").write_text(json.dumps({"features": features}))
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_split": "train"}
    (place / "state.json").write_text(json.dumps(state))


def test_what_save_to_disk_has_written(tmp_path):
    names = {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}
    saved(tmp_path / "all" / "train", [0, 1, 1], names)
    saved(tmp_path / "all" / "test", [1], names)
    (tmp_path / "all" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    opened = HubFolder(str(tmp_path / "all")).open()
    assert opened.values("label") == [0, 1, 1]
    assert opened.facts["classes"] == ["cat", "dog"]
    assert len(HubFolder(str(tmp_path / "all"), "test").open()) == 1
    assert len(HubFolder(str(tmp_path / "all" / "test")).open()) == 1
    with pytest.raises(ArgumentError, match="no split `valid`; it has test, train"):
        HubFolder(str(tmp_path / "all"), "valid").open()


def parquet(place: Path, *values: int) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table({"x": values}), place)


def test_several_data_sets_in_one_repository_are_not_joined(tmp_path):
    for name, value in (("de", 1), ("en", 2)):
        parquet(tmp_path / name / "train-00000-of-00001.parquet", value)
    with pytest.raises(ArgumentError, match=r"folders de, en; choose one, such as `.*/en`"):
        HubFolder(str(tmp_path)).open()
    assert HubFolder(str(tmp_path / "en")).open().values("x") == [2]
    for name, value in (("a", 3), ("b", 4)):
        parquet(tmp_path / "deep" / "train" / name / "0.parquet", value)
    assert HubFolder(str(tmp_path / "deep")).open().values("x") == [3, 4]


def test_the_name_of_a_split_may_have_dots(tmp_path):
    for name, value in (("train.100", 1), ("train.360", 2), ("train", 3)):
        for part in range(2):
            parquet(tmp_path / "data" / f"{name}-0000{part}-of-00002-1a.parquet", value)
    for name, values in (("train.100", [1, 1]), ("train", [3, 3])):
        assert HubFolder(str(tmp_path), name).open().values("x") == values
    with pytest.raises(ArgumentError, match=r"it has train, train\.100, train\.360$"):
        HubFolder(str(tmp_path), "test").open()


def test_a_state_that_names_another_folder_is_refused(tmp_path):
    saved(tmp_path / "a", [1], {})
    state = {"_data_files": [{"filename": "../secret.arrow"}]}
    (tmp_path / "a" / "state.json").write_text(json.dumps(state))
    with pytest.raises(DamagedError, match="secret"):
        HubFolder(str(tmp_path / "a")).open()


def labels(place: Path, count: int = 40) -> IdxFiles:
    path = place / f"labels-{count}"
    path.write_bytes(idx(bytes(n % 10 for n in range(count)), count))
    return IdxFiles({"label": str(path)})


@settings(max_examples=30)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 100))
def test_the_parts_of_a_split_are_disjoint_and_all(weights, seed):
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "numbers"
        path.write_bytes(idx(bytes(range(40)), 40))
        source = IdxFiles({"x": str(path)})
        shares = tuple(each / sum(weights) for each in weights)
        parts = [Split(source, shares, n, seed).open().values("x") for n in range(len(shares))]
    assert sorted(x for part in parts for x in part) == [*range(40)]
    for part, share in zip(parts, shares, strict=True):
        assert abs(len(part) - 40 * share) <= 1


def test_selections(tmp_path):
    source = labels(tmp_path)
    take = lambda **more: Selected(source, **more).open().values("label")
    assert take(start=2, stop=6) == [2, 3, 4, 5]
    assert take(every=15) == [0, 5, 0]
    assert take(numbers=(7, 3, 7)) == [7, 3, 7]
    assert take(column="label", values=(3,)) == [3] * 4
    for more, words in [
        ({"start": 40}, "nothing is selected"),
        ({"numbers": (40,)}, "`numbers` has 40"),
        ({"column": "lable"}, "did you mean `label`"),
        ({"every": 0}, "`every` must be at least 1, got 0"),
    ]:
        with pytest.raises(ArgumentError, match=words):
            take(**more)
    (tmp_path / "lists.jsonl").write_text('{"x": [1], "y": [1]}\n{"x": [], "y": 1}\n')
    lists = JsonLines((str(tmp_path / "lists.jsonl"),), {"x": "int64[?]", "y": "json"})
    assert len(Selected(lists, column="y", values=(1,)).open()) == 1
    with pytest.raises(ArgumentError, match=r"`x` is int64\[\?\], of which"):
        Selected(lists, column="x", values=(1,)).open()


def test_concatenations_share_their_columns(tmp_path):
    first, second = labels(tmp_path), labels(tmp_path, 5)
    both = Concatenated((first, second))
    assert len(both.open()) == 45
    assert both.open().place(44).endswith("labels-5 sample 4")
    other = IdxFiles({"other": second.files["label"]})
    with pytest.raises(ArgumentError, match="share no column"):
        Concatenated((first, other)).open()
    for shares, part in [((0.5, 0.6), 0), ((), 0), ((1.0,), 1), ((0.0,), 0)]:
        with pytest.raises(ArgumentError):
            Split(first, shares, part)


@pytest.mark.parametrize("size", [2560, 2561, 3000])
def test_a_tar_that_is_cut_off_between_members_is_damaged(tmp_path, size):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as opened:
        for key in ("000", "001"):
            for extension, data in (("jpg", b"x" * 600), ("cls", b"1")):
                member = tarfile.TarInfo(f"{key}.{extension}")
                member.size = len(data)
                opened.addfile(member, io.BytesIO(data))
    source = TarShards((str(path),), {"jpg": "bytes", "cls": "bytes"})
    assert len(source.open()) == 2
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DamagedError, match="cut off after 1 samples"):
        source.open()


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        ("9.5", "int64"),
        ("true", "int64"),
        ("-1", "uint8"),
        ("300", "uint8"),
        ("1e39", "float32"),
    ],
)
def test_numbers_that_a_column_cannot_hold_are_damage(tmp_path, number, kind):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"n": 1}}\n{{"n": {number}}}\n')
    samples = JsonLines((str(path),), {"n": kind}).open()
    assert samples.read(0, ["n"])["n"] == 1
    with pytest.raises(DamagedError, match=f"which {kind} cannot hold"):
        samples.read(1, ["n"])
