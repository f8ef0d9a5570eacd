"""One unit of work: its documents are read, decoded, encoded and written."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from hotgrid.errors import DamagedError, HotgridError
from hotgrid.files import whole_file

from ._encode import Encoded, Encoder
from ._inputs._read import read_unit
from ._inputs._record import Fault, Record
from ._inputs._units import Unit
from ._modalities._modality import Modality, View
from ._modalities._registry import modality_of
from ._near import pack, signature
from ._outputs._document_file import read_row, write_document
from ._outputs._names import document_file
from ._settings import IngestSettings

UNITS = "units"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""Where an object lies in memory, as messages of decoders have it: no two runs agree."""
_END = {"end": True}
"""The last line of a record that is whole."""


class StoppedError(Exception):
    """A unit was left because the run is to stop."""


class Worker:
    """Does units of work, and writes documents and records of units into a folder.

    A document is a file whose name is a hash of its bytes and of the settings. So one that is
    there already is not encoded again, and two workers can meet without harm.

    Args:
        folder: The folder of the corpus.
        settings: What decides about the documents.
    """

    def __init__(self, folder: Path, settings: IngestSettings) -> None:
        self._folder, self._settings, self._key = folder, settings, settings.key()
        self._left_out = ("entropies",) if settings.entropies == "none" else ()

    @cached_property
    def _encoder(self) -> Encoder:
        return Encoder(self._settings)

    def prepare(self) -> None:
        """Load the model."""
        _ = self._encoder

    def work(
        self,
        number: int,
        unit: Unit,
        *,
        skipped: Mapping[int, str] | None = None,
        cut: tuple[int, str] | None = None,
        begin: Callable[[int, int], None] = lambda position, size: None,
    ) -> int:
        """Do a unit, and return how many documents it gave; its record appears at the end.

        Args:
            number: The place of the unit in the input.
            unit: The unit.
            skipped: Documents not to touch, by position, and why.
            cut: The first position that is not to be read, and why.
            begin: Called before each document with its position and its bytes; raises
                `StoppedError` to leave the unit.
        """
        kept = 0
        with (
            whole_file(record_of_unit(self._folder, number), synced=False) as aside,
            aside.open("w", encoding="utf-8") as file,
        ):
            file.write(json.dumps(unit.to_table()) + "\n")
            some = islice(read_unit(unit, self._settings), None if cut is None else cut[0])
            for position, each in enumerate(some):
                begin(position, each.size if isinstance(each, Record) else 0)
                reason = (skipped or {}).get(position)
                row = self._done(each) if reason is None else {"reason": reason}
                if "reason" in row:
                    row["reason"] = _ADDRESS.sub("", row["reason"])
                file.write(json.dumps({"name": each.name, **row}) + "\n")
                kept += "reason" not in row
                if kept == self._settings.limit:
                    break
            else:
                if cut is not None:
                    file.write(json.dumps({"name": unit.name, "reason": cut[1]}) + "\n")
            file.write(json.dumps(_END) + "\n")
        return kept

    def _done(self, each: Record | Fault) -> dict[str, Any]:
        if isinstance(each, Fault):
            return {"reason": each.reason}
        if not each.size:
            return {"reason": "it is empty"}
        try:
            kinds = [modality_of(part.data, part.name, pure=part.pure) for part in each.parts]
            name = self._name(each, kinds)
            path = self._folder / document_file(name)
            row = _written(path)
            made = self._made(each, kinds) if row is None else None
        except HotgridError as problem:
            return {"reason": str(problem)}
        except (MemoryError, RecursionError) as problem:
            return {"reason": f"decoding failed: {type(problem).__name__}"}
        if made is not None:
            # Not the fault of the document if it fails: a full disk ends the run.
            row = write_document(path, each.source_hash, *made, left_out=self._left_out)
        file = document_file(name)
        found = {"id": name, "file": file, "source_bytes": each.size, **(row or {})}
        if self._settings.near is not None:
            joined = b"\n".join(part.data for part in each.parts)
            found["signature"] = pack(signature(joined))
        return found

    def _name(self, record: Record, kinds: Sequence[Modality]) -> str:
        identity = json.dumps(
            [
                self._key,
                record.source_hash,
                [
                    [part.label, kind.name, _suffix(part.name)]
                    for part, kind in zip(record.parts, kinds, strict=True)
                ],
            ]
        )
        return hashlib.sha256(identity.encode()).hexdigest()[:32]

    def _made(
        self, record: Record, kinds: Sequence[Modality]
    ) -> tuple[str, list[View], Encoded]:
        """The modality of a document, its views, and those encoded."""
        views: list[View] = []
        for part, kind in zip(record.parts, kinds, strict=True):
            found = kind.views(part.data, part.name, self._settings)
            views.extend(view.under(part.label) for view in found)
        if not any(view.data for view in views):
            raise DamagedError("there is nothing in it to cut")
        modality = kinds[0].name if len({kind.name for kind in kinds}) == 1 else "mixed"
        return modality, views, self._encoder.encode(views)


def _written(path: Path) -> dict[str, Any] | None:
    """The row of a document that is there already."""
    try:
        return read_row(path)
    except (FileNotFoundError, DamagedError):
        return None


def _suffix(name: str) -> str:
    return Path(name).suffix.lower()


def record_of_unit(folder: Path, number: int) -> Path:
    """The file with the record of a unit: what it was, and a line for each document."""
    return folder / UNITS / f"{number:08}.jsonl"


def is_done(folder: Path, number: int, unit: Unit) -> bool:
    """Whether a unit was done as it is now, and its documents are there.

    Neither records nor documents are synced one by one, so a power failure can leave some cut.
    """
    row: dict[str, Any] = {}
    try:
        with record_of_unit(folder, number).open(encoding="utf-8") as file:
            if json.loads(file.readline()) != unit.to_table():
                return False
            for row in map(json.loads, file):
                if "file" in row and (folder / row["file"]).stat().st_size != row["file_bytes"]:
                    return False
    except (OSError, ValueError):
        return False
    return row == _END


def read_rows_of(folder: Path, number: int) -> Iterator[dict[str, Any]]:
    """Yield what was done with each document of a unit."""
    with record_of_unit(folder, number).open(encoding="utf-8") as file:
        file.readline()
        yield from (row for row in map(json.loads, file) if row != _END)
