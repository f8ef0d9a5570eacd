"""Units of work: what one worker reads at a time. Their order is the order of the corpus."""

import fnmatch
import glob
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hotgrid.blt._ingest._settings import MIB, IngestSettings
from hotgrid.errors import ArgumentError, DamagedError, near
from hotgrid.files import regular_stat

from ._parquet_file import RowGroups

BLOCK = 16 * MIB
"""Rows of JSON and documents of a long text are read in blocks of this size."""

STDIN = "-"
HUB = "hf://"
_ROWS = (".jsonl", ".ndjson")
_ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".zip", ".gz", ".bz2", ".xz")
_ARROW = (
    "Arrow files are not read; write the rows as parquet, for example with "
    "`datasets.load_from_disk(FOLDER)[SPLIT].to_parquet(FILE)`"
)


@dataclass(frozen=True)
class Unit:
    """A file, or a part of one.

    Attributes:
        name: What the user calls it.
        path: The file; None for a text of the command line.
        kind: `file`, `rows`, `parquet`, `archive`, `text` or `fault`.
        part: Which part of the file it is.
        size: Its bytes, for the progress.
        stamp: Changes when the file does.
        text: The text, or why there is a fault.
    """

    name: str
    path: str | None
    kind: str
    part: int = 0
    size: int = 0
    stamp: str = ""
    text: str = ""

    def to_table(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def list_units(
    paths: Sequence[str],
    texts: Sequence[str],
    settings: IngestSettings,
    *,
    out: Path | None = None,
    fetched: Callable[[str], list[tuple[str, Path]]] | None = None,
    spool: Path | None = None,
) -> Iterator[Unit]:
    """Yield the units of an input: texts first, then paths as given, folders sorted by name.

    Args:
        paths: Files, folders, patterns, or references to data sets.
        texts: Texts that are documents themselves.
        settings: Which files of folders count.
        out: A folder that is left out: where the corpus goes.
        fetched: Gives the names and files of a reference that begins with `hf://`.
        spool: The file that standard input, `-`, was copied to.

    Raises:
        ArgumentError: A path does not exist, or a pattern matches nothing.
    """
    for number, text in enumerate(texts):
        size = len(text.encode("utf-8", "surrogateescape"))
        yield Unit(f"text:{number}", None, "text", 0, size, "", text)
    seen: set[str] = set()
    with RowGroups() as groups:
        for path in paths:
            if path == STDIN and spool is not None:
                # Not by the name of the copy: it depends on the folder of the corpus.
                found = iter([("stdin", spool)])
            elif fetched is not None and path.startswith(HUB):
                found = iter(fetched(path))
            else:
                found = _files(path, settings, out)
            for name, file in found:
                # A link is refused, and must not stand for the file that it points to.
                parent = os.path.realpath(file.parent)
                key = f"{parent}/{file.name}" if file.is_symlink() else os.path.realpath(file)
                if key not in seen:
                    seen.add(key)
                    yield from units_of(name, file, settings, groups)


def expect_inputs(paths: Sequence[str], settings: IngestSettings, out: Path) -> None:
    """Check paths before anything is written or moved.

    Raises:
        ArgumentError: A path does not exist, a pattern matches nothing, or a path is in the
            folder of the corpus.
    """
    for path in paths:
        if path == STDIN or path.startswith(HUB):
            continue
        next(_files(path, settings, out), None)
        if out.exists() and Path(path).resolve().is_relative_to(out.resolve()):
            raise ArgumentError(
                f"`{path}` is in the folder of the corpus, `{out}`, so the corpus would be its "
                "own input; name another folder"
            )


def units_of(
    name: str, file: Path, settings: IngestSettings, groups: RowGroups
) -> Iterator[Unit]:
    """The units of one file."""
    try:
        facts = regular_stat(file)
    except DamagedError:
        folder = file.is_dir() and not file.is_symlink()
        text = "the folder cannot be read" if folder else "it is not a regular file"
        yield Unit(name, str(file), "fault", text=text)
        return
    except OSError as problem:
        yield Unit(name, str(file), "fault", text=f"it cannot be read: {problem.strerror}")
        return
    stamp = f"{facts.st_size}-{facts.st_mtime_ns}"
    lower = name.lower()
    kind, parts = "file", 1
    if lower.endswith(_ROWS):
        kind, parts = "rows", -(-facts.st_size // BLOCK)
    elif lower.endswith((".jsonl.gz", ".ndjson.gz")):
        kind = "rows-gz"
    elif lower.endswith(".parquet"):
        kind, parts = "parquet", groups.of(file)
    elif lower.endswith(".arrow"):
        # As bytes of no known kind they would be documents without a warning.
        yield Unit(name, str(file), "fault", 0, facts.st_size, stamp, _ARROW)
        return
    elif lower.endswith(_ARCHIVES):
        kind = "archive"
    else:
        parts = -(-facts.st_size // span(settings))
    parts = max(1, parts)
    for part in range(parts):
        size = facts.st_size // parts + (part < facts.st_size % parts)
        yield Unit(name, str(file), kind, part, size, stamp)


def span(settings: IngestSettings) -> int:
    """The bytes of a plain file that one unit covers: whole documents."""
    return max(1, BLOCK // settings.document_bytes) * settings.document_bytes


def is_wanted(name: str, settings: IngestSettings) -> bool:
    """Whether a file of a folder or archive is to be taken."""
    # `./drafts/*` and `drafts/*` are the same, in the folder `.` and in an archive.
    path = name.removeprefix("./")
    last = path.rsplit("/", 1)[-1]

    def matches(patterns: Sequence[str]) -> bool:
        return any(
            fnmatch.fnmatchcase(path, each) or fnmatch.fnmatchcase(last, each)
            for each in (pattern.removeprefix("./") for pattern in patterns)
        )

    return (not settings.include or matches(settings.include)) and not matches(settings.exclude)


def _files(path: str, settings: IngestSettings, out: Path | None) -> Iterator[tuple[str, Path]]:
    place = Path(path)
    if not path:
        # An unset variable of a shell, not the working folder.
        raise ArgumentError("a path is empty; the working folder is `.`")
    try:
        exists = os.path.lexists(place)
    except ValueError:  # with a zero
        exists = False
    if not exists:
        # A pattern may be absolute, which `Path.glob` refuses.
        matches = glob.glob(path, recursive=True)  # noqa: PTH207
        found = sorted(matches) if glob.has_magic(path) else []
        if not found:
            raise ArgumentError(_missing(path))
        for each in found:
            yield from _files(each, settings, out)
        return
    if place.is_dir():
        within = "." if place == Path() else place.name
        yield from _walk(place, path.rstrip("/") or "/", settings, out, within=within)
    else:
        # A path that the user names may be a link; those inside folders may not.
        yield path, place.resolve()


def _walk(
    folder: Path, name: str, settings: IngestSettings, out: Path | None, *, within: str
) -> Iterator[tuple[str, Path]]:
    # Patterns see the path from the folder that was given: where it lies does not matter.
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
    except OSError:
        yield name, folder
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        inner = f"{name}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            if out is None or not out.exists() or not out.samefile(entry.path):
                below = f"{within}/{entry.name}"
                yield from _walk(Path(entry.path), inner, settings, out, within=below)
        elif is_wanted(f"{within}/{entry.name}", settings):
            yield inner, Path(entry.path)


def _missing(path: str) -> str:
    if glob.has_magic(path):
        return f"no file matches `{path}`"
    folder = Path(path).parent
    names = [str(each) for each in folder.iterdir()] if folder.is_dir() else []
    return f"there is no file or folder `{path}`{near(path, names)}; for a text use --text"
