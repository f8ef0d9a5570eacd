"""The entry point: everything that can go wrong becomes one clear message and an exit code."""

import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from hotgrid.errors import HotgridError

FINE, WRONG, NOT_UNDERSTOOD, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141

_NEEDED = ("cyclopts", "rich")


def main() -> NoReturn:
    """Run the command line of this process and exit with its code.

    Example:
        `python -m hotgrid doctor --quick`

    Raises:
        SystemExit: Always. 0 fine, 1 something is wrong and the text says what,
            2 the command line was not understood, 130 interrupted, 141 the reader
            of the output went away.
    """
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line (without the program name) and return its exit code."""
    missing = [part for part in _NEEDED if importlib.util.find_spec(part) is None]
    if missing:
        _complain(
            f"the command line needs {' and '.join(missing)}: run "
            f"`pip install {' '.join(missing)}`; the Python API works without."
        )
        return WRONG
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except HotgridError as error:
        _complain(str(error))
        return WRONG
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes once more at exit; that flush must find an open file.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    return code


def _dispatch(arguments: Sequence[str]) -> int:
    from cyclopts import CycloptsError, UnusedCliTokensError

    from ._app import build

    try:
        code = build().meta(arguments)
    except UnusedCliTokensError as error:
        unused = " ".join(error.unused_tokens or ())
        _complain(f"`{unused}` is more than this command takes; `--help` shows what it takes.")
        return NOT_UNDERSTOOD
    except CycloptsError as error:
        _complain(str(error))
        return NOT_UNDERSTOOD
    return FINE if code is None else code


def _complain(message: str) -> None:
    print(f"hotgrid: {message}", file=sys.stderr)  # noqa: T201
