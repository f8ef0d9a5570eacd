"""`hotgrid tokens`: files and folders, wrong input, help, and how it ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hotgrid.cli.tokens._group import _COMMANDS

from .command import run
from .tokens_command import TEXT, expected, feed, hotgrid, vocabularies  # noqa: F401


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
    assert f"`d/{shown}` already exists" in capsys.readouterr().err


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
        (["encode", name, "--out", name], f"`{shown}` already exists"),
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
        (["encode", "ids", "--out", "ids"], "`ids` already exists; `--force` replaces it"),
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
