"""The sidecar: plain columns, what BLT-Burn wrote, and its JSON."""

import json
import sqlite3
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from hotgrid.blt import Branch, Leaf, Sidecar, Trunk, import_blt_burn
from hotgrid.errors import ArgumentError, DamagedError

DOCUMENT = Trunk(
    "ab" * 32,
    1000,
    [
        Branch(
            "page text", "pdf", [Leaf("p0", 0, 4, 0.5, {"source_id": "x"}), Leaf("p1", 4, 9)]
        ),
        Branch("page image", "image", [Leaf("i0", 0, 7, 1.0, {"source_id": "x", "page": 1})]),
        Branch("empty", "text", []),
    ],
)


def test_what_was_added_comes_back(tmp_path: Path):
    with Sidecar(tmp_path / "c.db") as sidecar:
        sidecar.add(DOCUMENT)
        sidecar.add(Trunk("cd", 0))
    with Sidecar(tmp_path / "c.db") as again:
        assert list(again.documents()) == [DOCUMENT, Trunk("cd", 0, [])]


def test_columns_are_plain(tmp_path: Path):
    with Sidecar(tmp_path / "c.db") as sidecar:
        sidecar.add(DOCUMENT)
    database = sqlite3.connect(tmp_path / "c.db")
    rows = database.execute(
        "SELECT leaf.label, branch.modality, json_extract(leaf.extra, '$.source_id') "
        "FROM nodes leaf JOIN nodes branch ON leaf.parent = branch.id "
        "WHERE leaf.kind = 'leaf' ORDER BY leaf.id"
    ).fetchall()
    assert rows == [("p0", "pdf", "x"), ("p1", "pdf", None), ("i0", "image", "x")]
    edges = database.execute(
        "SELECT e.label, group_concat(n.label, '>') FROM edges e "
        "JOIN (SELECT * FROM incidence ORDER BY edge, position) i ON i.edge = e.id "
        "JOIN nodes n ON n.id = i.node GROUP BY e.id ORDER BY e.id"
    ).fetchall()
    assert ("next", "p0>p1") in edges
    assert ("same_source", "p0>i0") in edges
    assert [label for label, _ in edges].count("contains") == 6
    assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with pytest.raises(sqlite3.IntegrityError):
        database.execute("INSERT INTO incidence VALUES (1000, NULL, 0)")
    database.close()


def test_a_document_is_added_as_a_whole(tmp_path: Path):
    broken = Trunk("ef", 1, [Branch("a", "text", [Leaf("x", 0, 1, 1.0, {"bad": object()})])])
    with Sidecar(tmp_path / "c.db") as sidecar:
        with pytest.raises(TypeError):
            sidecar.add(broken)
        assert list(sidecar.documents()) == []
        assert list(sidecar.edges()) == []


def test_json_has_the_schema_of_blt_burn(tmp_path: Path):
    with Sidecar(tmp_path / "c.db") as sidecar:
        sidecar.add(DOCUMENT)
        sidecar.export_json(tmp_path / "c.json")
    found = json.loads((tmp_path / "c.json").read_text())
    assert set(found) == {"nodes", "edges", "topology", "sharding", "replication"}
    assert found["nodes"][0] == {"Trunk": {"source_hash": "ab" * 32, "total_bytes": 1000}}
    assert found["nodes"][1] == {"Branch": {"label": "page text", "modality": "pdf"}}
    metadata = {"start_offset": 0, "end_offset": 4, "confidence": 0.5}
    metadata["extra"] = {"source_id": "x"}
    assert found["nodes"][2] == {"Leaf": {"label": "p0", "metadata": metadata}}
    for number, (edge, members) in enumerate(found["topology"]["edges"]):
        assert edge == number
        assert all(0 <= each < len(found["nodes"]) for each in members)
    assert [0, [0, 1]] in found["topology"]["edges"]


# What BLT-Burn writes: bincode 2 in its standard configuration.
def whole(value: int) -> bytes:
    for mark, size, limit in ((251, 2, 1 << 16), (252, 4, 1 << 32), (253, 8, 1 << 64)):
        if value <= 250:
            return bytes([value])
        if value < limit:
            return bytes([mark]) + value.to_bytes(size, "little")
    raise ValueError(value)


def text(value: str) -> bytes:
    return whole(len(value.encode())) + value.encode()


def written(path: Path, nodes: list[bytes], edges: list[bytes]) -> Path:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE nodes (id INTEGER PRIMARY KEY, data BLOB NOT NULL)")
    database.execute(
        "CREATE TABLE hyperedges (id INTEGER PRIMARY KEY, vertices BLOB NOT NULL, data BLOB)"
    )
    database.executemany("INSERT INTO nodes (data) VALUES (?)", [(each,) for each in nodes])
    database.executemany(
        "INSERT INTO hyperedges (vertices, data) VALUES (x'00', ?)", [(each,) for each in edges]
    )
    database.commit()
    database.close()
    return path


def edge(label: str, *members: int) -> bytes:
    body = whole(len(members)) + b"".join(map(whole, members))
    return body + text(label) + struct.pack("<f", 1.0)


@settings(max_examples=20, deadline=None)
@given(size=st.integers(0, 2**63), start=st.integers(0, 2**40), name=st.text(max_size=300))
def test_blobs_of_blt_burn(tmp_path_factory, size: int, start: int, name: str):
    folder = tmp_path_factory.mktemp("burn")
    extra = whole(3) + text("mean_entropy") + struct.pack("<d", 1.25)
    extra += text("patch_index") + whole(3) + text("patch_length") + whole(300)
    leaf = whole(2) + b"\x01" + text(name) + b"\x01" + whole(start) + whole(start + 5)
    leaf += struct.pack("<f", 0.7) + b"\x01" + extra
    odd = whole(2) + b"\x00\x01" + whole(1) + whole(2) + struct.pack("<f", 1.0)
    odd += b"\x01" + whole(1) + text("own") + b"\x07\x08"
    nodes = [
        whole(0) + text("ff") + whole(size),
        whole(1) + text("b") + text("text"),
        leaf,
        odd,
    ]
    edges = [edge("contains", 0, 1), edge("contains", 1, 2), edge("contains", 1, 3)]
    edges.append(edge("next", 2, 3))
    place = written(folder / "a.hypergraph.db", nodes, edges)
    with Sidecar(folder / "c.db") as sidecar:
        sidecar.add(DOCUMENT)  # numbers are moved
        if size == 2**63:
            with pytest.raises(DamagedError, match="too large"):
                import_blt_burn(place, sidecar)
            return
        assert import_blt_burn(place, sidecar) == 4
        found = list(sidecar.documents())[1]
        known = {"mean_entropy": 1.25, "patch_index": 3, "patch_length": 300}
        leaves = [
            Leaf(name, start, start + 5, 0.7, known),
            Leaf(None, 1, 2, 1.0, {"undecoded": {"own": "0708"}}),
        ]
        assert found == Trunk("ff", size, [Branch("b", "text", leaves)])
        assert [label for label, _, _ in sidecar.edges()][-4:] == [*["contains"] * 3, "next"]


def test_sharding_and_replication_are_kept(tmp_path: Path):
    place = written(tmp_path / "a.hypergraph.db", [whole(0) + text("ff") + whole(3)], [])
    facts = {
        "sharding_info": {"global_shape": [1, 9, 768], "shard_index": 1, "num_shards": 3},
        "replication_spec": {"replica_groups": [[0, 1]], "replication_factor": 2},
    }
    database = sqlite3.connect(place)
    database.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    rows = [("schema_version", "2"), *((key, json.dumps(facts[key])) for key in facts)]
    database.executemany("INSERT INTO meta VALUES (?, ?)", rows)
    database.commit()
    database.close()
    with Sidecar(tmp_path / "alone.db") as sidecar:
        import_blt_burn(place, sidecar)
        sidecar.export_json(tmp_path / "alone.json")
    found = json.loads((tmp_path / "alone.json").read_text())
    assert [found["sharding"], found["replication"]] == list(facts.values())
    with Sidecar(tmp_path / "more.db") as sidecar:
        sidecar.add(DOCUMENT)  # they would not be true of it
        import_blt_burn(place, sidecar)
        sidecar.export_json(tmp_path / "more.json")
    found = json.loads((tmp_path / "more.json").read_text())
    assert found["sharding"] is found["replication"] is None


def test_other_files_are_refused(tmp_path: Path):
    with Sidecar(tmp_path / "c.db") as sidecar:
        with pytest.raises(ArgumentError, match="there is no file"):
            import_blt_burn(tmp_path / "none.db", sidecar)
        (tmp_path / "text.db").write_bytes(b"no database at all" * 100)
        with pytest.raises(DamagedError, match="not a sidecar of BLT-Burn"):
            import_blt_burn(tmp_path / "text.db", sidecar)
        short = written(tmp_path / "short.db", [whole(0) + b"\x20ab"], [])
        with pytest.raises(DamagedError, match="bytes early"):
            import_blt_burn(short, sidecar)
        lost = written(
            tmp_path / "lost.db", [whole(0) + text("a") + whole(1)], [edge("next", 0, 9)]
        )
        with pytest.raises(DamagedError, match="does not exist"):
            import_blt_burn(lost, sidecar)
        assert list(sidecar.documents()) == []
    with pytest.raises(DamagedError, match="not a sidecar"):
        Sidecar(tmp_path / "text.db")
    with pytest.raises(DamagedError, match="import_blt_burn"):
        Sidecar(tmp_path / "lost.db")


@pytest.mark.parametrize(
    "document",
    [
        Trunk("ab" * 32, -3),
        Trunk("ab" * 32, 3, [Branch("text", "text", [Leaf("p", 5, 2)])]),
    ],
    ids=["size", "piece"],
)
def test_documents_that_cannot_be_are_refused(tmp_path: Path, document: Trunk):
    with Sidecar(tmp_path / "a.db") as sidecar, pytest.raises(ArgumentError):
        sidecar.add(document)
