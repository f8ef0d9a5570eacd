"""`hotgrid tokens encode`, `decode` and `count`, in this process, with real vocabularies."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import tiktoken

from hotgrid import tokens
from hotgrid.cli.tokens import _json as _tokens_json
from hotgrid.cli.tokens._input import _PART
from hotgrid.errors import ArgumentError

from .command import run
from .tokens_command import TEXT, expected, feed, hotgrid, vocabularies  # noqa: F401


def test_a_text_becomes_the_tokens_of_tiktoken(capsys: pytest.CaptureFixture[str]):
    assert hotgrid("encode", "--text", TEXT) == 0
    assert list(map(int, capsys.readouterr().out.split())) == expected(TEXT)


@pytest.mark.parametrize("form", ["ids", "json", "npy", "u32"])
def test_decode_reads_what_encode_writes(
    form: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
):
    source = tmp_path / "a.txt"
    source.write_bytes(TEXT.encode())
    assert hotgrid("encode", "a.txt", "--out", f"a.{form}") == 0
    assert capsysbinary.readouterr().out == b""
    assert hotgrid("decode", f"a.{form}") == 0
    assert capsysbinary.readouterr() == (TEXT.encode(), b"")
    assert hotgrid("decode", f"a.{form}", "--out", "b.txt") == 0
    assert Path("b.txt").read_bytes() == TEXT.encode()
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", f"a.{form}", "b.txt"}


def test_formats_are_those_of_other_libraries(capsysbinary: pytest.CaptureFixture[bytes]):
    right = expected(TEXT)
    for form in ("json", "npy", "u32"):
        assert hotgrid("encode", "--text", TEXT, "--format", form) == 0
        data = capsysbinary.readouterr().out
        if form == "json":
            assert json.loads(data) == right
        elif form == "u32":
            assert np.frombuffer(data, "<u4").tolist() == right
        else:
            assert np.load(io.BytesIO(data)).tolist() == right


def test_every_text_has_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for name, text in {"a.txt": "one two", "b.txt": "", "c.txt": "three"}.items():
        (tmp_path / name).write_text(text)
    assert hotgrid("encode", "*.txt") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [list(map(int, line.split())) for line in lines] == [
        expected("one two"),
        [],
        expected("three"),
    ]
    assert hotgrid("encode", ".", "--format", "json") == 0
    assert list(map(json.loads, capsys.readouterr().out.splitlines()))[1] == []


@pytest.mark.parametrize("named", [[], ["-"]])
def test_standard_input(
    named: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
):
    feed(monkeypatch, TEXT.encode())
    assert hotgrid("encode", *named) == 0
    ids = capsysbinary.readouterr().out
    feed(monkeypatch, ids)
    assert hotgrid("decode", *named) == 0
    assert capsysbinary.readouterr().out == TEXT.encode()


def test_a_long_text_is_read_in_parts(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
):
    # Of three bytes each, so that parts end inside of characters.
    text = "中 文字" * (_PART // 8)
    feed(monkeypatch, text.encode())
    assert hotgrid("encode", "--format", "u32") == 0
    data = capsysbinary.readouterr().out
    assert np.frombuffer(data, "<u4").tolist() == expected(text)
    feed(monkeypatch, data)
    assert hotgrid("decode", "--format", "u32") == 0
    assert capsysbinary.readouterr().out.decode() == text


def test_tokens_as_text_may_be_cut_anywhere(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
):
    right = list(range(100_256))
    ids = " ".join(map(str, right * 3))
    assert len(ids) > _PART
    feed(monkeypatch, ids.encode())
    assert hotgrid("decode") == 0
    enc = tiktoken.get_encoding("cl100k_base")
    assert capsysbinary.readouterr().out == enc.decode_bytes(right * 3)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("1 2", "'1 2'"),
        ("[1 2]", "'2]'"),
        ("[1, 2", "an end"),
        ("[1,, 2]", "', 2"),
        ("[, 1]", "', 1"),
        ("[1,]", "']'"),
        ("[1], [2]", "', [2]'"),
        ("[1, null]", "'null'"),
        ("[true]", "'true'"),
        ("[1.5]", "'1.5'"),
        ('{"a": [1]}', "'{"),
        ("x" * 100, "'xxxx"),
    ],
)
@pytest.mark.parametrize("part", [1, 3, _PART])
def test_json_that_is_no_array_of_tokens(
    data: str, shown: str, part: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(_tokens_json, "_PART", part)
    with pytest.raises(ArgumentError, match="arrays of whole numbers") as refusal:
        list(_tokens_json.read_json(io.BytesIO(data.encode()), "a.json"))
    if part == _PART:
        assert f"`a.json` has {shown}" in str(refusal.value)


@pytest.mark.parametrize("part", [1, 2, 5, _PART])
def test_json_may_be_cut_anywhere(part: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_tokens_json, "_PART", part)
    data = b" [1, 22,333 ]\n[]\n\n[4444]\r\n[ ] [55\n,6]  "
    found = list(_tokens_json.read_json(io.BytesIO(data), "a.json"))
    assert [token for tokens in found for token in tokens] == [1, 22, 333, 4444, 55, 6]
    assert list(_tokens_json.read_json(io.BytesIO(b""), "a.json")) == [[]]


def test_a_file_may_begin_like_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["tokens", "count", "--", "-x.txt"]) == 1
    missing = "hotgrid: `-x.txt` cannot be read (No such file or directory)\n"
    assert capsys.readouterr().err == missing
    (tmp_path / "-x.txt").write_text("x")
    assert run(["tokens", "count", "--", "-x.txt"]) == 0
    assert run(["tokens", "count", "--out", "x"]) == 2
    assert "Unknown option: --out. `--help` lists" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["decode", "encode"])
def test_a_closed_standard_input_is_reported(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "stdin", None)
    assert hotgrid(command) == 1
    assert capsys.readouterr().err == "hotgrid: standard input is closed; name a file\n"


def test_the_name_of_an_encoding_is_a_pattern(capsys: pytest.CaptureFixture[str]):
    tokens.save_tiktoken(tokens.get_encoding("o200k_base"), "mine.tiktoken")
    use = ["--vocab", "mine.tiktoken", "--pattern", "o200k_harmony"]
    assert run(["tokens", "encode", "--text", TEXT, *use]) == 0
    right = expected(TEXT, "o200k_base")
    assert list(map(int, capsys.readouterr().out.split())) == right


def test_without_a_choice_it_is_the_encoding_that_comes_with_hotgrid(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "nowhere")
    assert run(["tokens", "encode", "--text", TEXT]) == 0
    right = tokens.get_encoding("hotgrid_32k").encode_ordinary(TEXT)
    assert list(map(int, capsys.readouterr().out.split())) == right


def test_special_tokens_only_when_asked_for(capsys: pytest.CaptureFixture[str]):
    assert hotgrid("encode", "--text", "a<|endoftext|>", "--specials") == 0
    assert capsys.readouterr().out == "64 100257\n"
    assert hotgrid("encode", "--text", "a<|endoftext|>") == 0
    assert "100257" not in capsys.readouterr().out


def test_a_vocabulary_of_your_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256}
    enc = tokens.Encoding("mine", pat_str=r"\w+|\W", mergeable_ranks=ranks, special_tokens={})
    tokens.save_tiktoken(enc, "mine.tiktoken")
    tokens.save_huggingface(enc, "mine.json")
    for vocabulary in (["mine.json"], ["mine.tiktoken", "--pattern", r"\w+|\W"]):
        assert run(["tokens", "encode", "--text", "abba ab", "--vocab", *vocabulary]) == 0
        assert capsys.readouterr().out == "256 98 97 32 256\n"
    named = ["mine.tiktoken", "--pattern", "gpt2"]
    assert run(["tokens", "encode", "--text", "ab ab", "--vocab", *named]) == 0
    assert capsys.readouterr().out == "256 32 256\n"
