"""The end of an ingest: records of units become one corpus, in the order of the input."""

import json
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

from hotgrid._version import __version__
from hotgrid.blt._sidecar._graph import Trunk
from hotgrid.blt._sidecar._sidecar import Sidecar
from hotgrid.files import whole_file

from ._near import NearDuplicates, unpack
from ._outputs._document_file import SIDECAR, read_branches
from ._outputs._histogram import EntropyTotals
from ._outputs._manifest import summed, write_manifest
from ._outputs._names import (
    DOCUMENTS,
    DUPLICATES,
    HISTOGRAM,
    LIST,
    QUARANTINE,
    REPORT,
    SPOOL,
    document_file,
)
from ._outputs._report import write_report
from ._outputs._shards import SHARDS, bounds, shard_name, write_shard
from ._settings import FORMAT, IngestSettings
from ._work import UNITS, read_rows_of

_BINS = 50


class Merge:
    """Makes the corpus of the documents that workers have left.

    Everything is a function of the records in the order of the input, so the files are the
    same bits however the work was split.

    Args:
        folder: The folder of the corpus.
        settings: The settings of the ingest.
        units: How many units there are.
    """

    def __init__(self, folder: Path, settings: IngestSettings, units: int) -> None:
        self._folder, self._settings, self._units = folder, settings, units
        self._hashes: dict[bytes, tuple[str, float]] = {}
        self._near = None if settings.near is None else NearDuplicates(settings.near)
        self._sizes: list[int] = []
        self.totals = EntropyTotals()
        self.counts: Counter[str] = Counter()
        self.modalities: dict[str, Counter[str]] = defaultdict(Counter)
        self.reasons: Counter[str] = Counter()

    def run(self) -> dict[str, Any]:
        """Write everything, the manifest last, and return the manifest."""
        self._write_lists()
        self._write_sidecar()
        table = self.totals.table(*_coarse(*self.totals.fine()))
        with whole_file(self._folder / HISTOGRAM) as aside:
            aside.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
        shards = self._write_shards()
        # By its hash: paths differ between machines.
        model = self._settings.of_documents()["model"]
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "tool": f"hotgrid {__version__}",
            "settings": self._settings.to_table() | {"model": model},
            "settings_key": self._settings.key(),
            **{name: self.counts[name] for name in ("documents", "bytes", "patches")},
            "source_bytes": self.counts["source_bytes"],
            "duplicates": self.counts["duplicates"],
            "near_duplicates": self.counts["near_duplicates"],
            "quarantined": self.counts["quarantined"],
            "modalities": {name: dict(each) for name, each in sorted(self.modalities.items())},
            "reasons": dict(self.reasons.most_common(20)),
            "entropy": {**table["statistics"], **table["percentiles"]},
            "shards": shards,
        }
        write_report(self._folder, manifest, self.totals)
        names = [LIST, QUARANTINE, DUPLICATES, HISTOGRAM, REPORT, SIDECAR]
        names += [each["file"] for each in shards]
        manifest["files"] = {name: summed(self._folder / name) for name in names}
        return write_manifest(self._folder, manifest)

    def clean(self) -> None:
        """Remove what a finished corpus does not need.

        Records of units, documents that are not in it, and what processes that were killed
        have left half-written.
        """
        shutil.rmtree(self._folder / UNITS, ignore_errors=True)
        (self._folder / SPOOL).unlink(missing_ok=True)
        for path in [*self._folder.glob(".corpus-*"), *self._folder.glob(f"{SHARDS}/.*")]:
            path.unlink(missing_ok=True)
        if self._settings.shards is not None:
            shutil.rmtree(self._folder / DOCUMENTS, ignore_errors=True)
            return
        kept = {bytes.fromhex(row["id"]) for row in self._listed()}
        # Not by `rglob`, which remembers every path.
        for part in sorted((self._folder / DOCUMENTS).glob("*")):
            if not part.is_dir():
                part.unlink()
                continue
            with os.scandir(part) as entries:
                for each in entries:
                    if not _is_kept(each.name, kept):
                        Path(each.path).unlink()
            if not any(part.iterdir()):
                part.rmdir()

    def _rows(self) -> Iterator[dict[str, Any]]:
        for number in range(self._units):
            yield from read_rows_of(self._folder, number)
            # Later units may not be done at all.
            if self._full():
                return

    def _full(self) -> bool:
        limit = self._settings.limit
        return limit is not None and self.counts["taken"] >= limit

    def _write_lists(self) -> None:
        with ExitStack() as stack:
            files: dict[str, TextIO] = {}
            for name in (LIST, QUARANTINE, DUPLICATES):
                aside = stack.enter_context(whole_file(self._folder / name))
                files[name] = stack.enter_context(aside.open("w", encoding="utf-8"))
            for row in self._rows():
                if self._full():
                    break
                name, line = self._judged(row)
                files[name].write(json.dumps(line, ensure_ascii=True) + "\n")

    def _judged(self, row: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Which list a document belongs to, and its line there."""
        if "reason" in row:
            self.counts["quarantined"] += 1
            self.reasons[_general(row["reason"])] += 1
            return QUARANTINE, row
        self.counts["taken"] += 1
        key = bytes.fromhex(row["source_hash"])
        if not self._settings.duplicates:
            if key in self._hashes:
                self.counts["duplicates"] += 1
                of, similarity = self._hashes[key]
                return DUPLICATES, {"name": row["name"], "of": of, "similarity": similarity}
            self._hashes[key] = row["name"], 1.0
        entropy, found = row.pop("entropy"), row.pop("signature", None)
        if self._near is not None and found is not None:
            near = self._near.find(row["name"], unpack(found))
            if near is not None:
                self.counts["near_duplicates"] += 1
                of, similarity = near[0], round(near[1], 4)
                # Copies of this one name the document that was kept, too.
                self._hashes[key] = of, similarity
                return DUPLICATES, {"name": row["name"], "of": of, "similarity": similarity}
        self._keep(row, entropy)
        return LIST, row

    def _keep(self, row: dict[str, Any], entropy: dict[str, Any]) -> None:
        if self._settings.shards is not None:
            # It has no file of its own for long.
            for name in ("file", "file_bytes", "sha256"):
                del row[name]
        self.totals.add(entropy)
        self._sizes.append(row["bytes"])
        self.counts["documents"] += 1
        of_kind = self.modalities[row["modality"]]
        of_kind["documents"] += 1
        for name in ("bytes", "patches", "source_bytes"):
            self.counts[name] += row[name]
            of_kind[name] += row[name]

    def _listed(self) -> Iterator[dict[str, Any]]:
        with (self._folder / LIST).open(encoding="utf-8") as file:
            yield from map(json.loads, file)

    def _path(self, row: dict[str, Any]) -> Path:
        return self._folder / document_file(row["id"])

    def _write_sidecar(self) -> None:
        with whole_file(self._folder / SIDECAR) as aside:
            with Sidecar(aside) as sidecar:
                for row in self._listed():
                    branches = read_branches(self._path(row), self._settings.leaves)
                    sidecar.add(Trunk(row["source_hash"], row["source_bytes"], branches))
            for ending in ("-wal", "-shm"):
                Path(f"{aside}{ending}").unlink(missing_ok=True)

    def _write_shards(self) -> list[dict[str, Any]]:
        count = self._settings.shards
        if count is None:
            return []
        files = [self._path(row) for row in self._listed()]
        ends = bounds(self._sizes, count)
        found = []
        for number in range(count):
            begin, end = ends[number], ends[number + 1]
            name = shard_name(number, count)
            write_shard(self._folder / name, files[begin:end])
            found.append({"file": name, "begin": begin, "end": end})
        return found


def _coarse(edges: list[float], counts: list[int]) -> tuple[list[float], list[int]]:
    """Fine bins joined, so that there are at most `_BINS`."""
    step = max(1, -(-len(counts) // _BINS))
    joined = [sum(counts[at : at + step]) for at in range(0, len(counts), step)]
    width = edges[1] - edges[0]
    return [round(width * step * each, 6) for each in range(len(joined) + 1)], joined


def _is_kept(name: str, kept: Collection[bytes]) -> bool:
    try:
        return bytes.fromhex(Path(name).stem) in kept
    except ValueError:
        return False


def _general(reason: str) -> str:
    """A reason without what is particular to a document."""
    return "".join("#" if each.isdigit() else each for each in reason)[:100]
