"""Claim: hostile files do not crash, stop or swell `hotgrid ingest`.

Files of every kind that is decoded are damaged: bytes of the header set at random, cut, parts
repeated or exchanged; archives that unpack to far more than they are. All are ingested, and
each must be a document or be in the quarantine. The bombs come first, by themselves. The memory
of a worker early and late in a batch, and of this process over all batches, must not grow.

    python benchmarks/study_hostile_files.py --count 1000
    python benchmarks/study_hostile_files.py --count 100000 --workers 2
"""

import argparse
import bz2
import gzip
import io
import json
import os
import random
import shutil
import struct
import sys
import tarfile
import tempfile
import time
import wave
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from memory import Memory
from options import parser
from PIL import Image
from report import report

from hotgrid.blt import Corpus, IngestSettings, ingest


def examples() -> dict[str, bytes]:
    """A good file of every kind, by a name with its suffix."""
    pixels = np.random.default_rng(0).integers(0, 256, (48, 48, 3), dtype=np.uint8)
    found = {}
    for form in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM"):
        written = io.BytesIO()
        Image.fromarray(pixels).save(written, form)
        found[f"x.{form.lower()}"] = written.getvalue()
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setparams((2, 2, 16000, 0, "NONE", ""))
        file.writeframes(bytes(range(256)) * 8)
    found["x.wav"] = written.getvalue()
    rows = "\n".join(json.dumps({"id": n, "text": "some text " * n}) for n in range(9))
    found |= {"x.jsonl": rows.encode(), "x.txt": b"plain text\n" * 40}
    found["x.py"] = b"import os\n\ndef f(a):\n    return [a, (os, {1: 2})]\n" * 4
    found["x.gz"] = gzip.compress(found["x.txt"])
    found["x.bz2"] = bz2.compress(found["x.txt"])
    packed, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", found["x.txt"])
        archive.writestr("b.png", found["x.png"])
    with tarfile.open(fileobj=tarred, mode="w") as archive:
        member = tarfile.TarInfo("a.txt")
        member.size = len(found["x.txt"])
        archive.addfile(member, io.BytesIO(found["x.txt"]))
    found |= {"x.zip": packed.getvalue(), "x.tar": tarred.getvalue()}
    found["x.tar.gz"] = gzip.compress(tarred.getvalue())
    sections = b"".join(
        struct.pack("<IIQQQQIIQQ", n, 1, 6, 0, 64 + 8 * n, 8, 0, 0, 1, 0) for n in range(5)
    )
    head = b"\x7fELF\2\1\1" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 0, 128, 0, 64, 0, 0, 64, 5, 1)
    found["x.elf"] = head + bytes(64) + sections
    found["x.exe"] = b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0" + bytes(200)
    found["x.macho"] = struct.pack("<8I", 0xFEEDFACF, 7, 3, 2, 3, 300, 0, 0) + bytes(range(256))
    found["x.pdf"] = (
        b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type "
        b"/Pages /Kids [3 0 R] /Count 1 >>\nendobj\n3 0 obj\n<< /Type /Page /Parent 2 0 R "
        b"/MediaBox [0 0 200 100] >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n"
    )
    return found


def damaged(data: bytes, chosen: random.Random) -> bytes:
    """A file with some faults."""
    found = bytearray(data)
    for _ in range(chosen.randint(1, 6)):
        if not found:
            break
        # Headers are where lengths and counts are.
        within = min(len(found), chosen.choice((16, 64, 512, len(found))))
        at = chosen.randrange(within)
        what = chosen.randrange(6)
        if what == 0:
            found[at] = chosen.randrange(256)
        elif what == 1:
            size = chosen.choice((2, 4, 8))
            extreme = chosen.choice((b"\0", b"\xff", b"\x7f", b"\x80"))
            found[at : at + size] = extreme * size
        elif what == 2:
            del found[chosen.randrange(len(found)) :]
        elif what == 3:
            end = at + chosen.randint(1, 200)
            found[at:at] = found[at:end]
        elif what == 4:
            del found[at : at + chosen.randint(1, 50)]
        else:
            found[at : at + 8] = chosen.randbytes(8)
    return bytes(found)


def bombs() -> dict[str, bytes]:
    """Archives and images that are far larger than they look."""
    zeros = bytes(1 << 24)
    found = {"bomb.gz": gzip.compress(zeros * 4), "bomb.bz2": bz2.compress(zeros * 4)}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(8):
            archive.writestr(f"{n}.txt", zeros)
    found["bomb.zip"] = packed.getvalue()
    inner = packed.getvalue()
    for _ in range(5):
        outer = io.BytesIO()
        with zipfile.ZipFile(outer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("in.zip", inner)
        inner = outer.getvalue()
    found["nested.zip"] = inner
    written = io.BytesIO()
    Image.new("1", (12_000, 12_000)).save(written, "PNG")
    found["bomb.png"] = written.getvalue()
    found["deep.jsonl"] = b"[" * 500_000
    found["deep.py"] = b"(" * 200_000
    return found


def write_batch(folder: Path, count: int, chosen: random.Random) -> None:
    """So many hostile files."""
    folder.mkdir()
    good = list(examples().items())
    for n in range(count):
        name, data = good[n % len(good)]
        (folder / f"{n:06}{Path(name).suffix}").write_bytes(damaged(data, chosen))


def wrong(source: Path, corpus: Corpus) -> Iterator[str]:
    """What is damaged in the corpus, and files that nothing was said about."""
    yield from corpus.damage()
    seen = {row["name"] for row in [*corpus.rows(), *corpus.quarantined()]}
    lines = (corpus.folder / "duplicates.jsonl").read_text().splitlines()
    seen |= {json.loads(line)["name"] for line in lines}
    for path in source.iterdir():
        # Members and rows have names that begin with that of their file. One of these kinds
        # may be damaged so that nothing is in it.
        if path.suffix not in (".zip", ".tar", ".jsonl", ".gz") and not any(
            each.startswith(str(path)) for each in seen
        ):
            yield f"{path.name} is neither a document nor in the quarantine"


def ingested(source: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """Ingest a folder of hostile files, and say what became of them."""
    out, count = source.with_name(f"{source.name}-out"), sum(1 for _ in source.iterdir())
    settings = IngestSettings(decoded_bytes=1 << 24)
    begin = time.monotonic()
    with Memory(os.getpid()) as memory:
        ingest([str(source)], out, settings, workers=asked.workers, timeout=asked.timeout)
    corpus = Corpus(out)
    if problems := list(wrong(source, corpus)):
        sys.exit("\n".join(problems))
    reasons = [row["reason"] for row in corpus.quarantined()]
    largest = [worker for _, _, worker in memory.seen if worker] or [0.0]
    half = len(largest) // 2
    found: dict[str, Any] = {"files": count, "documents": len(corpus), "refused": len(reasons)}
    found["crashes"] = sum("crashed" in each for each in reasons)
    found["hangs"] = sum("took longer" in each for each in reasons)
    found["seconds"] = round(time.monotonic() - begin, 1)
    # A worker lives for one batch, this process for all of them.
    found["worker, first half, MiB"] = round(max(largest[: half + 1]))
    found["worker, second half, MiB"] = round(max(largest[half:]))
    found["this process, MiB"] = round(memory.seen[-1][1])
    shutil.rmtree(source)
    shutil.rmtree(out)
    return found


def main() -> None:
    """Ingest batches of hostile files."""
    options = parser(__doc__, devices=("cpu",))
    options.add_argument("--count", type=int, default=1000, help="files in all")
    options.add_argument("--batch", type=int, default=5000, help="files of one ingest")
    options.add_argument("--workers", type=int, default=0)
    options.add_argument("--timeout", type=float, default=60, help="seconds for a document")
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()
    chosen, rows = random.Random(asked.seed), []
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "bombs"
        source.mkdir()
        for name, data in bombs().items():
            (source / name).write_bytes(data)
        rows.append({"batch": "bombs", **ingested(source, asked)})
        for done in range(0, asked.count, asked.batch):
            source = Path(place) / f"{done:06}"
            write_batch(source, min(asked.batch, asked.count - done), chosen)
            rows.append({"batch": f"from {done:,}", **ingested(source, asked)})
            print(rows[-1], flush=True)
    whole = {"batch": "all"}
    for name in ("files", "documents", "refused", "crashes", "hangs", "seconds"):
        whole[name] = round(sum(row[name] for row in rows), 1)
    report(f"hostile-{asked.count}", [*rows, whole], workers=str(asked.workers))
    if whole["crashes"] or whole["hangs"]:
        sys.exit("decoders crashed or hung")


if __name__ == "__main__":
    main()
