"""`hotgrid sphere` and its commands."""

import http.client
import json
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hotgrid.blt import Corpus, IngestSettings, ingest

from .command import run as hotgrid

TEXTS = [
    f"The {word} is in the {place}." for word in ("cat", "sun") for place in ("box", "sea")
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    settings = IngestSettings(segmenter="space", leaves="patches")
    ingest([], tmp_path / "corpus", settings, texts=TEXTS, progress=False)
    return tmp_path / "corpus"


@pytest.fixture
def placed(corpus: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert hotgrid(["sphere", "place", str(corpus), "--zone", "qa=text:3"]) == 0
    capsys.readouterr()
    return corpus


def test_place_prints_a_table(corpus: Path, capsys: pytest.CaptureFixture[str]):
    assert hotgrid(["sphere", "place", str(corpus), "--shells", "4"]) == 0
    said = capsys.readouterr().out
    assert said.split()[:5] == ["shells", "radius", "leaves", "entropy", "prominence"]
    assert "24 leaves placed by ngrams" in said
    assert "24 in content" in said
    words = ["--zone", "qa", "--by", "order", "--json", "--no-entropy-weighted"]
    assert hotgrid(["sphere", "place", str(corpus), *words]) == 1
    assert "nothing to weigh" in capsys.readouterr().err
    assert hotgrid(["sphere", "place", str(corpus / "corpus.db"), *words[:-1]]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["by"], found["zones"]["qa"]) == ("order", 24)
    assert sum(row["leaves"] for row in found["rows"]) == 24
    assert list(Corpus(corpus).damage()) == []


def test_query_by_text_node_and_direction(placed: Path, capsys: pytest.CaptureFixture[str]):
    words = ["sphere", "query", str(placed), "cat ", "--angle", "1", "--json"]
    assert hotgrid(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["inside"] == 2
    assert [hit["text"] for hit in found["hits"]] == ["cat ", "cat "]
    node = found["hits"][1]["node"]
    assert hotgrid(["sphere", "query", str(placed), "--node", str(node), "--angle", "0"]) == 0
    said = capsys.readouterr().out
    assert '"cat "' in said
    assert "2 of 24 leaves are within 0 degrees" in said
    words = ["--direction", "0,0,-1", "--angle", "16", "--top", "3", "--json"]
    assert hotgrid(["sphere", "query", str(placed), *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["inside"] == 6
    assert {hit["document"] for hit in found["hits"]} == {"text:3"}
    assert len(found["hits"]) == 3
    words = ["The ", "--zone", "qa", "--angle", "180", "--json"]
    assert hotgrid(["sphere", "query", str(placed), *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["inside"], found["hits"][0]["text"]) == (6, "The ")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["query", "corpus"], "one of them"),
        (["query", "corpus", "a", "--node", "3"], "one of them"),
        (["query", "corpus", "a", "--angle", "200"], "0 to 180 degrees"),
        (["query", "corpus", "--direction", "up"], "expected X,Y,Z"),
        (["query", "corpus", "--node", "1"], "has no place"),
        (["query", "corpus", "a", "--zone", "pole"], "no zone `pole`"),
        (["place", "nowhere"], "no corpus and no sidecar at `nowhere`"),
        (["view", "corpus", "--most", "0"], "at least 1 point"),
    ],
)
def test_mistakes_are_explained(
    placed: Path,
    words: list[str],
    text: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(placed.parent)
    assert hotgrid(["sphere", *words]) != 0
    assert text in capsys.readouterr().err


def test_without_places_the_way_is_said(corpus: Path, capsys: pytest.CaptureFixture[str]):
    assert hotgrid(["sphere", "query", str(corpus), "cat"]) == 1
    assert f"run `hotgrid sphere place {corpus}`" in capsys.readouterr().err


def test_view_prints_its_address_and_serves_only_with_the_token(placed: Path):
    words = [sys.executable, "-m", "hotgrid", "sphere", "view", str(placed)]
    with subprocess.Popen(
        [*words, "--port", "0", "--no-open"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("hotgrid sphere: http://127.0.0.1:")
            address = urlsplit(line.split()[2])
            for path, status in (
                (f"/sphere.json?{address.query}", 200),
                ("/sphere.json", 403),
                (f"/points.bin?{address.query}", 200),
                (f"/page/nothing?{address.query}", 404),
            ):
                with closing(http.client.HTTPConnection(address.netloc, timeout=30)) as client:
                    client.request("GET", path)
                    assert client.getresponse().status == status, path
            with closing(http.client.HTTPConnection(address.netloc, timeout=30)) as client:
                headers = {"Host": "example.org"}
                client.request("GET", f"/sphere.json?{address.query}", headers=headers)
                assert client.getresponse().status == 403
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
