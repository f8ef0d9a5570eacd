"""The one progress bar: silent without a terminal, one line on it."""

import subprocess
import sys

import pytest

from hotgrid.progress import Progress


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr("_pytest.capture.CaptureIO.isatty", lambda file: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    return capsys


def drawn(text: str) -> list[str]:
    """What stood in the line, one after another."""
    return text.split("\r\x1b[K")[1:]


def test_it_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]):
    with Progress("reading", 2) as bar:
        bar.update(2)
    assert capsys.readouterr().err == ""


def test_it_is_one_line_when_asked_for_without_a_terminal(capsys: pytest.CaptureFixture[str]):
    with Progress("reading", 2000, unit="bytes", note=lambda rate: "quickly", show=True) as bar:
        bar.advance(500)
        bar.advance(500)
    line = f"reading [{'=' * 12}{' ' * 12}] 1,000 of 2,000 bytes  quickly"
    assert capsys.readouterr().err.startswith(line)


def test_it_is_drawn_at_once_and_stays_on_a_terminal(terminal):
    with Progress("reading", 3) as bar:
        assert drawn(terminal.readouterr().err) == [f"reading [{' ' * 24}] 0 of 3"]
        bar.update(3)
    assert drawn(terminal.readouterr().err)[-1] == f"reading [{'=' * 24}] 3 of 3\n"


def test_a_brief_one_waits_and_vanishes(terminal, monkeypatch: pytest.MonkeyPatch):
    with Progress("reading", brief=True) as bar:
        bar.update(3)
    assert terminal.readouterr().err == ""
    monkeypatch.setattr("hotgrid.progress._bar._BRIEF_AFTER_SECONDS", -1)
    with Progress("reading", brief=True):
        pass
    assert drawn(terminal.readouterr().err) == [f"reading [{' ' * 24}] 0", ""]


def test_it_says_the_rate_and_the_time_left(terminal, monkeypatch: pytest.MonkeyPatch):
    now = iter(range(1000))
    monkeypatch.setattr("time.monotonic", lambda: float(next(now)))
    with Progress("running", 1000, note=lambda rate: f"{rate:.0f}/s") as bar:
        bar.update(10)
        bar.update(20)
    last = drawn(terminal.readouterr().err)[-1]
    assert "/s  " in last
    assert last.endswith(" left\n")


def test_a_line_is_no_longer_than_the_terminal(terminal):
    with Progress("x" * 100, 3):
        pass
    assert all(len(line.rstrip("\n")) == 79 for line in drawn(terminal.readouterr().err))


def test_no_standard_error_is_no_problem():
    program = (
        "import sys; sys.stderr = None\n"
        "from hotgrid.progress import Progress\n"
        "with Progress('x', 1) as bar: bar.advance(1)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
