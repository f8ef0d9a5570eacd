"""Loggers that look up their level and targets at each call; nothing is registered."""

import logging
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from hotgrid.errors import ArgumentError, near

from ._current import current
from ._rules import File
from .sections import LEVELS, Level

_PYTHON_LEVELS = {
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}


def logger(component: str) -> "ComponentLogger":
    """Return the logger of one component.

    It is cheap to create and has no state: keep it or call this again.

    Args:
        component: The name under which `[logging.components]` can set it apart,
            such as `autotune`.

    Example:
        >>> logger("autotune").info("%s wins with %.1f us", "roll", 12.5)
    """
    return ComponentLogger(component)


@dataclass(frozen=True)
class ComponentLogger:
    """Logs for one component to every target that the settings in force name.

    Messages take `%` arguments, which are put in only when the level is enabled.
    Logging never stops a run: what a file target cannot take goes to stderr, with
    the reason.

    Example:
        >>> ComponentLogger("autotune").enabled("debug")
        False
    """

    component: str

    def enabled(self, level: Level) -> bool:
        """Return whether a message of this level would be written now.

        Raises:
            ArgumentError: There is no such level.

        Example:
            >>> from hotgrid.config import override
            >>> with override({"logging.level": "debug"}):
            ...     logger("autotune").enabled("info")
            True
        """
        if level not in LEVELS[1:]:
            known = ", ".join(LEVELS[1:])
            hint = near(level, LEVELS[1:])
            raise ArgumentError(f"`level` is {level!r}; expected one of {known}{hint}")
        limit, targets = current().logging.of(self.component)
        return bool(targets) and LEVELS.index(level) <= LEVELS.index(limit)

    def error(self, message: str, *args: object) -> None:
        """Log what went wrong.

        Example:
            >>> logger("autotune").error("%d candidates failed", 2)
        """
        self._log("error", message, args)

    def warning(self, message: str, *args: object) -> None:
        """Log what may go wrong.

        Example:
            >>> logger("autotune").warning("the cache in %s is read-only", "/data")
        """
        self._log("warning", message, args)

    def info(self, message: str, *args: object) -> None:
        """Log what happens.

        Example:
            >>> logger("autotune").info("timing %d candidates", 3)
        """
        self._log("info", message, args)

    def debug(self, message: str, *args: object) -> None:
        """Log what helps to find a fault.

        Example:
            >>> logger("autotune").debug("key %s", ("topk", "float32"))
        """
        self._log("debug", message, args)

    def _log(self, level: Level, message: str, args: tuple[object, ...]) -> None:
        if not self.enabled(level):
            return
        text = _formatted(message, args)
        line = f"hotgrid.{self.component} {level}: {text}"
        for target in dict.fromkeys(current().logging.of(self.component)[1]):
            match target:
                case "stdout":
                    _write_stream(sys.stdout, line)
                case "stderr":
                    _write_stream(sys.stderr, line)
                case "log":
                    python_logger = logging.getLogger(f"hotgrid.{self.component}")
                    # The record must name the caller's line: two frames are ours.
                    python_logger.log(_PYTHON_LEVELS[level], "%s", text, stacklevel=3)
                case File(path):
                    failure = _append(path, f"{level} {self.component}: {text}")
                    if failure:
                        _write_stream(sys.stderr, f"{line} (not in `{path}`: {failure})")


def _formatted(message: str, args: tuple[object, ...]) -> str:
    if not args:
        return message
    try:
        return message % args
    except Exception:  # noqa: BLE001  an argument's own __str__ can raise anything
        # A wrong format is a bug in hotgrid; the message is still better than a crash.
        return f"{message} {_represented(args)}"


def _represented(args: tuple[object, ...]) -> str:
    try:
        return repr(args)
    except Exception as error:  # noqa: BLE001  so can its __repr__
        return f"(arguments that cannot be shown: {type(error).__name__})"


def _write_stream(stream: TextIO | None, line: str) -> None:
    if stream is None:
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    with suppress(Exception):  # closed, its reader has gone away, or the user's own stream
        stream.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()


def _append(path: Path, text: str) -> str | None:
    """Append one line with one write, so that lines of several processes do not mix."""
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    flat = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    line = f"{stamp} {os.getpid()} {flat}\n".encode("utf-8", "backslashreplace")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o666)
        try:
            written = os.write(descriptor, line)
        finally:
            os.close(descriptor)
    except OSError as error:
        return error.strerror or type(error).__name__
    return None if written == len(line) else "it was cut short; the disk may be full"
