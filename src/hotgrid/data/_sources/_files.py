"""Files of sources: found by path and pattern, opened once, read from any thread."""

import glob
import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path

from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.files import open_regular, regular_stat

_BRACES = re.compile(r"\{(\d+)\.\.(\d+)\}")


def found_files(paths: Sequence[str], suffixes: tuple[str, ...]) -> list[Path]:
    """Files, folders and patterns as files, in the order given and sorted inside each.

    `{000..009}` in a path stands for a number each; it and `*` are the patterns.

    Raises:
        ArgumentError: Nothing was found, or it ends in another suffix.
        DamagedError: Something that was found is a link or not a regular file.
    """
    files: dict[Path, None] = {}
    for path in (each for given in paths for each in _expanded(given)):
        if Path(path).is_dir():
            found = sorted(each for each in Path(path).iterdir() if each.suffix in suffixes)
        elif Path(path).exists() or Path(path).is_symlink():
            found = [Path(path)]
        else:
            # Path.glob takes no absolute pattern.
            found = [Path(each) for each in sorted(glob.glob(path))]  # noqa: PTH207
        if not found:
            raise ArgumentError(f"`{path}`: found no file that ends in {_any(suffixes)}")
        for each in found:
            if not each.name.endswith(suffixes):
                raise ArgumentError(f"`{each}` does not end in {_any(suffixes)}")
            regular_stat(each)
            files[each] = None
    if not files:
        raise ArgumentError(f"`paths` {list(paths)} names no file")
    return list(files)


def matching(path: str) -> list[Path]:
    """The files and folders of a path that may be a pattern, sorted; maybe none."""
    found = []
    for each in _expanded(path):
        if Path(each).exists():
            found.append(Path(each))
        else:
            found += [Path(one) for one in sorted(glob.glob(each))]  # noqa: PTH207
    return found


def read_whole(path: Path, limit: int) -> bytes:
    """The bytes of a regular file, at most `limit`.

    Raises:
        DamagedError: It is missing, not a regular file, too large or cannot be read.
    """
    try:
        descriptor = open_regular(path)
    except DamagedError:
        raise
    except FileNotFoundError:
        raise DamagedError(f"`{path}` is missing") from None
    except OSError as problem:
        raise DamagedError(f"`{path}` cannot be read: {problem.strerror}") from problem
    try:
        size = os.fstat(descriptor).st_size
        if size > limit:
            raise DamagedError(f"`{path}` has {size} bytes, more than {limit}")
        # In one call: a buffered file would allocate the limit first.
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)


class OpenFile:
    """An open file that any thread reads at any place.

    Raises:
        DamagedError: It is not a regular file, or missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = open_regular(path)
        except FileNotFoundError:
            raise DamagedError(f"`{path}` is missing") from None
        self.size = os.fstat(self._descriptor).st_size

    def read(self, at: int, size: int) -> bytes:
        """The bytes at a place.

        Raises:
            DamagedError: The file ends before.
        """
        data = os.pread(self._descriptor, size, at)
        while len(data) < size:
            # One call reads at most 2 GiB.
            more = os.pread(self._descriptor, size - len(data), at + len(data))
            if not more:
                raise DamagedError(f"`{self.path}` ends before byte {at + size}")
            data += more
        return data

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)


class OpenFiles:
    """Files by number, each opened when it is first read."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = list(paths)
        self._open: dict[int, OpenFile] = {}
        self._lock = threading.Lock()

    def __getitem__(self, number: int) -> OpenFile:
        found = self._open.get(number)
        if found is None:
            with self._lock:
                found = self._open.get(number) or OpenFile(self.paths[number])
                self._open[number] = found
        return found


def _expanded(path: str) -> list[str]:
    found = _BRACES.search(path)
    if found is None:
        return [path]
    low, high = found.groups()
    if int(high) - int(low) >= 1_000_000:
        raise ArgumentError(f"`{path}` matches more than a million files")
    numbers = [str(n).zfill(len(low)) for n in range(int(low), int(high) + 1)]
    return [
        each
        for number in numbers
        for each in _expanded(path[: found.start()] + number + path[found.end() :])
    ]


def _any(suffixes: tuple[str, ...]) -> str:
    return " or ".join(suffixes)
