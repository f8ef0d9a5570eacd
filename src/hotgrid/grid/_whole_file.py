"""Files that appear whole or not at all."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from hotgrid.errors import ArgumentError


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a place aside to write to; when that went well, put it at `path` in one move.

    The folder is made if need be. The file aside has the suffix of the path.

    Raises:
        ArgumentError: The path cannot be written, in the words of the system.
    """
    aside = path.with_name(f".{path.stem}-{uuid.uuid4().hex}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.touch(exist_ok=False)
        yield aside
        with aside.open("rb") as written:
            os.fsync(written.fileno())
        aside.replace(path)
    except OSError as problem:
        raise ArgumentError(f"cannot write `{path}`: {problem.strerror or problem}") from None
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
