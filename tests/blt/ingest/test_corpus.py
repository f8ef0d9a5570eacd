"""`ingest` and `Corpus`: what is written is what was read, and damage is found."""

import gc
import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
import webdataset
from hypothesis import HealthCheck, given, settings as examples, strategies as st
from safetensors import safe_open
from safetensors.numpy import load, load_file

from hotgrid.blt import (
    Corpus,
    EntropyConfig,
    EntropyModel,
    IngestSettings,
    Sidecar,
    export_corpus,
    ingest,
    load_ngram_table,
    save_entropy_model,
    segmenter,
)
from hotgrid.blt._ingest import _encode
from hotgrid.errors import ArgumentError, DamagedError

from .corpora import TEXT, bits, write_mixed


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("mixed")
    write_mixed(folder / "in")
    done = ingest([str(folder / "in")], folder / "out", workers=0)
    assert done.finished
    return Corpus(folder / "out")


def test_a_text_is_cut_as_its_segmenter_cuts(tmp_path: Path):
    text = TEXT.decode() * 3
    done = ingest(
        [], tmp_path / "out", IngestSettings(segmenter="jump"), texts=[text], workers=0
    )
    [document] = Corpus(done.folder)
    assert document.data == text.encode()
    wanted = segmenter("jump").lengths(text.encode())
    assert document.tensors["patch_lengths"].tolist() == wanted.tolist()
    entropies = load_ngram_table().entropies(text.encode()).numpy()
    assert np.array_equal(document.tensors["entropies"], entropies)
    ends = np.cumsum(wanted.numpy())
    means = [part.mean() for part in np.split(entropies.astype(float), ends[:-1])]
    assert np.allclose(document.tensors["patch_entropies"], means, rtol=0, atol=1e-6)


def test_files_have_the_names_of_blt_burn(mixed: Corpus):
    row = next(mixed.rows())
    path = mixed.folder / row["file"]
    with safe_open(path, "np") as file:
        about = file.metadata()
        assert sorted(file.keys()) == ["bytes", "entropies", "patch_entropies", "patch_lengths"]
    found = load_file(path)
    kinds = {name: str(each.dtype) for name, each in found.items()}
    assert kinds["bytes"] == "uint8"
    assert kinds["patch_lengths"] == "int32"
    assert kinds["entropies"] == kinds["patch_entropies"] == "float32"
    assert about["format"] == "blt_patches_v2"
    assert about["total_bytes"] == str(len(found["bytes"]))
    assert about["num_patches"] == str(len(found["patch_lengths"]))
    assert (mixed.folder / about["metadata_file"]).is_file()


@pytest.mark.parametrize("kept", ["float16", "none"])
@pytest.mark.parametrize("shards", [None, 2])
def test_entropies_of_bytes_may_be_kept_shorter(
    tmp_path: Path, mixed: Corpus, shards: int | None, kept: str
):
    settings = IngestSettings(entropies=kept, shards=shards)
    ingest([str(mixed.folder.parent / "in")], tmp_path / "out", settings, workers=0)
    corpus = Corpus(tmp_path / "out")
    assert not list(corpus.damage())
    for found, wanted in zip(corpus, mixed, strict=True):
        tensors = dict(wanted.tensors)
        exact = tensors.pop("entropies")
        if kept == "float16":
            tensors["entropies"] = exact.astype(np.float16)
        assert found.tensors.keys() == tensors.keys()
        for name, each in tensors.items():
            assert found.tensors[name].dtype == each.dtype
            assert np.array_equal(found.tensors[name], each)
    found = corpus.manifest["entropy"]
    for name, each in mixed.manifest["entropy"].items():
        assert found[name] == pytest.approx(each, rel=2e-3 if kept == "float16" else 0)
    if kept == "float16":
        assert sum(corpus.histogram(7)["histogram"]["counts"]) == corpus.manifest["bytes"]
    else:
        with pytest.raises(ArgumentError, match=r"--entropies none.*entropy_histogram\.json"):
            corpus.histogram(7)
    [tar] = export_corpus(corpus.folder, "webdataset", tmp_path / "tars")
    with tarfile.open(tar) as archive:
        first = archive.extractfile(archive.getmembers()[0])
        assert first is not None
        exported = load(first.read())
    assert exported.keys() == next(iter(corpus)).tensors.keys() - {"patch_entropies"}
    size = {"float16": 2, "none": 4}[kept] * corpus.manifest["bytes"]
    if shards is None:
        saved = sum(row["file_bytes"] for row in mixed.rows())
        saved -= sum(row["file_bytes"] for row in corpus.rows())
        assert saved == pytest.approx(size, rel=0.3)


def test_everything_is_counted_once(mixed: Corpus):
    manifest = mixed.manifest
    rows = list(mixed.rows())
    assert len(rows) == manifest["documents"] == 18
    assert manifest["bytes"] == sum(row["bytes"] for row in rows)
    kinds = {name: each["documents"] for name, each in manifest["modalities"].items()}
    assert kinds == {"audio": 1, "bytes": 1, "code": 1, "elf": 1, "image": 1, "text": 13}
    reasons = {row["name"].rsplit("/", 1)[-1]: row["reason"] for row in mixed.quarantined()}
    assert sorted(reasons) == ["broken.png", "empty.txt", "rows.jsonl@270"]
    assert "image is damaged" in reasons["broken.png"]
    [again] = map(json.loads, (mixed.folder / "duplicates.jsonl").read_text().splitlines())
    assert again["name"].endswith("text-01.txt")
    assert again["of"].endswith("again.txt")
    assert list(mixed.damage()) == []


def test_the_order_is_that_of_names(mixed: Corpus):
    names = [row["name"].split("/in/")[1] for row in mixed.rows()]
    assert names[:4] == ["again.txt", "code.py", "image.png", "inner/rows.jsonl@0:0"]
    assert names[-1] == "text-05.txt"


def test_the_sidecar_has_documents_views_and_pieces(mixed: Corpus):
    with Sidecar(mixed.sidecar) as sidecar:
        trunks = list(sidecar.documents())
        labels = {label for label, _, _ in sidecar.edges()}
    rows = list(mixed.rows())
    assert [each.source_hash for each in trunks] == [row["source_hash"] for row in rows]
    assert labels == {"contains", "next"}
    image = next(
        trunk for trunk, row in zip(trunks, rows, strict=True) if row["modality"] == "image"
    )
    [branch] = image.branches
    assert branch.leaves[0].extra["x"] == 0
    assert branch.leaves[-1].end == next(r["bytes"] for r in rows if r["modality"] == "image")


def test_leaves_can_be_patches(tmp_path: Path):
    made = IngestSettings(leaves="patches", segmenter="space")
    done = ingest([], tmp_path / "out", made, texts=["One two three."], workers=0)
    with Sidecar(done.folder / "corpus.db") as sidecar:
        [trunk] = sidecar.documents()
    leaves = trunk.branches[0].leaves
    assert [(each.start, each.end) for each in leaves] == [(0, 4), (4, 8), (8, 14)]
    assert [each.label for each in leaves] == ["patch_0", "patch_1", "patch_2"]
    assert leaves[1].extra["patch_length"] == 4


@pytest.mark.parametrize("shards", [1, 3, 40])
def test_shards_hold_the_same_documents(mixed: Corpus, tmp_path: Path, shards: int):
    source = mixed.folder.parent / "in"
    done = ingest([str(source)], tmp_path, IngestSettings(shards=shards), workers=0)
    sharded = Corpus(done.folder)
    assert len(sharded.manifest["shards"]) == shards
    assert not any("file" in row or "sha256" in row for row in sharded.rows())
    assert not (tmp_path / "documents").exists()
    assert list(sharded.damage()) == []
    for ours, theirs in zip(sharded, mixed, strict=True):
        assert ours.row["name"] == theirs.row["name"]
        assert ours.tensors.keys() == theirs.tensors.keys()
        for name, each in ours.tensors.items():
            assert np.array_equal(each, theirs.tensors[name])
    assert sharded.find("code.py".join([str(source) + "/", ""])).row["modality"] == "code"
    again = ingest(
        [str(source)], tmp_path, IngestSettings(shards=shards), resume=True, workers=0
    )
    assert again.manifest["documents"] == len(mixed)


def test_another_config_beside_the_weights_is_another_model(tmp_path: Path):
    """It can say how many heads there are, so entropies differ."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"weights")
    keys = {IngestSettings(model=str(path)).key()}
    for heads in (2, 4):
        (tmp_path / "config.json").write_text(f'{{"num_attention_heads": {heads}}}')
        keys |= {IngestSettings(model=str(each)).key() for each in (path, tmp_path)}
    assert len(keys) == 3


def test_a_model_gives_embeddings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    model = EntropyModel(EntropyConfig(size=16, layers=1, heads=2, hidden=16, window=8))
    model.thresholds = {"threshold": {"4.5": 5.4}}
    save_entropy_model(model, tmp_path / "model.safetensors")
    made = IngestSettings(model=str(tmp_path / "model.safetensors"))
    texts = [TEXT.decode() * 20]
    done = ingest([], tmp_path / "one", made, texts=texts, workers=0)
    [document] = Corpus(done.folder)
    model.eval()
    signals = model.signals([document.data], embeddings=True)[0]
    wanted = signals.over(torch.from_numpy(document.tensors["patch_lengths"].astype(np.int64)))
    assert np.allclose(document.tensors["embeddings"], wanted.embeddings, atol=1e-5)
    assert np.allclose(document.tensors["prominence"], wanted.prominence, atol=1e-5)
    with safe_open(done.folder / document.row["file"], "np") as file:
        assert file.metadata()["format"] == "blt_patches_v3"
        assert file.metadata()["embed_dim"] == "16"
    # A long document does not keep the embeddings of its bytes.
    monkeypatch.setattr(_encode, "_AT_ONCE", 0)
    ingest([], tmp_path / "two", made, texts=texts, workers=0)
    [slow] = Corpus(tmp_path / "two")
    for name, each in document.tensors.items():
        assert np.allclose(each, slow.tensors[name], atol=1e-4), name
    # Shards carry embeddings too.
    from dataclasses import replace

    ingest([], tmp_path / "three", replace(made, shards=1), texts=texts, workers=0)
    [packed] = Corpus(tmp_path / "three")
    assert np.array_equal(packed.tensors["embeddings"], slow.tensors["embeddings"])


@pytest.mark.parametrize(
    "change",
    ["documents", "corpus.db", "manifest.json", "documents.jsonl", "gone"],
)
def test_damage_is_found_and_named(tmp_path: Path, change: str):
    ingest([], tmp_path / "out", texts=["one", "two"], workers=0)
    corpus = Corpus(tmp_path / "out")
    victim = corpus.folder / change
    if change == "documents":
        victim = corpus.folder / next(corpus.rows())["file"]
    if change == "gone":
        victim = corpus.folder / list(corpus.rows())[1]["file"]
        victim.unlink()
    else:
        data = bytearray(victim.read_bytes())
        data[len(data) // 2] ^= 1
        victim.write_bytes(data)
    if change == "manifest.json":
        with pytest.raises(DamagedError, match=r"manifest.json"):
            Corpus(corpus.folder)
        return
    assert any(victim.name in line for line in corpus.damage())


def test_the_histogram_counts_every_byte(mixed: Corpus):
    found = mixed.histogram(20)
    every = np.concatenate([each.tensors["entropies"] for each in mixed]).astype(float)
    assert sum(found["histogram"]["counts"]) == len(every) == mixed.manifest["bytes"]
    wanted = np.histogram(every, 20)[0]
    assert found["histogram"]["counts"] == wanted.tolist()
    assert np.allclose(found["statistics"]["mean"], every.mean())
    assert np.allclose(found["statistics"]["std"], every.std())
    for level in (25, 50, 75, 90, 95, 99):
        close = np.percentile(every, level, method="inverted_cdf")
        assert abs(found["percentiles"][f"p{level}"] - close) <= 0.02
    stored = json.loads((mixed.folder / "entropy_histogram.json").read_text())
    assert sum(stored["histogram"]["counts"]) == len(every)
    assert len(stored["histogram"]["counts"]) <= 50
    with pytest.raises(ArgumentError, match="`bins` must be"):
        mixed.histogram(0)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # it leaves files open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_webdataset_reads_what_is_exported(mixed: Corpus, tmp_path: Path):
    files = export_corpus(mixed.folder, "webdataset", tmp_path / "tars", samples=7)
    assert [each.name for each in files] == [f"shard_{n:06}.tar.gz" for n in range(3)]
    samples = list(webdataset.WebDataset([str(each) for each in files], shardshuffle=False))
    gc.collect()
    for sample, document in zip(samples, mixed, strict=True):
        assert sample["__key__"] == document.row["id"]
        tensors = load(sample["safetensors"])
        assert tensors["bytes"].tobytes() == document.data
        assert json.loads(sample["json"])["num_patches"] == document.row["patches"]
    again = export_corpus(mixed.folder, "webdataset", tmp_path / "again", samples=7)
    assert [each.read_bytes() for each in again] == [each.read_bytes() for each in files]
    with tarfile.open(files[0]) as archive:
        assert {member.mode for member in archive} == {0o644}


def test_json_lines_and_the_json_of_the_sidecar(mixed: Corpus, tmp_path: Path):
    import base64

    export_corpus(mixed.folder, "jsonl", tmp_path / "all.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    for line, document in zip(lines, mixed, strict=True):
        data = line["text"].encode() if "text" in line else base64.b64decode(line["base64"])
        assert data == document.data
        assert sum(line["patch_lengths"]) == len(data)
    export_corpus(mixed.folder, "json", tmp_path / "side.json")
    found = json.loads((tmp_path / "side.json").read_text())
    trunks = [each["Trunk"] for each in found["nodes"] if "Trunk" in each]
    assert [each["source_hash"] for each in trunks] == [r["source_hash"] for r in mixed.rows()]
    with pytest.raises(ArgumentError, match="did you mean `jsonl`"):
        export_corpus(mixed.folder, "jsonlines", tmp_path / "x")


def test_exports_are_not_mixed_and_leave_the_corpus_alone(tmp_path: Path):
    done = ingest([], tmp_path / "out", texts=["one", "two", "three"], workers=0)
    tars = tmp_path / "tars"
    assert len(export_corpus(done.folder, "webdataset", tars, samples=1)) == 3
    assert len(export_corpus(done.folder, "webdataset", tars, samples=1)) == 3
    with pytest.raises(ArgumentError, match=r"`shard_000002.tar.gz` of another export"):
        export_corpus(done.folder, "webdataset", tars, samples=2)
    for form, name in (("jsonl", "documents.jsonl"), ("json", "corpus.db")):
        with pytest.raises(ArgumentError, match="a part of the corpus"):
            export_corpus(done.folder, form, done.folder / name)
    assert list(Corpus(done.folder).damage()) == []


def test_the_report_is_one_page_with_pictures(mixed: Corpus):
    page = (mixed.folder / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 1
    assert "<svg" in page
    assert "broken.png" in page
    assert "<b>13</b>" in page
    assert "http" not in page


def test_names_are_harmless_in_the_report(tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "<script>alert(1)<script>.txt").write_bytes(b"")
    ingest([str(tmp_path / "in")], tmp_path / "out", workers=0)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


@examples(
    deadline=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    documents=st.lists(
        st.binary(min_size=1, max_size=300), min_size=1, max_size=4, unique=True
    ),
    most=st.integers(1, 40),
    name=st.sampled_from(["threshold", "space", "static", "budget"]),
)
def test_any_bytes_come_back(tmp_path_factory, documents: list[bytes], most: int, name: str):
    folder = tmp_path_factory.mktemp("any")
    (folder / "in").mkdir()
    for number, data in enumerate(documents):
        # A byte that begins no format that is decoded.
        (folder / "in" / f"{number}.dat").write_bytes(b"\x01" + data)
    made = IngestSettings(segmenter=name, most=most)
    ingest([str(folder / "in")], folder / "out", made, workers=0)
    found = list(Corpus(folder / "out"))
    assert [each.data for each in found] == [b"\x01" + data for data in documents]
    for each in found:
        lengths = each.tensors["patch_lengths"]
        assert lengths.sum() == len(each.data)
        assert lengths.min() >= 1
        assert lengths.max() <= most


def test_two_runs_give_the_same_bits(mixed: Corpus, tmp_path: Path):
    ingest([str(mixed.folder.parent / "in")], tmp_path, workers=0)
    assert bits(tmp_path) == bits(mixed.folder)


def test_an_earlier_corpus_is_moved_aside(tmp_path: Path):
    ingest([], tmp_path, texts=["one"], workers=0)
    ingest([], tmp_path, texts=["two"], workers=0)
    assert [each.data for each in Corpus(tmp_path)] == [b"two"]
    assert [each.data for each in Corpus(tmp_path / "earlier-1")] == [b"one"]


def test_resume_takes_what_is_new(tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.txt").write_bytes(b"the second")
    ingest([str(tmp_path / "in")], tmp_path / "out", workers=0)
    [kept] = (tmp_path / "out" / "documents").rglob("*.safetensors")
    before = kept.stat().st_mtime_ns
    (tmp_path / "in" / "a.txt").write_bytes(b"the first")
    ingest([str(tmp_path / "in")], tmp_path / "out", resume=True, workers=0)
    assert [each.data for each in Corpus(tmp_path / "out")] == [b"the first", b"the second"]
    assert kept.stat().st_mtime_ns == before
    with pytest.raises(ArgumentError, match="segmenter"):
        ingest(
            [str(tmp_path / "in")],
            tmp_path / "out",
            IngestSettings(segmenter="space"),
            resume=True,
            workers=0,
        )


def test_resuming_never_loses_an_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    ingest(["a.txt"], "out", texts=["words"], workers=0)
    with pytest.raises(ArgumentError, match=r"`out` was made of `a.txt` too"):
        ingest(["b.txt"], "out", texts=["words"], resume=True, workers=0)
    with pytest.raises(ArgumentError, match="made of other texts too"):
        ingest(["a.txt"], "out", texts=["others"], resume=True, workers=0)
    assert len(Corpus("out")) == 2
    ingest(["./a.txt", "b.txt"], "out", texts=["new", "words"], resume=True, workers=0)
    found = [each.data for each in Corpus("out")]
    assert found == [b"new", b"words", b"a.txt", b"b.txt"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"segmenter": "spaces"}, "did you mean `space`"),
        ({"pdf": "txt"}, "did you mean `text`"),
        ({"limit": 0}, "`limit` must be at least 1"),
        ({"near": 1.5}, "from 0 to 1"),
        ({"document_bytes": 10}, "at least 1024"),
        ({"document_bytes": 1 << 30}, "above `file_bytes`"),
        ({"threshold": float("nan")}, "finite"),
        ({"media": "frames"}, "there are pieces, bytes"),
    ],
)
def test_wrong_settings_are_named(change: dict, message: str):
    with pytest.raises(ArgumentError, match=message):
        IngestSettings(**change)


def test_what_is_wrong_is_said(tmp_path: Path):
    with pytest.raises(ArgumentError, match="nothing to ingest"):
        ingest([], tmp_path / "out")
    with pytest.raises(ArgumentError, match="there is no"):
        ingest([], tmp_path / "out", IngestSettings(model="none.safetensors"), texts=["x"])
    for change in ({"device": "cuda"}, {"compiled": True}):
        with pytest.raises(ArgumentError, match=r"is for an entropy model.*--model nano"):
            ingest([], tmp_path / "out", IngestSettings(**change), texts=["one"])
    with pytest.raises(ArgumentError, match="there is no finished corpus"):
        Corpus(tmp_path)
    ingest([], tmp_path / "out", texts=["one"], workers=0)
    with pytest.raises(ArgumentError, match=r"did you mean `text:0`"):
        Corpus(tmp_path / "out").find("text:1")


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class Stdin:
        buffer = io.BytesIO(TEXT)

    monkeypatch.setattr("sys.stdin", Stdin)
    ingest(["-"], tmp_path / "out", workers=0)
    [document] = Corpus(tmp_path / "out")
    assert document.data == TEXT
    # The name of the folder is not part of the corpus.
    assert document.row["name"] == "stdin"
    assert not (tmp_path / "out" / "stdin").exists()


@pytest.mark.parametrize("shards", [None, 2])
def test_what_killed_processes_left_is_removed(tmp_path: Path, shards: int | None):
    made = IngestSettings(shards=shards)
    ingest([], tmp_path, made, texts=["one", "two"], workers=0)
    before = bits(tmp_path)
    places = ["units/x.jsonl", ".corpus-host-1-0123.db-wal", "documents/aa/.x.safetensors"]
    places += [] if shards is None else ["shards/.shard-host.safetensors"]
    places += [] if shards is not None else ["documents/aa/aa.safetensors"]
    for name in places:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_bytes(b"half")
    ingest([], tmp_path, made, texts=["one", "two"], workers=0, resume=True)
    assert bits(tmp_path) == before
    assert list(Corpus(tmp_path).damage()) == []
