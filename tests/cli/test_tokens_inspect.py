"""`hotgrid tokens inspect` and `vocabs`: its output, and texts that could control a
terminal."""

import html
import json
import re
from pathlib import Path

import pytest

from hotgrid import tokens
from hotgrid.cli._terminal import Terminal
from hotgrid.cli.tokens import _inspect as _tokens_inspect

from ..tokens.vocabularies import files  # noqa: TID252  tests are not a package
from .command import run

HOSTILE = "</pre><script>alert(1)</script>\x1b]0;owned\x07\x9b31m \u202egnp & \"'"


@pytest.fixture(autouse=True)
def vocabularies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "vocabularies"
    folder.mkdir()
    for file, data in files().items():
        if file.name.startswith("cl100k"):
            (folder / file.cache_name).write_bytes(data)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def inspect(*arguments: str) -> int:
    return run(["tokens", "inspect", "--encoding", "cl100k_base", *arguments])


def test_a_pipe_gets_a_line_for_each_token(capsys: pytest.CaptureFixture[str]):
    assert inspect("--text", "a\tb 👍") == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [json.loads(text) for _, text in lines] == ["a", "\tb", " 👍"]
    numbers = [int(number) for numbers, _ in lines for number in numbers.split()]
    assert numbers == tokens.get_encoding("cl100k_base").encode("a\tb 👍")


def test_json_has_spans_with_their_places(capsys: pytest.CaptureFixture[str]):
    text = "é 中文 👍 done"
    assert inspect("--text", text, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert "".join(span["text"] for span in found["spans"]) == text
    for span in found["spans"]:
        assert text[span["start"] :].startswith(span["text"])
    assert found["tokens"] == sum(len(span["tokens"]) for span in found["spans"])


def test_a_terminal_gets_colours_and_numbers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    class Coloured(Terminal):
        def __init__(self, **options: object) -> None:
            super().__init__(force_terminal=True, color_system="standard", **options)

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(_tokens_inspect, "Terminal", Coloured)
    assert inspect("--text", "Hello world\nnext") == 0
    out = capsys.readouterr().out
    assert "\x1b[30;43mHello\x1b[0m\x1b[30;42m world\x1b[0m" in out
    assert "\x1b[30;43m9906\x1b[0m" in out
    assert "4 tokens for 16 bytes, 4.00 bytes a token" in out


def test_nothing_in_a_text_steers_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(_tokens_inspect.Terminal, "is_terminal", True)
    assert inspect("--text", HOSTILE) == 0
    out = capsys.readouterr().out
    left = re.sub(r"\x1b\[[\d;]*m", "", out)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", left)
    assert "<script>alert(1)</script>" in left
    assert "\u241b" in left


def test_a_page_is_whole_escaped_and_asks_for_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    name = "<b>.txt"
    (tmp_path / name).write_text(HOSTILE + "\nend 👍")
    assert inspect(name, "--html", "page.html") == 0
    assert capsys.readouterr().out == "Wrote page.html.\n"
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<script" not in page
    assert "<b>" not in page
    assert "http" not in page.replace('http-equiv="', "")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", page)
    body = page.split("<pre>")[1].split("</pre>")[0]
    shown = html.unescape(re.sub(r"<[^>]*>", "", body))
    assert shown.replace("\u23ce", "") == _tokens_inspect.visible(HOSTILE) + "\nend 👍"
    numbers = re.findall(r'title="([\d ]+)"', body)
    enc = tokens.get_encoding("cl100k_base")
    assert [int(n) for each in numbers for n in each.split()] == enc.encode_ordinary(
        HOSTILE + "\nend 👍"
    )
    assert inspect(name, "--html", "page.html") == 1
    assert "`page.html` already exists" in capsys.readouterr().err
    assert inspect(name, "--html", "page.html", "--force") == 0


def test_nothing_in_a_path_steers_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "\x1b[31m"
    (tmp_path / "vocabularies").rename(folder)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    assert run(["tokens", "vocabs"]) == 0
    assert inspect("--text", "a", "--html", "\x1b[31m.html") == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.count("\u241b[31m") == 2


def test_inspect_takes_one_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "a.txt").write_text("a")
    assert inspect("a.txt", "a.txt") == 1
    assert "takes one text, got 2" in capsys.readouterr().err


def test_an_empty_text_has_no_tokens(capsys: pytest.CaptureFixture[str]):
    assert inspect("--text", "") == 0
    assert inspect("--text", "", "--html", "page.html") == 0
    assert capsys.readouterr().out == "Wrote page.html.\n"


def test_vocabs_says_which_are_here(vocabularies: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["tokens", "vocabs", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(tokens.list_encoding_names()) == set(rows)
    here = rows["cl100k_base"]
    [file] = vocabularies.iterdir()
    assert here["path"] == str(file)
    assert (here["here"], here["sha256_right"]) == (True, True)
    assert (here["tokens"], here["bytes"]) == (100_277, 1_681_126)
    ours = rows["hotgrid_32k"]
    assert (ours["default"], ours["embedded"], ours["here"]) == (True, True, True)
    assert (ours["tokens"], ours["url"]) == (32_768, None)
    assert not here["default"]
    absent = rows["o200k_base"]
    assert (absent["here"], absent["sha256_right"], absent["path"]) == (False, None, None)
    assert absent["url"].endswith("o200k_base.tiktoken")
    assert run(["tokens", "vocabs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("cl100k_base") and line.endswith(file.name) for line in lines)
    assert any("o200k_base" in line and "not here" in line for line in lines)


def test_a_wrong_file_is_reported_with_exit_1(
    vocabularies: Path, capsys: pytest.CaptureFixture[str]
):
    [file] = vocabularies.iterdir()
    file.write_bytes(b"IQ== 0\n")
    assert run(["tokens", "vocabs"]) == 1
    line = next(
        line for line in capsys.readouterr().out.splitlines() if line.startswith("cl100k")
    )
    assert " wrong " in line
