"""When the files that a source names were changed, to notice a cache that is out of date."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hotgrid.data._plan import Source
from hotgrid.data._sources._files import matching


def stamps(source: Source, cache: Path) -> dict[str, list[int]]:
    """For each file that a source names its bytes and time of change, in nanoseconds.

    Of a folder these are the number of folders in it and the newest change of one: a file
    that came, went or was replaced. To ask every file would take long where there are many.
    A folder that has the cache in it is left out: the cache itself changes it.
    """
    cache = cache.resolve()
    found: dict[str, list[int]] = {}
    for text in _strings(source.to_plain()):
        for path in matching(text):
            if cache.is_relative_to(path.resolve()):
                continue
            if path.is_dir():
                times = [Path(at).stat().st_mtime_ns for at, _, _ in os.walk(path)]
                found[str(path)] = [len(times), max(times, default=0)]
            elif path.exists():
                told = path.stat()
                found[str(path)] = [told.st_size, told.st_mtime_ns]
    return found


def changed(before: Mapping[str, list[int]], source: Source, cache: Path) -> str | None:
    """The first file or folder that differs, or is new; None if there is none.

    Files that are gone do not count: a cache replaces them.
    """
    now = stamps(source, cache)
    return next((path for path in now if before.get(path) != now[path]), None)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(each)
