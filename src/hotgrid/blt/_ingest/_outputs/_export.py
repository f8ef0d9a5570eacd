"""A corpus in other formats: WebDataset, JSON lines, and the JSON of BLT-Burn's sidecar."""

import base64
import gzip
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from hotgrid.blt._ingest._corpus import Corpus, IngestedDocument
from hotgrid.blt._sidecar._sidecar import Sidecar
from hotgrid.errors import ArgumentError, near
from hotgrid.files import whole_file

from ._layout import safetensors
from ._names import WRITTEN

_PARTS = {(each,) for each in WRITTEN}
SAMPLES = 1000
"""Documents of a tar file."""


def export_corpus(
    folder: str | Path, form: str, out: str | Path, *, samples: int = SAMPLES
) -> list[Path]:
    """Write a corpus in another format, and return the files.

    Args:
        folder: The corpus.
        form: `webdataset`: tar.gz files with `<id>.safetensors` and `<id>.json` for each
            document. `jsonl`: a line for each, with its text, or base64 if it is not UTF-8.
            `json`: the sidecar in the schema of BLT-Burn.
        out: A folder for `webdataset`, else a file.
        samples: Documents of a tar file.

    Raises:
        ArgumentError: There is no such format or corpus.
    """
    if form not in EXPORTS:
        raise ArgumentError(
            f"there is no format `{form}`{near(form, EXPORTS)} (there are {', '.join(EXPORTS)})"
        )
    if samples < 1:
        raise ArgumentError(f"`samples` must be at least 1, got {samples}")
    corpus, place = Corpus(folder), Path(out)
    _expect_no_part(corpus, place)
    return EXPORTS[form](corpus, place, samples)


def _expect_no_part(corpus: Corpus, out: Path) -> None:
    """Refuse to write over a file of the corpus itself."""
    whole, inside = corpus.folder.resolve(), out.resolve()
    if inside.is_relative_to(whole) and inside.relative_to(whole).parts[:1] in _PARTS:
        raise ArgumentError(f"`{out}` is a part of the corpus; name another place")


def _expect_no_others(out: Path, count: int) -> None:
    """Refuse a folder where files of an earlier export would be taken for those of this one."""
    kept = {f"shard_{number:06}.tar.gz" for number in range(count)}
    others = sorted(each.name for each in out.glob("shard_*.tar.gz") if each.name not in kept)
    if others:
        raise ArgumentError(
            f"`{out}` has `{others[0]}` of another export, and this one has {count} files; "
            "remove it, or name another folder"
        )


def _webdataset(corpus: Corpus, out: Path, samples: int) -> list[Path]:
    _expect_no_others(out, -(-len(corpus) // samples))
    documents, files = iter(corpus), []
    while some := list(_first(documents, samples)):
        path = out / f"shard_{len(files):06}.tar.gz"
        # Without the time and the name, the same corpus gives the same bits.
        with (
            whole_file(path) as aside,
            aside.open("wb") as plain,
            gzip.GzipFile("", "wb", fileobj=plain, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT) as archive,
        ):
            for each in some:
                _add(archive, each)
        files.append(path)
    return files


def _first(documents: Iterator[IngestedDocument], count: int) -> Iterator[IngestedDocument]:
    yield from islice(documents, count)


def _add(archive: tarfile.TarFile, document: IngestedDocument) -> None:
    row = document.row
    names = ("bytes", "patch_lengths", "entropies")
    tensors = {name: each for name, each in document.tensors.items() if name in names}
    metadata = {
        "format": "blt_patches_v2",
        "num_patches": str(row["patches"]),
        "total_bytes": str(row["bytes"]),
    }
    about = {"doc_id": row["id"], "source": row["name"], "original_len": row["source_bytes"]}
    about |= {"num_patches": row["patches"], "total_bytes": row["bytes"]}
    about |= {"modality": row["modality"], "views": row["views"]}
    for ending, data in (
        ("safetensors", safetensors(tensors, metadata)),
        ("json", json.dumps(about).encode()),
    ):
        member = tarfile.TarInfo(f"{row['id']}.{ending}")
        member.size, member.mode = len(data), 0o644
        archive.addfile(member, io.BytesIO(data))


def _jsonl(corpus: Corpus, out: Path, samples: int) -> list[Path]:
    with whole_file(out) as aside, aside.open("w", encoding="utf-8") as file:
        for document in corpus:
            file.write(json.dumps(_line(document)) + "\n")
    return [out]


def _line(document: IngestedDocument) -> dict[str, Any]:
    row, data = document.row, document.data
    found = {"id": row["id"], "name": row["name"], "modality": row["modality"]}
    try:
        found["text"] = data.decode()
    except UnicodeDecodeError:
        found["base64"] = base64.b64encode(data).decode()
    found["patch_lengths"] = document.tensors["patch_lengths"].tolist()
    return found


def _json(corpus: Corpus, out: Path, samples: int) -> list[Path]:
    with Sidecar(corpus.sidecar) as sidecar:
        sidecar.export_json(out)
    return [out]


EXPORTS: dict[str, Callable[[Corpus, Path, int], list[Path]]] = {
    "webdataset": _webdataset,
    "jsonl": _jsonl,
    "json": _json,
}
"""The writer of each format."""
