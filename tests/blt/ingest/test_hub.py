"""Data sets of the hub: fetched once from a server of this machine, then from the cache."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from hotgrid.blt import Corpus
from hotgrid.blt._ingest._inputs._hub import Reference, read_reference
from hotgrid.errors import DamagedError

from .corpora import png

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """A hub with one data set."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.files, self.asked = files, Counter()


class Answer(BaseHTTPRequestHandler):
    server: Hub  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.server.asked[self.command, path] += 1
        if path.startswith("/api/datasets/me/set"):
            self.listing(path)
            return
        name = path.partition("/resolve/")[2].partition("/")[2]
        data = self.server.files.get(name)
        if data is None:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def listing(self, path: str) -> None:
        tree = [
            {"type": "file", "path": name, "size": len(data), "oid": COMMIT}
            for name, data in self.server.files.items()
        ]
        about = {
            "id": "me/set",
            "sha": COMMIT,
            "siblings": [{"rfilename": n} for n in self.server.files],
        }
        data = json.dumps(tree if "/tree/" in path else about).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path):
    here = "hf://datasets/me/set"
    images = [f"{here}/a.png", f"{here}/a.png", f"{here}/missing.png", None]
    table = pa.table({"text": ["one", "two", "three", "four"], "image": images})
    parquet.write_table(table, tmp_path / "t.parquet")
    files = {
        "README.md": b"# A set\n",
        "data/train.parquet": (tmp_path / "t.parquet").read_bytes(),
        "a.png": png(),
        ".gitattributes": b"x",
    }
    with Hub(files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.slow
def test_references_are_fetched_once(hub: Hub, tmp_path: Path):
    settings = {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}",
        "HF_HOME": str(tmp_path / "cache"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
    }

    def run(out: str, more: dict[str, str] | None = None) -> Corpus:
        # huggingface_hub reads its settings when it is imported.
        command = [sys.executable, "-m", "hotgrid", "ingest", "hf://datasets/me/set/data"]
        done = subprocess.run(
            [*command, "--out", str(tmp_path / out)],
            env={**os.environ, **settings, **(more or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return Corpus(tmp_path / out)

    found = run("one")
    rows = list(found.rows())
    assert [row["modality"] for row in rows] == ["mixed", "mixed", "text"]
    assert [each["label"] for each in rows[0]["views"]] == ["text/text", "image/image"]
    assert rows[0]["name"].startswith("hf://datasets/me/set/data/train.parquet#0.0")
    [missing] = found.quarantined()
    assert "hf://datasets/me/set/missing.png` is missing" in missing["reason"]
    wanted = {name for name in hub.files if name.endswith((".png", ".parquet"))}
    gets = {
        path.rsplit("/resolve/main/")[-1]: n
        for (how, path), n in hub.asked.items()
        if how == "GET" and "/resolve/" in path
    }
    assert {name: gets[name] for name in wanted} == dict.fromkeys(wanted, 1)
    hub.asked.clear()
    again = run("two")
    assert [each.data for each in again] == [each.data for each in found]
    assert not [
        path
        for how, path in hub.asked
        if how == "GET" and path.endswith((".png", ".parquet")) and "missing" not in path
    ]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("hf://datasets/me/set", Reference("me/set", None, "")),
        ("hf://datasets/me/set/a/b.png", Reference("me/set", None, "a/b.png")),
        ("hf://datasets/me/set@v1/a.png", Reference("me/set", "v1", "a.png")),
    ],
)
def test_the_parts_of_a_reference(text: str, parts: Reference):
    assert read_reference(text) == parts


@pytest.mark.parametrize("text", ["hf://", "hf://models/a/b", "hf://datasets/../x/y z"])
def test_other_references_are_refused(text: str):
    with pytest.raises(DamagedError, match="expected hf://datasets/OWNER/NAME"):
        read_reference(text)
