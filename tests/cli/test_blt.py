"""`hotgrid blt patches`, in this process."""

import io
import json
from pathlib import Path

import pytest
import torch
from rich.console import Console

from hotgrid.blt import (
    EntropyConfig,
    EntropyModel,
    NgramCounts,
    load_ngram_table,
    save_entropy_model,
    segmenter,
)

from .command import run as hotgrid

TEXT = "To be, or not to be: naïve ones ask."


def rows(out: str) -> list[list[str]]:
    return [line.split("\t") for line in out.splitlines()]


def test_a_line_for_each_patch(capsys: pytest.CaptureFixture[str]):
    assert hotgrid(["blt", "patches", TEXT]) == 0
    found = rows(capsys.readouterr().out)
    wanted = segmenter().patches(TEXT.encode())
    assert [int(row[1]) for row in found] == [len(each) for each in wanted]
    entropies = load_ngram_table().entropies(TEXT.encode())
    for start, length, first, mean, text in found:
        part = entropies[int(start) : int(start) + int(length)]
        assert (first, mean) == (f"{part[0]:.2f}", f"{part.mean():.2f}")
        assert json.loads(text).encode() == TEXT.encode()[int(start) :][: int(length)]


def test_json_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "text.txt"
    file.write_bytes(TEXT.encode() + b"\xff\x00")
    command = ["blt", "patches", str(file), "--segmenter", "space", "--most", "3", "--json"]
    assert hotgrid([*command, "--limit", "37"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["bytes"], found["whole"], found["threshold"]) == (37, False, None)
    wanted = segmenter("space", most=3).lengths(TEXT.encode()[:37]).tolist()
    assert [row["length"] for row in found["rows"]] == wanted
    assert hotgrid([*command, "--limit", "100"]) == 0
    assert json.loads(capsys.readouterr().out)["whole"]


def test_models_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    torch.manual_seed(0)
    model = EntropyModel(EntropyConfig(size=16, layers=1, heads=2, hidden=16, window=8))
    model.thresholds = {"threshold": {"4.5": 5.1}}
    save_entropy_model(model, tmp_path / "model.safetensors")
    table = NgramCounts([TEXT.encode()], 3).table((5,), thresholds={"jump": {"4.5": 0.5}})
    table.save(tmp_path / "table.safetensors")
    for name, rule, threshold in (("model", "threshold", 5.1), ("table", "jump", 0.5)):
        path = str(tmp_path / f"{name}.safetensors")
        assert (
            hotgrid(["blt", "patches", TEXT, "--model", path, "--segmenter", rule, "--json"])
            == 0
        )
        found = json.loads(capsys.readouterr().out)
        assert (found["threshold"], found["model"]) == (threshold, path)


def test_colours_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    written = io.StringIO()

    class Wide(Console):
        def __init__(self, **options):
            super().__init__(file=written, force_terminal=True, width=400, **options)

    monkeypatch.setattr("hotgrid.cli.blt._patches.Terminal", Wide)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert hotgrid(["blt", "patches", "the end\n\x1b[31mof \x85 it"]) == 0
    shown = written.getvalue()
    assert "⏎" in shown
    assert "\\x1b" in shown
    assert "\x85" not in shown
    assert "bytes in" in shown
    assert "n-gram table" in shown


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    class Stdin:
        buffer = io.BytesIO(b"abcdefgh")

    monkeypatch.setattr("sys.stdin", Stdin)
    assert hotgrid(["blt", "patches", "-", "--segmenter", "static", "--size", "3"]) == 0
    assert [row[1] for row in rows(capsys.readouterr().out)] == ["3", "3", "2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x", "--segmenter", "spaces"], "did you mean `space`"),
        (["", "--segmenter", "space"], "no bytes to cut"),
        (["x", "--limit", "0"], "`--limit` must be at least 1"),
        (["x", "--size", "77"], "no `threshold` threshold for patches of 77 bytes"),
        (["x", "--model", "none.safetensors"], "there is no file"),
        (["x", "--model", "model.pt"], "refused"),
        (["x", "--most", "0"], "`--most` must be at least 1 byte, got 0"),
        (["docs/none.md"], "there is no file `docs/none.md`; for a text use --text"),
        (["none.txt"], "there is no file `none.txt`"),
        (["x", "--text", "y"], "one of them"),
        ([], "one of them"),
    ],
)
def test_what_is_wrong_is_said(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
):
    assert hotgrid(["blt", "patches", *arguments]) == 1
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_text_that_looks_like_a_path(capsys: pytest.CaptureFixture[str]):
    assert hotgrid(["blt", "patches", "--text", "docs/none.md", "--segmenter", "space"]) == 0
    assert (
        "".join(json.loads(row[4]) for row in rows(capsys.readouterr().out)) == "docs/none.md"
    )
    assert hotgrid(["blt", "patches", "and/or it is no path.", "--segmenter", "space"]) == 0


def test_bytes_that_are_not_utf8(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "bytes").write_bytes(b"ab\xff\\xff")
    command = [
        "blt",
        "patches",
        str(tmp_path / "bytes"),
        "--segmenter",
        "static",
        "--size",
        "3",
    ]
    assert hotgrid(command) == 0
    assert [row[4] for row in rows(capsys.readouterr().out)] == [r"b'ab\xff'", r'"\\xf"', '"f"']
    assert hotgrid([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["rows"]
    assert (found[0]["text"], found[0]["hex"]) == ("ab\ufffd", "6162ff")
    assert "hex" not in found[1]


def test_advice_for_a_model_that_is_not_calibrated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    model = EntropyModel(EntropyConfig(size=16, layers=1, heads=2, hidden=16, window=8))
    save_entropy_model(model, tmp_path / "model.safetensors")
    assert hotgrid(["blt", "patches", "some text", "--model", "model.safetensors"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "it was not calibrated" in said
    assert "--threshold" in said
