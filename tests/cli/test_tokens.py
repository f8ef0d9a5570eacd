"""`hotgrid tokens encode`, `decode` and `count`, in this process, with real vocabularies."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tiktoken

from hotgrid import tokens
from hotgrid.cli.tokens import _json as _tokens_json
from hotgrid.cli.tokens._group import _COMMANDS
from hotgrid.cli.tokens._input import _PART
from hotgrid.errors import ArgumentError

from ..tokens.vocabularies import files  # noqa: TID252  tests are no package
from .command import run

TEXT = "Hello  world, 中文 👍\n\n\tdéjà vu<|endoftext|> 12345\r\n"


@pytest.fixture(autouse=True)
def vocabularies(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    folder = tmp_path_factory.getbasetemp() / "vocabularies"
    if not folder.is_dir():
        folder.mkdir()
        for file, data in files().items():
            (folder / file.cache_name).write_bytes(data)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    yield
    tokens._registry._kept.cache_clear()


def expected(text: str, name: str = "cl100k_base") -> list[int]:
    return tiktoken.get_encoding(name).encode_ordinary(text)


def hotgrid(*arguments: str, encoding: str = "cl100k_base") -> int:
    return run(["tokens", *arguments, "--encoding", encoding])


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))


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


def test_counts_are_a_table_with_a_total(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "a.md").write_text("déjà vu " * 500)
    (tmp_path / "b.md").write_text("")
    assert hotgrid("count", "*.md") == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == [
        *("bytes", "characters", "tokens", "bytes/token", "file", "(cl100k_base)")
    ]
    count = len(expected("déjà vu " * 500))
    size = f"{5000 / count:.2f}"
    assert [row.split() for row in rows] == [
        ["5,000", "4,000", f"{count:,}", size, "a.md"],
        ["0", "0", "0", "-", "b.md"],
        ["5,000", "4,000", f"{count:,}", size, "total"],
    ]


def test_counts_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    assert hotgrid("count", "a.txt", "--json", encoding="o200k_base") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["encoding"] == "o200k_base"
    [row] = found["files"]
    assert row["tokens"] == len(expected(TEXT, "o200k_base"))
    assert found["total"] == row | {"file": None}
    assert row["bytes_per_token"] == row["bytes"] / row["tokens"]
    assert found["problems"] == []


def test_folders_are_searched_and_hidden_files_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    for name in ("d/one.txt", "d/e/two.txt", "d/.git/config", "d/.hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "d/picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    assert hotgrid("count", "d", "--json") == 0
    out, err = capsys.readouterr()
    assert [row["file"] for row in json.loads(out)["files"]] == ["d/e/two.txt", "d/one.txt"]
    assert err.startswith("hotgrid: left out: `d/picture.png` is not UTF-8: byte 0 is 0x89;")


def test_a_file_may_be_called_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for name in (b"[bold]x", b"\xff.txt", b"-"):
        Path(os.fsdecode(bytes(tmp_path / "d") + b"/" + name)).parent.mkdir(exist_ok=True)
        Path(os.fsdecode(bytes(tmp_path / "d") + b"/" + name)).write_text("x")
    assert hotgrid("count", "d") == 0
    names = [line.split()[-1] for line in capsys.readouterr().out.splitlines()[1:]]
    assert names == ["d/-", "d/[bold]x", "d/\ufffd.txt", "total"]


def test_nothing_in_the_name_of_a_file_steers_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    name = "\x1b]0;owned\x07\n\u202e.txt"
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / name).write_text("x")
    (tmp_path / "d" / f"wrong{name}").write_bytes(b"\xff")
    assert hotgrid("count", "d") == 0
    shown = "\u241b]0;owned\u2407\u240a\ufffd.txt"
    out, err = capsys.readouterr()
    assert out.splitlines()[1].endswith(f" d/{shown}")
    assert err.startswith(f"hotgrid: left out: `d/wrong{shown}` is not UTF-8")
    assert hotgrid("count", f"d/{name}", f"d/no{name}", "--json") == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["files"][0]["file"] == f"d/{name}"
    assert err.startswith(f"hotgrid: `d/no{shown}` cannot be read")
    assert hotgrid("encode", f"d/{name}", "--out", f"d/{name}") == 1
    assert f"`d/{shown}` is already there" in capsys.readouterr().err


def test_a_name_is_shown_in_one_way_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    name = os.fsdecode(b"\xff\n\x1b\xe2\x80\xa8")
    shown = "\ufffd\u240a\u241b\ufffd"
    (tmp_path / name).write_text("x")
    (tmp_path / f"{name}.json").write_text("[]")
    (tmp_path / f"{name}.u32").write_bytes(b"odd")
    assert hotgrid("count", name) == 0
    _, row = capsys.readouterr().out.removesuffix("\n").split("\n")
    assert row.endswith(f" {shown}")
    assert hotgrid("count", name, "--json") == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["file"] == "\ufffd\n\x1b\u2028"
    vocabulary = ["encode", "--text", "a", "--vocab"]
    for arguments, said in (
        (["encode", f"no{name}"], f"`no{shown}` cannot be read or written (No such"),
        (["encode", f"no{name}*"], f"no file matches `no{shown}*`"),
        (["encode", name, "--out", name], f"`{shown}` is already there"),
        (["encode", name, "--out", f"no{name}/x"], f"there is no folder `no{shown}` for `x`"),
        (["decode", f"{name}.u32"], f"`{shown}.u32` has 3 bytes"),
        (
            [*vocabulary, f"{name}.json"],
            f"`{shown}.json` is not a tokenizer that can be loaded",
        ),
        ([*vocabulary, name], f"`{shown}` must be a .tiktoken file"),
        ([*vocabulary, f"no{name}.json"], f"cannot read `no{shown}.json`"),
    ):
        assert run(["tokens", *arguments]) == 1
        complaint = capsys.readouterr().err
        assert said in complaint
        assert complaint.count("\n") == 1


def test_what_was_named_and_cannot_be_counted_is_exit_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "right.txt").write_text("right")
    (tmp_path / "wrong.txt").write_bytes(b"a" * 2_000_000 + b"\xc3(")
    assert hotgrid("count", "right.txt", "wrong.txt", "absent.txt") == 1
    out, err = capsys.readouterr()
    assert "right.txt" in out
    assert err.splitlines() == [
        "hotgrid: `wrong.txt` is not UTF-8: byte 2,000,000 is 0xc3; convert it, or read what "
        "is wrong as U+FFFD with `--errors replace`",
        "hotgrid: `absent.txt` cannot be read (No such file or directory)",
    ]
    assert hotgrid("count", "wrong.txt", "--errors", "replace", "--json") == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["characters"] == 2_000_002


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["encode", "nope.txt"], "`nope.txt` cannot be read or written (No such file"),
        (["encode", "*.nope"], "no file matches `*.nope`"),
        (["encode", "empty"], "the folder `empty` has no files"),
        (["encode", "binary"], "`binary` is not UTF-8: byte 1 is 0xff"),
        (["encode", "--text", "a\udcff"], "`--text` is not UTF-8: byte 1 is 0xff"),
        (["encode", "--text", "a", "ids"], "`--text` and files are two inputs"),
        (["encode", "ids", "--out", "ids"], "`ids` is already there; `--force` replaces it"),
        (["encode", "ids", "--out", "no/ids"], "there is no folder `no` for `ids`"),
        (["encode", "ids", "--out", "empty"], "`empty` is not a file that can be replaced"),
        (["encode", "ids", "--out", "/dev/null", "--force"], "`/dev/null` is not a file"),
        (["encode", "ids", "--pattern", "gpt2"], "use it with `--vocab FILE.tiktoken` only"),
        (["encode", "ids", "--vocab", "a.json"], "are two encodings; give one"),
        (["decode", "words"], "`words` holds 'two' where a token should be"),
        (["decode", "ids"], "100256 is not a token of cl100k_base, whose highest is 100276"),
        (["decode", "huge"], "9999999999 is not a token of cl100k_base"),
        (["decode", "odd.u32"], "`odd.u32` has 7 bytes, which is not a multiple of 4"),
        (["decode", "ids", "--format", "npy"], "`ids` is not an .npy file"),
        (["decode", "floats.npy"], "holds an array of float64 with 1 dimensions"),
        (["decode", "short.npy"], "`short.npy` ends 4 bytes early"),
        (["decode", "*.npy"], "takes one text, got 2"),
        (["decode", "deep.json"], "`deep.json` has '[2]' where a token or the end of an array"),
        (["decode", "deep.json", "--format", "text", "--out", "no/b"], "there is no folder"),
        (["encode", "-x.txt"], "`-x.txt` cannot be read or written (No such file"),
    ],
)
def test_a_wrong_input_is_one_message_and_exit_1(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "binary").write_bytes(b"a\xff")
    (tmp_path / "ids").write_text("100256\n")
    (tmp_path / "huge").write_text("[1, 9999999999]")
    (tmp_path / "words").write_text("1 two 3")
    (tmp_path / "odd.u32").write_bytes(bytes(7))
    (tmp_path / "deep.json").write_text("[1, [2]]")
    (tmp_path / "empty").mkdir()
    np.save(tmp_path / "floats.npy", np.zeros(3))
    np.save(tmp_path / "short.npy", np.zeros(3, np.uint32))
    whole = (tmp_path / "short.npy").read_bytes()
    (tmp_path / "short.npy").write_bytes(whole[:-4])
    assert hotgrid(*arguments) == 1
    err = capsys.readouterr().err
    assert said in err
    assert err.startswith("hotgrid: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["encode", "--vocab", "a.bin"],
            "`a.bin` must be a .tiktoken file or a tokenizer.json",
        ),
        (["encode", "--vocab", "a.tiktoken"], "`a.tiktoken` does not contain a pattern"),
        (["count", "--vocab", "a.json"], "cannot read `a.json`"),
        (
            ["count", "--vocab", "a.tiktoken", "--pattern", "cl10k"],
            "there is no pattern `cl10k`; did you mean `cl100k`?",
        ),
        (["count", "--encoding", "cl100k"], "did you mean `cl100k_base`?"),
    ],
)
def test_a_wrong_vocabulary_is_a_message_and_exit_1(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
):
    assert run(["tokens", *arguments, "--text", "x"]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["count", "--jsn"], "Unknown option: --jsn. Did you mean --json?"),
        (["encode", "a", "--zzz=1"], "Unknown option: --zzz. `--help` lists"),
        (
            ["count", "--", "-x.txt", "--zzz"],
            "`--help` lists the options; there is no file of that name",
        ),
        (["encode", "--format", "csv"], "csv"),
        (["cuont"], 'Did you mean "count"?'),
    ],
)
def test_a_line_that_is_not_understood_is_exit_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
):
    assert run(["tokens", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_suffix_that_says_no_format_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert hotgrid("encode", "--text", "Hello", "--out", "o.xyz") == 1
    said = capsys.readouterr().err
    assert "`--out o.xyz` has no suffix of a format" in said
    assert "--format text" in said
    assert not (tmp_path / "o.xyz").exists()
    for arguments in (["o.xyz", "--format", "text"], ["o.txt"], ["o"]):
        assert hotgrid("encode", "--text", "Hello world", "--out", *arguments) == 0
        assert (tmp_path / arguments[0]).read_text() == "9906 1917\n"


def test_help_says_which_commands_take_an_encoding(capsys: pytest.CaptureFixture[str]):
    group = _help(capsys)
    taking = {name for name in _COMMANDS if "--encoding" in _help(capsys, name)}
    assert taking == {"encode", "decode", "count", "inspect", "bench"}
    assert "encode, decode, count, inspect and bench take --encoding NAME" in group


@pytest.mark.parametrize("name", ["encode", "count", "train", "inspect", "bench"])
def test_help_says_the_default_of_errors(name: str, capsys: pytest.CaptureFixture[str]):
    assert "by default strict" in _help(capsys, name)
    if name == "train":
        assert "by default 65535" in _help(capsys, name)


def _help(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What `--help` shows, on one line and without its frame."""
    assert run(["tokens", *words, "--help"]) == 0
    return " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_a_failing_run_leaves_the_old_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "ids").write_text("9906 1917 100256")
    assert hotgrid("decode", "ids", "--out", "old.txt", "--force") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"old.txt", "ids"}
    assert (tmp_path / "old.txt").read_text() == "old"
    (tmp_path / "ids").write_text("9906 1917")
    assert hotgrid("decode", "ids", "--out", "old.txt", "--force") == 0
    assert (tmp_path / "old.txt").read_text() == "Hello world"


def test_bytes_that_are_no_text_are_written_and_said(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
):
    # The first of the three tokens of an emoji.
    first = expected("👍")[0]
    feed(monkeypatch, f"{first}".encode())
    assert hotgrid("decode") == 0
    out, err = capsysbinary.readouterr()
    assert out == "👍".encode()[:2]
    assert err == b"hotgrid: some bytes are not UTF-8; written unchanged.\n"


def test_long_work_shows_a_bar_on_a_terminal_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "a.txt").write_text("some words " * 1000)
    monkeypatch.setattr("hotgrid.progress._bar._BRIEF_AFTER_SECONDS", -1)
    assert hotgrid("count", "a.txt") == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert hotgrid("count", "a.txt") == 0
    out, err = capsys.readouterr()
    assert "counting" in err
    assert "counting" not in out


@pytest.mark.parametrize("command", ["encode", "count", "decode"])
def test_commands_import_no_torch(command: str):
    program = (
        "import sys; from hotgrid.cli._main import run\n"
        "codes = [run(['tokens', sys.argv[1], '--help'])]\n"
        "assert 'numpy' not in sys.modules\n"
        "codes.append(run(['tokens', sys.argv[1], '--encoding', 'cl100k_base']))\n"
        "assert 'torch' not in sys.modules\n"
        "sys.exit(max(codes))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, command],
        input="9906",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Examples:" in done.stdout


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path):
    (tmp_path / "long.txt").write_text("many words " * 200_000)
    reader, writer = os.pipe()
    os.close(reader)
    arguments = ["tokens", "encode", "long.txt", "--encoding", "cl100k_base"]
    command = [sys.executable, "-m", "hotgrid", *arguments]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
