"""The entry point: everything that can go wrong becomes one clear message and an exit code."""

import importlib.util
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from hotgrid.errors import CommunicationError, HotgridError, near

FINE, WRONG, NOT_UNDERSTOOD, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141

_NEEDED = ("cyclopts", "rich")

# Characters that control a terminal and are not shown; lines of our own texts end with "\n".
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def main() -> NoReturn:
    """Run the command line of this process and exit with its code.

    Example:
        `python -m hotgrid doctor --quick`

    Raises:
        SystemExit: Always. 0 success, 1 something is wrong and the message says what,
            2 the command line was not understood, 75 another rank was lost, 130
            interrupted, 141 the reader of the output went away.
    """
    _follow_launcher()
    main_thread = threading.current_thread() is threading.main_thread()
    if main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        code = run(sys.argv[1:])
    except SystemExit as ended:  # by a signal
        if not _still_compiles():
            raise
        code = ended.code if isinstance(ended.code, int) else WRONG
    interrupted = code == INTERRUPTED and int(os.environ.get("WORLD_SIZE", "1")) > 1
    if code == CommunicationError.exit_code or interrupted or _still_compiles():
        # Threads and connections that wait for another rank would block the exit.
        os._exit(code)
    sys.exit(code)


def _still_compiles() -> bool:
    """Whether a live run has not ended: torch aborts where the interpreter ends under it."""
    return any(each.name == "hotgrid-view" for each in threading.enumerate())


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """Raise KeyboardInterrupt, or exit at once while torch is being imported.

    Some of the modules that torch imports swallow any exception.
    """
    spec = getattr(sys.modules.get("torch"), "__spec__", None)
    if getattr(spec, "_initializing", False):
        if os.environ.get("RANK", "0") == "0":
            _complain("interrupted")
        os._exit(INTERRUPTED)
    raise KeyboardInterrupt


def _follow_launcher() -> None:
    """End a rank soon after its launcher, also while it still imports torch.

    `cluster` does so once ranks connect; importing it takes seconds, or more on a busy host.
    """
    parent = int(os.environ.get("LAUNCHER_OF_HOTGRID", "0"))

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(CommunicationError.exit_code)

    if parent:
        threading.Thread(target=watch, daemon=True).start()


def run(arguments: Sequence[str]) -> int:
    """Run one command line (without the program name) and return its exit code."""
    obstacle = _obstacle()
    if obstacle:
        _complain(obstacle)
        return WRONG
    _write_any_name()
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except HotgridError as error:
        _complain(str(error))
        return error.exit_code
    except KeyboardInterrupt as interrupt:
        # Only rank 0 reports it; `hotgrid.cluster.is_primary` would load torch.
        if str(interrupt) or os.environ.get("RANK", "0") == "0":
            _complain(str(interrupt) or "interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _drop_unwritten_output()
        return PIPE_CLOSED
    except OSError as error:
        if error.strerror is None:  # not from the system: a bug that needs its traceback
            raise
        what = f"`{error.filename}`" if error.filename else "a file or the output"
        _complain(f"{what} cannot be read or written ({error.strerror}).")
        _drop_unwritten_output()
        return WRONG
    except Exception as error:
        problem = _explained(error)
        if problem is None:
            raise
        _complain(problem)
        code = WRONG
    return code


def _explained(error: Exception) -> str | None:
    """What is wrong here or in a model's own file; None where it is a mistake of ours."""
    from ._own_file import fault_in_own_file

    fault = fault_in_own_file(error)
    if fault is None and isinstance(error, ImportError | AttributeError):
        from ._hidden import import_problem

        fault = import_problem(error)
    return fault


def _obstacle() -> str | None:
    """Return why no command can be run here, or None."""
    missing = [part for part in _NEEDED if importlib.util.find_spec(part) is None]
    if missing:
        return (
            f"the command line needs {' and '.join(missing)}: run "
            f"`pip install {' '.join(missing)}`; the Python API works without."
        )
    if sys.stdout is None:
        return "standard output is closed; redirect it to /dev/null if nothing reads it."
    return None


def _write_any_name() -> None:
    r"""Write what the output cannot encode as `\udcff`: a byte of a file name, say."""
    if getattr(sys.stdout, "errors", None) == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # pyright: ignore


def _drop_unwritten_output() -> None:
    """Let the flush that Python does at exit find an open file."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(arguments: Sequence[str]) -> int:
    from cyclopts import CycloptsError, UnknownCommandError, UnusedCliTokensError

    from ._app import build

    try:
        code = build().meta(arguments)
    except UnusedCliTokensError as error:
        unused = " ".join(error.unused_tokens or ())
        _complain(f"`{unused}` is more than this command takes; `--help` shows its arguments.")
        return NOT_UNDERSTOOD
    except UnknownCommandError as error:
        first = (error.unused_tokens or [""])[0]
        _complain(_unknown_option(first) if first.startswith("-") else str(error))
        return NOT_UNDERSTOOD
    except CycloptsError as error:
        _complain(str(error))
        return NOT_UNDERSTOOD
    return FINE if code is None else code


def _unknown_option(token: str) -> str:
    # The parser treats anything in the position of a command as one.
    name = token.partition("=")[0]
    hint = near(name, ("-c", "--help", "--version"), "Did you mean {}?")
    return f"Unknown option: {name}. {hint or '`--help` lists the options.'}"


def _complain(message: str) -> None:
    rank = os.environ.get("RANK", "0")
    if rank != "0" and not message.startswith("rank "):
        message = f"rank {rank}: {message}"
    # File names are untrusted; a terminal would interpret control characters in them.
    message = _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), message)
    with suppress(OSError):  # there is nowhere to report it
        print(f"hotgrid: {message}", file=sys.stderr, flush=True)  # noqa: T201
