"""`run.toml`: the settings of a run, by which command, when and where."""

import datetime
import hashlib
import json
import re
import socket
import sys
import tomllib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from pathlib import Path, PurePosixPath
from typing import Any

from hotgrid._version import __version__
from hotgrid.errors import ArgumentError, DamagedError, StoreError
from hotgrid.files import read_regular, whole_file

RECORD = "run.toml"
_FORMAT, _VERSION = "hotgrid run", 1
_LARGEST = 1 << 22
# A setting that is longer is shown by the parts that differ.
_LONG = 100
_PART = re.compile(r"[,;\n]\s*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_NOTICE = "# Written by hotgrid: describes the run in this folder. Do not edit.\n"


def provenance() -> dict[str, Any]:
    """Which command this process is, of which version, when and where."""
    return {
        "command": list(sys.argv),
        "hotgrid": __version__,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "folder": str(Path.cwd()),
    }


def _apart(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Two settings as they are shown: of long ones the parts that differ."""
    if old is None or new is None or max(len(old), len(new)) <= _LONG:
        return old, new
    parts, others = _PART.split(old), _PART.split(new)
    spans = SequenceMatcher(None, parts, others, autojunk=False).get_opcodes()
    differ = [(a, b, c, d) for kind, a, b, c, d in spans if kind != "equal"]
    return (
        " ... ".join(", ".join(parts[a:b]) or "nothing" for a, b, _, _ in differ),
        " ... ".join(", ".join(others[c:d]) or "nothing" for _, _, c, d in differ),
    )


@dataclass(frozen=True)
class RunRecord:
    """One run. `asked` and `id` never change; the rest does when the run is resumed.

    Attributes:
        asked: Everything that determines the results, by name.
        files: What the run writes into its folder, as paths in it.
        options: The other options of the command.
        job: The launcher's name of its job; restarted ranks recognize it.
        id: Unique.
        begun: The command, version, time and host that began the run.
        resumed: The same for each `--resume`.
    """

    asked: Mapping[str, str]
    files: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    job: str | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    begun: Mapping[str, Any] = field(default_factory=provenance)
    resumed: Sequence[Mapping[str, Any]] = ()

    @property
    def identity(self) -> str:
        """A hash of `asked` and of the version of the format."""
        text = json.dumps([_FORMAT, _VERSION, dict(self.asked)], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def resumed_by(self, later: "RunRecord") -> "RunRecord":
        """This run, continued by a later command."""
        return replace(
            self,
            files=sorted({*self.files, *later.files}),
            options=later.options,
            job=later.job,
            resumed=(*self.resumed, later.begun),
        )

    def expect_same(self, folder: Path, other: "RunRecord") -> None:
        """Refuse to continue this run with other settings; list all differences."""
        names = sorted({*self.asked, *other.asked})
        differ = [name for name in names if self.asked.get(name) != other.asked.get(name)]
        if differ:
            apart = [(x, *_apart(self.asked.get(x), other.asked.get(x))) for x in differ]
            differences = "; ".join(f"its {x}: {old}, here {new}" for x, old, new in apart)
            raise ArgumentError(
                f"`{folder}` contains another run: {differences}. Use the same settings to "
                "continue it, or do not resume, which moves it aside and starts a new run"
            )

    def write(self, folder: Path) -> None:
        """Write `run.toml` into the folder, atomically."""
        with whole_file(folder / RECORD) as aside:
            aside.write_text(self._text(), encoding="utf-8", errors="backslashreplace")

    def _text(self) -> str:
        head = {
            "format": _FORMAT,
            "version": _VERSION,
            "id": self.id,
            "identity": self.identity,
            "job": self.job,
            "files": list(self.files),
        }
        tables = {"asked": self.asked, "options": self.options, "begun": self.begun}
        parts = [_NOTICE + _lines(head)]
        parts += [f"[{name}]\n{_lines(table)}" for name, table in tables.items()]
        parts += [f"[[resumed]]\n{_lines(table)}" for table in self.resumed]
        return "\n".join(parts)


def read_record(folder: Path) -> RunRecord | None:
    """The run of a folder; None if there is no `run.toml`.

    Raises:
        DamagedError: It is not what was written.
        StoreError: It is of a version that this hotgrid does not know.
    """
    path = folder / RECORD
    if not path.exists() and not path.is_symlink():
        return None
    text = read_regular(path, _LARGEST)
    try:
        table = tomllib.loads(text.decode())
        if not table:
            raise ValueError("it is empty")
        if table["format"] != _FORMAT:
            raise ValueError("it is not the record of a run")
        if table["version"] == _VERSION:
            return _parsed(table)
        version = table["version"]
    except KeyError as problem:
        raise DamagedError(f"`{path}` is damaged: it has no {problem}") from None
    except (TypeError, ValueError, AttributeError, RecursionError) as problem:
        raise DamagedError(f"`{path}` is damaged: {problem}") from None
    raise StoreError(
        f"`{path}` is version {version!r} of the format, and this is hotgrid {__version__}: "
        "use the hotgrid that wrote it, or a newer one"
    )


def _parsed(table: Mapping[str, Any]) -> RunRecord:
    record = RunRecord(
        asked=dict(table["asked"]),
        files=[_inside(name) for name in table["files"]],
        options=dict(table["options"]),
        job=table.get("job"),
        id=str(table["id"]),
        begun=dict(table["begun"]),
        resumed=[dict(each) for each in table.get("resumed", [])],
    )
    if record.identity != table["identity"]:
        raise ValueError("`asked` does not match its hash")
    return record


def _inside(name: str) -> str:
    """A path inside the folder: an untrusted one could lead anywhere."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError(f"{name!r} is not a file of a run")
    return name


def _lines(table: Mapping[str, Any]) -> str:
    return "".join(
        f"{name if _BARE.fullmatch(name) else _text(name)} = {_value(value)}\n"
        for name, value in table.items()
        if value is not None
    )


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case dict():
            pairs = (f"{_text(str(k))} = {_value(v)}" for k, v in value.items())
            return f"{{{', '.join(pairs)}}}"
        case _:
            return _text(str(value))


def _text(text: str) -> str:
    # A string of JSON is one of TOML, but for DEL and halves of surrogate pairs.
    text = text.encode(errors="backslashreplace").decode()
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
