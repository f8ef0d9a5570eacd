"""Places of a corpus in its sidecar, and cones over them against brute force."""

import contextlib
import json
import math
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st

from hotgrid.blt import (
    ZONES,
    Branch,
    Corpus,
    EntropyConfig,
    EntropyModel,
    IngestSettings,
    Leaf,
    Sidecar,
    Sphere,
    Trunk,
    angles_between,
    ingest,
    log_weights,
    ngram_features,
    place,
    place_corpus,
    save_entropy_model,
    zone_of,
)
from hotgrid.blt._sphere._sphere import parse_direction
from hotgrid.errors import ArgumentError, DamagedError, StoreError

from .ingest.corpora import write_mixed

COLUMNS = "node, zone, shell, radius, theta, phi, entropy, prominence"


def rows_of(path: Path) -> list[tuple]:
    with contextlib.closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as database:
        return database.execute(f"SELECT {COLUMNS} FROM places ORDER BY node").fetchall()


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mixed")
    write_mixed(folder / "in")
    out = folder / "corpus"
    ingest([str(folder / "in")], out, workers=0, progress=False)
    place_corpus(out, zones=["qa=*rows.jsonl*", "instruction=*text-00*"], shells=8)
    return out


@pytest.fixture(scope="module")
def patches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two thousand leaves: the words of a text."""
    out = tmp_path_factory.mktemp("patches") / "corpus"
    text = " ".join(f"{'abcdefghij'[n % 10] * (n % 4 + 1)}{n * n % 97}" for n in range(2000))
    made = IngestSettings(segmenter="space", leaves="patches")
    ingest([], out, made, texts=[text, "question? " * 20], progress=False)
    place_corpus(out, zones=["qa=text:1"])
    return out


def test_every_leaf_has_a_place_and_its_own_mean_entropy(mixed: Path):
    rows = rows_of(mixed / "corpus.db")
    wanted = []
    with Sidecar(mixed / "corpus.db") as sidecar:
        trunks = list(sidecar.documents())
    for document, trunk in zip(Corpus(mixed), trunks, strict=True):
        for view, branch in zip(document.row["views"], trunk.branches, strict=True):
            for leaf in branch.leaves:
                begin, end = view["start"] + leaf.start, view["start"] + leaf.end
                wanted.append(document.tensors["entropies"][begin:end].mean(dtype=np.float64))
    assert [row[6] for row in rows] == pytest.approx(wanted, abs=1e-12)
    # Without a model there is no prominence, and the entropy alone decides.
    assert {row[7] for row in rows} == {None}
    weights = log_weights(torch.ones(len(rows)), torch.tensor(wanted))
    expected = place(weights, shells=8)
    # Leaves of the same bytes may change places by rounding.
    assert sorted(row[2] for row in rows) == sorted(expected.shells.tolist())
    order = sorted(range(len(rows)), key=lambda at: wanted[at])
    shells = [rows[at][2] for at in order]
    assert shells == sorted(shells, reverse=True)
    for row in rows:
        assert zone_of(row[4]) == row[1]
        assert -math.pi <= row[5] <= math.pi


def test_zones_go_by_names(mixed: Path):
    sphere = Sphere(mixed)
    for at in range(len(sphere)):
        leaf = sphere.leaf(at)
        wanted = "content"
        if "rows.jsonl" in leaf.document:
            wanted = "qa"
        elif "text-00" in leaf.document:
            wanted = "instruction"
        assert leaf.zone == wanted, leaf
        assert leaf.text
    assert {"text", "code", "image", "audio"} < set(sphere.modality_names)


def test_the_corpus_stays_whole_and_the_same_arguments_give_the_same_places(mixed: Path):
    before = rows_of(mixed / "corpus.db")
    with contextlib.closing(sqlite3.connect(mixed / "corpus.db")) as database:
        nodes = database.execute("SELECT * FROM nodes").fetchall()
    zones = ["qa=*rows.jsonl*", "instruction=*text-00*"]
    assert place_corpus(mixed, shells=4).nodes == len(before)
    assert max(row[2] for row in rows_of(mixed / "corpus.db")) == 3
    place_corpus(mixed / "corpus.db", zones=zones, shells=8)
    assert rows_of(mixed / "corpus.db") == before
    with contextlib.closing(sqlite3.connect(mixed / "corpus.db")) as database:
        assert database.execute("SELECT * FROM nodes").fetchall() == nodes
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        for table in ("places", "nodes", "edges"):
            assert database.execute(f"PRAGMA integrity_check({table})").fetchall() == [("ok",)]
    assert list(Corpus(mixed).damage()) == []


def test_shards_give_the_same_places_and_texts(tmp_path: Path):
    write_mixed(tmp_path / "in")
    spheres = []
    for name, shards in (("files", None), ("shards", 3)):
        made = IngestSettings(shards=shards)
        ingest([str(tmp_path / "in")], tmp_path / name, made, workers=0, progress=False)
        place_corpus(tmp_path / name)
        spheres.append(Sphere(tmp_path / name))
    one, other = spheres
    assert len(one) == len(other) > 10
    assert [one.leaf(at) for at in range(len(one))] == [
        other.leaf(at) for at in range(len(one))
    ]


@pytest.mark.parametrize("moment", range(4))
def test_a_process_that_is_killed_leaves_a_whole_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
):
    """The manifest is written twice and the sidecar once; stopped before or after each."""
    ingest([], tmp_path / "corpus", texts=["some words", "and others"], progress=False)
    place_corpus(tmp_path / "corpus", shells=2)
    before = rows_of(tmp_path / "corpus/corpus.db")
    real, calls = Path.replace, 0

    def replace(self: Path, target: Path) -> Path:
        nonlocal calls
        if calls == moment:
            raise KeyboardInterrupt
        calls += 1
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with contextlib.suppress(KeyboardInterrupt):
        place_corpus(tmp_path / "corpus", shells=1)
    monkeypatch.undo()
    assert calls == min(moment, 3)
    assert list(Corpus(tmp_path / "corpus").damage()) == []
    now = rows_of(tmp_path / "corpus/corpus.db")
    assert (now == before) == (moment < 2)
    assert not list((tmp_path / "corpus").glob(".*db*"))
    place_corpus(tmp_path / "corpus", shells=2)
    assert rows_of(tmp_path / "corpus/corpus.db") == before
    assert list(Corpus(tmp_path / "corpus").damage()) == []


def test_damage_and_open_sidecars_are_refused(tmp_path: Path):
    folder = tmp_path / "corpus"
    ingest([], folder, texts=["some words"], progress=False)
    manifest = (folder / "manifest.json").read_bytes()
    with Sidecar(folder / "corpus.db") as sidecar:
        sidecar.connect("mine", [1])
        with pytest.raises(StoreError, match=r"has .* open"):
            place_corpus(folder)
    with pytest.raises(DamagedError, match="checksum does not match"):
        with contextlib.closing(sqlite3.connect(folder / "corpus.db")) as database, database:
            database.execute("UPDATE nodes SET label = 'mine' WHERE kind = 'leaf'")
        place_corpus(folder)
    with contextlib.closing(sqlite3.connect(folder / "corpus.db")) as database, database:
        database.execute("UPDATE nodes SET label = 'other' WHERE kind = 'trunk'")
    with pytest.raises(DamagedError, match="it has other documents"):
        place_corpus(folder)
    assert (folder / "manifest.json").read_bytes() == manifest


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_cones_against_brute_force(patches: Path, data: st.DataObject):
    sphere = opened(patches)
    number = st.floats(-1, 1)
    axis = data.draw(
        st.one_of(
            st.tuples(number, number, number).filter(lambda v: math.hypot(*v) > 1e-3),
            st.integers(0, len(sphere) - 1).map(lambda at: tuple(sphere.units[at].tolist())),
        )
    )
    angle = data.draw(st.floats(0, math.pi))
    top = data.draw(st.one_of(st.none(), st.integers(1, 50)))
    zone = data.draw(st.one_of(st.none(), st.sampled_from(sorted(ZONES))))
    direction = torch.tensor(axis, dtype=torch.float64)
    found, angles = sphere.cone(direction, angle, top=top, zone=zone)
    every = angles_between(sphere.units, direction / direction.norm())
    inside = [
        (round(each, 10), at)
        for at, each in enumerate(every.tolist())
        if each <= angle + 1e-12
        and (zone is None or list(ZONES)[int(sphere.zones[at])] == zone)
    ]
    if not any(abs(each - angle) < 1e-9 for each in every.tolist()):
        assert len(found) == len(inside[:top] if top else inside)
    torch.testing.assert_close(angles, every[found], atol=1e-9, rtol=0)
    assert bool((angles.diff() >= 0).all())
    # The nearest, up to rounding.
    nearest = sorted(inside)[: len(found)]
    assert [each for each, _ in nearest] == pytest.approx(angles.tolist(), abs=1e-9)


_OPEN: dict[Path, Sphere] = {}


def opened(path: Path) -> Sphere:
    return _OPEN.setdefault(path, Sphere(path))


def test_the_direction_of_a_text_is_that_of_a_leaf_with_its_bytes(patches: Path):
    sphere = opened(patches)
    for at in range(0, len(sphere), 101):
        leaf = sphere.leaf(at)
        found = sphere.direction_of(leaf.text, zone=leaf.zone)
        torch.testing.assert_close(found, sphere.units[at], atol=1e-9, rtol=0)
        assert at in sphere.cone(found, 1e-6)[0].tolist()
    # By default in the zone with most leaves.
    assert zone_of(math.acos(float(sphere.direction_of("abc")[2]))) == "content"


def test_edges_join_neighbours(patches: Path):
    sphere = opened(patches)
    pairs = sphere.edges("next")
    assert len(pairs) == len(sphere) - 2  # of two documents
    assert bool((pairs[:, 1] - pairs[:, 0] == 1).all())
    assert sphere.edges("contains").shape == sphere.edges("nothing").shape == (0, 2)


def test_embeddings_give_directions_and_prominence(tmp_path: Path):
    torch.manual_seed(0)
    config = EntropyConfig(size=16, layers=1, heads=2, hidden=16, window=8, length=64)
    for name in ("model", "other"):
        save_entropy_model(EntropyModel(config), tmp_path / f"{name}.safetensors")
    model, folder = tmp_path / "model.safetensors", tmp_path / "corpus"
    texts = [f"text {n} of {'abc'[n % 3] * n}" for n in range(1, 25)]
    made = IngestSettings(model=str(model), segmenter="space")
    ingest([], folder, made, texts=texts, progress=False)
    assert place_corpus(folder).by == "embeddings"
    rows = rows_of(folder / "corpus.db")
    for row, document in zip(rows, Corpus(folder), strict=True):
        assert row[7] == float(document.tensors["prominence"].max())
    sphere = Sphere(folder, model=model)
    for at in (0, 11, 23):
        found = sphere.direction_of(texts[at])
        torch.testing.assert_close(found, sphere.units[at], atol=1e-3, rtol=0)
    with pytest.raises(ArgumentError, match="give it with --model"):
        Sphere(folder).direction_of("text")
    with pytest.raises(ArgumentError, match="not the model"):
        Sphere(folder, model=tmp_path / "other.safetensors").direction_of("text")
    # The prominence alone, then by n-grams.
    plain = place_corpus(folder, by="ngrams", entropy_weighted=False, shells=4)
    assert plain.by == "ngrams"
    rows = sorted(rows_of(folder / "corpus.db"), key=lambda row: row[7])
    assert [row[2] for row in rows] == sorted(row[2] for row in rows)


def test_a_sidecar_alone_is_placed_by_what_its_leaves_say(tmp_path: Path):
    leaves = [
        Leaf(f"patch_{n}", n, n + 1, 1.0, {"mean_entropy": n / 10, "coherence_score": 4.0})
        for n in range(40)
    ]
    with Sidecar(tmp_path / "old.db") as sidecar:
        sidecar.add(Trunk("0" * 64, 40, [Branch("text", "text", leaves)]))
    found = place_corpus(tmp_path / "old.db", shells=4)
    assert (found.by, found.nodes, found.zones["content"]) == ("order", 40, 40)
    rows = rows_of(tmp_path / "old.db")
    assert [row[7] ** 2 for row in rows] == pytest.approx(
        [4 * (n / 10 + 1e-6) for n in range(40)]
    )
    sphere = Sphere(tmp_path / "old.db")
    assert sphere.leaf(3).label == "patch_3"
    assert (sphere.leaf(3).document, sphere.leaf(3).text) == ("", "")
    with pytest.raises(ArgumentError, match="by order"):
        sphere.direction_of("text")
    with pytest.raises(ArgumentError, match="sidecar alone"):
        place_corpus(tmp_path / "old.db", by="ngrams")
    with Sidecar(tmp_path / "bare.db") as sidecar:
        sidecar.add(Trunk("0" * 64, 1, [Branch("text", "text", [Leaf("a", 0, 1)])]))
    with pytest.raises(ArgumentError, match="no `mean_entropy`"):
        place_corpus(tmp_path / "bare.db")


def slow_features(text: bytes) -> np.ndarray:
    found = [0.0] * 256
    for begin in range(len(text)):
        gram = 0
        for byte in text[begin : begin + 3]:
            gram = (gram * 257 + byte + 1) % 2**32
            key = gram * 2654435761 % 2**32
            key ^= key >> 15
            found[key % 256] += 1 if key >> 16 & 1 else -1
    damped = np.array([math.copysign(math.log1p(abs(x)), x) for x in found])
    return damped / (np.linalg.norm(damped) or 1)


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=6))
def test_features_against_a_loop(texts: list[bytes]):
    wanted = np.stack([slow_features(each) for each in texts])
    np.testing.assert_allclose(ngram_features(texts).numpy(), wanted, atol=1e-12)


def test_features_of_long_texts_do_not_depend_on_blocks():
    long = bytes(range(256)) * 5000  # 1.28 MB
    # Each of the 256 three-grams of the cycle is there 5,000 times, less at the end.
    found = ngram_features([b"first", long, b"last"]).numpy()
    np.testing.assert_allclose(found[0], slow_features(b"first"), atol=1e-12)
    np.testing.assert_allclose(found[2], slow_features(b"last"), atol=1e-12)
    np.testing.assert_allclose(found[1], ngram_features([long]).numpy()[0], atol=1e-12)
    np.testing.assert_allclose(found[1], slow_features(long[: 256 * 40]), atol=0.02)


def test_equal_leaves_and_few_leaves_have_places(tmp_path: Path):
    made = IngestSettings(duplicates=True)
    ingest([], tmp_path / "same", made, texts=["the same"] * 5, progress=False)
    place_corpus(tmp_path / "same", shells=256)
    sphere = Sphere(tmp_path / "same")
    assert len(sphere.cone(torch.tensor([1.0, 0, 0]), 0.01)[0]) == 5
    assert bool(sphere.radii.isfinite().all())
    ingest([], tmp_path / "one", texts=["alone"], progress=False)
    assert place_corpus(tmp_path / "one").nodes == 1


def test_a_zone_without_leaves_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    ingest([], tmp_path, texts=["words"], progress=False)
    place_corpus(tmp_path, zones=["qa=text:*"])
    assert "no leaf" not in capsys.readouterr().err
    place_corpus(tmp_path, zones=["qa=faq/*"])
    assert "no leaf is in the zone of `qa=faq/*`" in capsys.readouterr().err


def test_what_is_wrong_is_said(mixed: Path, tmp_path: Path):
    ingest([], tmp_path / "corpus", texts=["words"], progress=False)
    for arguments, message in (
        ({"by": "ngram"}, "did you mean `ngrams`"),
        ({"by": "embeddings"}, "has no embeddings"),
        ({"entropy_weighted": False}, "no prominence"),
        ({"temperature": 0.0}, "above 0"),
        ({"shells": 0}, "0 shells"),
        ({"device": "tpu9"}, "`tpu9`, which cannot be used"),
        ({"zones": ["poles"]}, "no zone `poles`"),
    ):
        with pytest.raises(ArgumentError, match=message):
            place_corpus(tmp_path / "corpus", **arguments)
    with pytest.raises(ArgumentError, match="hotgrid sphere place"):
        Sphere(tmp_path / "corpus")
    with pytest.raises(ArgumentError, match="no corpus and no sidecar"):
        Sphere(tmp_path / "nothing")
    with pytest.raises(ArgumentError, match="no finished corpus"):
        place_corpus(tmp_path)
    sphere = Sphere(mixed)
    with pytest.raises(ArgumentError, match="node 1 has no place"):
        sphere.at(1)
    for far in (10**30, -(10**30)):
        with pytest.raises(ArgumentError, match=f"node {far} has no place"):
            sphere.at(far)
    with pytest.raises(ArgumentError, match="must not be empty"):
        sphere.direction_of("")
    with pytest.raises(ArgumentError, match="`top` is 0"):
        sphere.cone(torch.ones(3), 1.0, top=0)
    with pytest.raises(ArgumentError, match="expected X,Y,Z"):
        parse_direction("1,2")
    assert parse_direction("0, 0,-2").tolist() == [0, 0, -2]


def test_a_manifest_of_places_is_json(mixed: Path):
    with contextlib.closing(sqlite3.connect(mixed / "corpus.db")) as database:
        text = database.execute("SELECT value FROM meta WHERE key = 'sphere'").fetchone()[0]
    about = json.loads(text)
    assert (about["by"], about["shells"]) == ("ngrams", 8)
    assert np.array(about["projection"]["axes"]).shape == (3, 256)
