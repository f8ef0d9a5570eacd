"""Talking in the terminal, and the commands `chat talk` and `chat serve`."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from hotgrid.chat import LanguageModel, Sampling, compress_model, save_model
from hotgrid.chat._talk import Talk, introduction

from ..cli.command import run as hotgrid  # noqa: TID252  tests are not a package
from .tiny import byte_encoding, random_language, scripted_language

GREEDY = Sampling(temperature=0)


class Screen:
    """A terminal: lines that are typed, and what is shown. An exception is raised instead."""

    def __init__(self, *lines: str | type[BaseException]) -> None:
        self._lines: Iterator[str | type[BaseException]] = iter(lines)
        self.shown = ""
        self.interrupt_at = ""

    def read(self, prompt: str) -> str:
        line = next(self._lines, EOFError)
        if isinstance(line, str):
            return line
        raise line

    def write(self, text: str) -> None:
        self.shown += text
        if self.interrupt_at and self.interrupt_at in self.shown:
            self.interrupt_at = ""
            raise KeyboardInterrupt

    def talk(self, language: LanguageModel, **more: str) -> Talk:
        made = Talk(language, GREEDY, self.read, self.write, **more)
        made.run()
        return made


def test_a_conversation_and_its_commands(tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    screen = Screen(
        "/system Be brief.", "Hi", "", f"/save {file}", "/reset", "/help", "/rest", "/save"
    )
    talk = screen.talk(scripted_language("Hello", " there"))
    assert screen.shown.startswith("scripted: a model of ")
    assert "tuned to answer" in screen.shown.splitlines()[0]
    assert "\nHello there\n" in screen.shown
    saved = json.loads(file.read_text())["messages"]
    assert [(each["role"], each["content"]) for each in saved] == [
        ("system", "Be brief."),
        ("user", "Hi"),
        ("assistant", "Hello there"),
    ]
    assert talk.messages == []
    assert "/reset        forget" in screen.shown
    assert "did you mean `/reset`?" in screen.shown
    assert "name a file" in screen.shown


def test_save_does_not_replace_what_it_did_not_write(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text("precious")
    new = tmp_path / "new"
    screen = Screen(f"/save {new}", "Hi", f"/save {file}", f"/save {new}", f"/save {new}")
    screen.talk(scripted_language("Yes"))
    assert "no conversation to save yet" in screen.shown
    assert file.read_text() == "precious"
    assert "already exists" in screen.shown
    assert screen.shown.count("Saved 2 messages") == 2


def test_an_interrupt_stops_the_reply_and_a_second_leaves() -> None:
    screen = Screen("Sing", KeyboardInterrupt, "never read")
    screen.interrupt_at = "la lo"
    talk = screen.talk(scripted_language("la ", "lo ", endless=True))
    assert talk.messages[1].content == "la lo "
    assert next(screen._lines) == "never read"


def test_an_interrupt_between_messages_is_forgotten() -> None:
    screen = Screen(KeyboardInterrupt, "Hi", KeyboardInterrupt, "Hi", "/quit", "never read")
    talk = screen.talk(scripted_language("Yes"))
    assert len(talk.messages) == 4
    assert "once more leaves" in screen.shown


def test_a_base_model_says_so_and_continues_the_whole_text() -> None:
    language = random_language(seed=4, tuned=False, context=512)
    screen = Screen("Once")
    talk = screen.talk(language)
    assert "continues your text. It does not answer" in screen.shown.splitlines()[0]
    assert talk.messages[1].role == "assistant"


def test_a_conversation_that_is_too_long_says_the_way_out() -> None:
    screen = Screen("x" * 100, "Hi")
    talk = screen.talk(scripted_language("Yes", context=64))
    assert "/reset forgets" in screen.shown
    assert [message.content for message in talk.messages] == ["Hi", "Yes"]


def test_control_characters_do_not_reach_the_terminal() -> None:
    screen = Screen("Hi")
    screen.talk(scripted_language("\x1b[2J", "a\tb\n", "\u202e"))
    assert "\x1b" not in screen.shown
    assert "\ufffd[2Ja\tb\n\ufffd" in screen.shown


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("models") / "small"
    language = random_language(seed=4, context=256)
    save_model(place, LanguageModel(language.model, byte_encoding(), {"tuned": True}))
    return place


def test_prompt_prints_the_completion_alone(folder: Path, capsys) -> None:
    words = ["chat", "talk", str(folder), "--prompt", "Hi", "--max-tokens", "8"]
    found = []
    for seed in ("1", "1", "2"):
        assert hotgrid([*words, "--seed", seed]) == 0
        found.append(capsys.readouterr())
    assert found[0].out == found[1].out != found[2].out
    assert found[0].out.endswith("\n")
    assert found[0].err == ""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["talk", "nowhere"], "nowhere"),
        (["talk", "--temperature", "-1"], "temperature"),
        (["talk", "--device", "abacus"], "abacus"),
        (["serve", "--host", "0.0.0.0"], "HOTGRID_CHAT_KEY"),
        (["serve", "nowhere"], "nowhere"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_commands_say_what_is_wrong(words: list[str], says: str, capsys) -> None:
    assert hotgrid(["chat", *words]) != 0
    assert says in capsys.readouterr().err


@pytest.mark.slow
def test_serve_prints_its_address_answers_and_ends_with_a_signal(folder: Path) -> None:
    words = [sys.executable, "-m", "hotgrid", "chat", "serve", str(folder), "--port", "0"]
    environment = {**os.environ, "HOTGRID_CHAT_KEY": "secret"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("hotgrid chat: http://127.0.0.1:")
            base = f"{line.split()[-1]}v1"
            with openai.OpenAI(base_url=base, api_key="secret", timeout=60) as client:
                answer = client.completions.create(model="default", prompt="a", max_tokens=3)
            assert answer.usage is not None
            assert answer.usage.completion_tokens <= 3
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            assert process.stdout.read() == ""
        finally:
            process.kill()


def test_a_closed_input_says_the_way_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert hotgrid(["chat", "talk", str(folder)]) != 0
    assert "--prompt" in capsys.readouterr().err


def test_a_compressed_model_tells_all_its_parameters() -> None:
    language = random_language(tuned=False, layers=2, size=512, heads=4)
    small = compress_model(language, "int8", force=True)
    count = sum(weight.numel() for weight in language.model.parameters()) / 1e6
    assert f"{count:.3g} million" in introduction(language)
    assert f"{count:.3g} million" in introduction(small)
