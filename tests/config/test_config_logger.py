"""Loggers: levels, several targets at once, and nothing that stops a run."""

import io
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hotgrid
from hotgrid.config import Config, logger, override, use
from hotgrid.config.sections import Level
from hotgrid.errors import ArgumentError

LEVELS: list[Level] = ["error", "warning", "info", "debug"]


@pytest.fixture(autouse=True)
def defaults():
    with use(Config()):
        yield


def lines(path: Path):
    """The lines of a log file without time and process."""
    pattern = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \d+ "
    return [re.sub(pattern, "", line, count=1) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("limit", ["off", *LEVELS])
def test_a_level_lets_through_itself_and_what_is_graver(
    limit: Level, capsys: pytest.CaptureFixture[str]
):
    log = logger("grid")
    with override({"logging.level": limit}):
        for level in LEVELS:
            getattr(log, level)("%s here", level)
        enabled = [level for level in LEVELS if log.enabled(level)]
    expected = [] if limit == "off" else LEVELS[: LEVELS.index(limit) + 1]
    assert enabled == expected
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        f"hotgrid.grid {each}: {each} here" for each in expected
    ]


def test_several_targets_at_once_each_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    path = tmp_path / "deep" / "run.log"
    spelled = {"file": tmp_path / "deep" / ".." / "deep" / "run.log"}
    targets = ["stdout", "stderr", "log", {"file": path}, "stdout", spelled]
    with override({"logging.targets": targets}):
        logger("grid").warning("%s wins", "roll")
        logger("grid").warning("100 %")
    printed = capsys.readouterr()
    expected = "hotgrid.grid warning: roll wins\nhotgrid.grid warning: 100 %\n"
    assert printed.out == printed.err == expected
    assert lines(path) == ["warning grid: roll wins", "warning grid: 100 %"]
    assert [record.name for record in caplog.records] == ["hotgrid.grid"] * 2
    assert [record.getMessage() for record in caplog.records] == ["roll wins", "100 %"]


def test_components_differ(capsys: pytest.CaptureFixture[str]):
    values = {
        "logging.level": "error",
        "logging.components.autotune.level": "debug",
        "logging.components.autotune.targets": ["stdout"],
        "logging.components.cluster.level": "off",
    }
    with override(values):
        for component in ("autotune", "cluster", "grid"):
            logger(component).error("e")
            logger(component).debug("d")
    printed = capsys.readouterr()
    assert printed.out == "hotgrid.autotune error: e\nhotgrid.autotune debug: d\n"
    assert printed.err == "hotgrid.grid error: e\n"


def test_a_logger_made_earlier_follows_an_override(capsys: pytest.CaptureFixture[str]):
    log = logger("grid")
    log.info("before")
    with override({"logging.level": "info"}):
        log.info("inside")
    log.info("after")
    assert capsys.readouterr().err == "hotgrid.grid info: inside\n"


def test_arguments_are_put_in_only_when_enabled():
    class Costly:
        def __str__(self):
            raise AssertionError("formatted for nobody")

    logger("grid").debug("%s", Costly())
    with override({"logging.level": "debug", "logging.targets": []}):
        assert not logger("grid").enabled("error")
        logger("grid").debug("%s", Costly())


def test_python_logging_gets_level_and_the_line_of_the_caller(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    with override({"logging.level": "debug", "logging.targets": ["log"]}):
        logger("store").debug("%d %%", 5)
        logger("store").error("bad")
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("DEBUG", "5 %"),
        ("ERROR", "bad"),
    ]
    assert {Path(r.pathname).name for r in caplog.records} == {Path(__file__).name}


def test_a_record_is_one_line_in_a_file(tmp_path: Path):
    path = tmp_path / "run.log"
    with override({"logging.targets": [{"file": path}]}):
        logger("grid").error("two\nlines\r and a \\n")
        logger("grid").error("ü \udcff")
    assert lines(path) == [r"error grid: two\nlines\r and a \\n", r"error grid: ü \udcff"]


def test_a_wrong_format_still_shows_the_message(capsys: pytest.CaptureFixture[str]):
    logger("grid").error("%d cells", "no number")
    assert capsys.readouterr().err == "hotgrid.grid error: %d cells ('no number',)\n"


class Unprintable:
    def __str__(self):
        raise KeyError("no text")

    __repr__ = __str__


@pytest.mark.parametrize(
    ("message", "argument", "said"),
    [
        ("%d steps", float("inf"), "%d steps (inf,)"),
        ("%s", Unprintable(), "%s (arguments that cannot be shown: KeyError)"),
    ],
)
def test_no_argument_stops_a_run(
    message: str, argument: object, said: str, capsys: pytest.CaptureFixture[str]
):
    logger("grid").error(message, argument)
    assert capsys.readouterr().err == f"hotgrid.grid error: {said}\n"


def test_what_a_file_cannot_take_goes_to_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "file").touch()
    with override({"logging.targets": [{"file": tmp_path / "file" / "run.log"}]}):
        logger("grid").error("kept")
    with override({"logging.targets": [{"file": "/dev/full"}]}):
        logger("grid").error("kept too")
    first, second = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"hotgrid.grid error: kept \(not in `.*/run.log`: .+\)", first)
    assert second == (
        "hotgrid.grid error: kept too (not in `/dev/full`: No space left on device)"
    )


def test_a_closed_or_missing_stream_does_not_stop_a_run(monkeypatch: pytest.MonkeyPatch):
    closed = io.StringIO()
    closed.close()
    for stream in (closed, None):
        monkeypatch.setattr(sys, "stderr", stream)
        logger("grid").error("nobody hears")


def test_a_narrow_stream_gets_escapes(monkeypatch: pytest.MonkeyPatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    with override({"logging.targets": ["stdout"]}):
        logger("grid").error("ü")
    assert raw.getvalue() == b"hotgrid.grid error: \\xfc\n"


def test_an_unknown_level_is_an_error():
    with pytest.raises(ArgumentError, match=r"`level` is 'warn'.*did you mean `warning`"):
        logger("grid").enabled("warn")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match="`level` is 'off'; expected one of error, warning"):
        logger("grid").enabled("off")


def test_lines_of_several_processes_do_not_mix(tmp_path: Path):
    path = tmp_path / "run.log"
    code = (
        "import sys\n"
        "from hotgrid.config import logger\n"
        "for n in range(200): logger('grid').error('%s %d', sys.argv[1] * 500, n)\n"
    )
    environ = os.environ | {
        "HOTGRID_LOGGING_TARGETS": f"file:{path}",
        "PYTHONPATH": str(Path(hotgrid.__file__).parents[1]),
    }
    command = [sys.executable, "-c", code]
    running = [subprocess.Popen([*command, letter], env=environ) for letter in "ab"]
    assert [process.wait() for process in running] == [0, 0]
    expected = [f"error grid: {letter * 500} {n}" for letter in "ab" for n in range(200)]
    assert sorted(lines(path)) == sorted(expected)
