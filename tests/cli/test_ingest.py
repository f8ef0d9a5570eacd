"""`hotgrid ingest` and its commands, in this process."""

import io
import json
from pathlib import Path

import pytest

from hotgrid.blt import Corpus

from .command import run as hotgrid


@pytest.fixture
def corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("The first document.")
    (tmp_path / "in" / "b.txt").write_text("The second document.")
    (tmp_path / "in" / "c.txt").write_text("The first document.")
    (tmp_path / "in" / "d.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    assert hotgrid(["ingest", "in", "--out", "out", "--segmenter", "space"]) == 0
    said = capsys.readouterr().out
    assert "2 documents, 39 bytes in 6 patches of 6.50 bytes" in said
    assert "left out 1 duplicate and 0 near duplicates" in said
    assert "1 could not be read" in said
    assert "image is damaged" in said
    return tmp_path / "out"


def test_all_is_as_it_was_written(corpus: Path, capsys: pytest.CaptureFixture[str]):
    assert hotgrid(["ingest", "verify", "out"]) == 0
    assert "2 documents, all as they were written" in capsys.readouterr().out


def test_damage_is_named_and_exits_with_1(corpus: Path, capsys: pytest.CaptureFixture[str]):
    victim = next(Corpus(corpus).rows())["file"]
    (corpus / victim).write_bytes((corpus / victim).read_bytes()[:-1])
    assert hotgrid(["ingest", "verify", "out"]) == 1
    assert victim in capsys.readouterr().out
    assert hotgrid(["ingest", "verify", "out", "--json"]) == 1
    [line] = json.loads(capsys.readouterr().out)["damage"]
    assert "a.txt" in line
    (corpus / "manifest.json").write_text("{}")
    assert hotgrid(["ingest", "verify", "out"]) == 1
    assert "manifest.json" in capsys.readouterr().out
    assert hotgrid(["ingest", "verify", "in"]) == 1
    assert "there is no finished corpus" in capsys.readouterr().err


def test_inspect(corpus: Path, capsys: pytest.CaptureFixture[str]):
    assert hotgrid(["ingest", "inspect", "out"]) == 0
    assert "in/b.txt" in capsys.readouterr().out
    assert hotgrid(["ingest", "inspect", "out", "in/b.txt", "--patches", "2"]) == 0
    said = capsys.readouterr().out
    assert '"second "' in said
    assert '"document."' not in said
    assert hotgrid(["ingest", "inspect", "out", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["text"] for row in found["first_patches"]] == ["The ", "second ", "document."]
    assert found["tensors"]["patch_lengths"] == "int32 [3]"


def test_names_are_shown_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "[bold]a.txt").write_text("a text")
    assert hotgrid(["ingest", "[bold]a.txt", "--out", "out"]) == 0
    assert hotgrid(["ingest", "inspect", "out"]) == 0
    assert "[bold]a.txt" in capsys.readouterr().out


def test_histogram_and_export(corpus: Path, capsys: pytest.CaptureFixture[str]):
    assert hotgrid(["ingest", "histogram", "out", "--bins", "7", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sum(found["histogram"]["counts"]) == 39
    assert found["histogram"]["num_bins"] == 7
    assert hotgrid(["ingest", "histogram", "out"]) == 0
    assert "39 bytes; nats: mean" in capsys.readouterr().out
    assert hotgrid(["ingest", "export", "out", "--to", "jsonl", "--out", "x.jsonl"]) == 0
    lines = [json.loads(line) for line in Path("x.jsonl").read_text().splitlines()]
    assert [each["text"] for each in lines] == ["The first document.", "The second document."]


def test_a_dry_run_counts(corpus: Path, capsys: pytest.CaptureFixture[str]):
    assert hotgrid(["ingest", "in", "--text", "more", "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {
        "image": {"documents": 1, "bytes": 15},
        "text": {"documents": 4, "bytes": 62},
    }
    assert hotgrid(["ingest", "in", "--dry-run"]) == 0
    assert "text" in capsys.readouterr().out


def test_a_dry_run_counts_on_one_rank(
    corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    assert hotgrid(["ingest", "in", "--dry-run"]) == 0
    assert not capsys.readouterr().out


def test_flags_of_blt_burn(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    command = ["ingest", "-t", "one two", "-r", "1.35", "--output-dir", "old"]
    assert hotgrid([*command, "--num-shards", "2", "--pdf-mode", "text_only"]) == 0
    manifest = Corpus(tmp_path / "old").manifest
    assert manifest["settings"]["threshold"] == 1.35
    assert len(manifest["shards"]) == 2
    assert manifest["settings"]["pdf"] == "text"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text", "x"], "say where the corpus goes: --out DIR"),
        (["none.txt", "--out", "o"], "there is no file or folder `none.txt`"),
        (["--out", "o"], "nothing to ingest"),
        (["--text", "x", "--out", "o", "--segmenter", "spaces"], "did you mean `space`"),
        (["--text", "x", "--out", "o", "--file-bytes", "many"], "not a size such as"),
        (["--text", "x", "--out", "o", "--nearr", "2"], "there is no option `--nearr`"),
        (["--text", "x", "--out", "o", "--near", "2"], "from 0 to 1"),
        (["--text", "x", "--out", "o", "--model", "none.safetensors"], "there is no"),
    ],
)
def test_what_is_wrong_is_said(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
):
    assert hotgrid(["ingest", *arguments]) in (1, 2)
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_sizes_have_units(tmp_path: Path):
    command = ["ingest", "--text", "x", "--out", "o", "--document-bytes", "2KiB"]
    assert hotgrid([*command, "--file-bytes", "1.5MB"]) == 0
    settings = Corpus(tmp_path / "o").manifest["settings"]
    assert (settings["document_bytes"], settings["file_bytes"]) == (2048, 1_500_000)


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class Stdin:
        buffer = io.BytesIO(b"from a pipe")

    monkeypatch.setattr("sys.stdin", Stdin)
    assert hotgrid(["ingest", "-", "--out", "o", "--segmenter", "space"]) == 0
    assert [each.data for each in Corpus(tmp_path / "o")] == [b"from a pipe"]
