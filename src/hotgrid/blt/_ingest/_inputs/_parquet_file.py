"""How parquet files are opened, and how many row groups they have."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from hotgrid.errors import MissingPartError

# A signal is for the parent, which would take a missing answer for a crash.
_PROGRAM = """
import json, signal, sys
for each in (signal.SIGTERM, signal.SIGINT):
    signal.signal(each, signal.SIG_IGN)
from pyarrow import parquet
for line in sys.stdin:
    try:
        with parquet.ParquetFile(json.loads(line), memory_map=False, pre_buffer=False) as file:
            count = file.num_row_groups
    except (OSError, ValueError):
        count = 1
    print(count, flush=True)
"""


class RowGroups:
    """Counts row groups in a process of its own: a damaged file may crash pyarrow.

    The process starts with the first file, and again after a crash.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self._end()

    def of(self, file: Path) -> int:
        """How many row groups there are; 1 if that cannot be read: reading it says why."""
        if find_spec("pyarrow") is None:
            return 1
        process = self._process = self._process or _started()
        given, said = process.stdin, process.stdout
        assert given is not None  # noqa: S101 - asked for
        assert said is not None  # noqa: S101
        try:
            given.write(json.dumps(str(file)).encode() + b"\n")
            given.flush()
            answer = said.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            self._end()
        return int(answer or 1)

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._process = None


def _started() -> subprocess.Popen[bytes]:
    # -P: a file in the working folder that is called like a module must not hide it.
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def opened(file: Path) -> Any:
    """The file, as pyarrow reads it.

    Raises:
        MissingPartError: pyarrow is not installed.
    """
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingPartError(
            "parquet files need pyarrow: pip install 'hotgrid[parquet]'"
        ) from None
    return parquet.ParquetFile(file, memory_map=False, pre_buffer=False)
