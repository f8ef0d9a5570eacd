"""How fast `hotgrid ingest` is, and how much memory it needs for inputs of any size.

A mixed input is made: long texts, rows of JSON, a packed archive, images, sounds and programs.
It is ingested by a process of its own, whose largest memory is measured.

    python benchmarks/bench_ingest.py --megabytes 100
    python benchmarks/bench_ingest.py --megabytes 10000 --workers 2 --shards 16
"""

import io
import json
import random
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
import wave
from pathlib import Path

import numpy as np
from options import parser
from PIL import Image

WORDS = ("lattice", "warm", "wave", "crosses", "slowly", "particles", "collide", "stream")
WORDS += ("until", "nothing", "moves", "but", "light", "on", "water", "under", "a", "window")


def text(chosen: random.Random, size: int) -> bytes:
    """Words in lines, about this many bytes."""
    lines = []
    while size > 0:
        line = " ".join(chosen.choices(WORDS, k=12)).encode() + b"\n"
        lines.append(line)
        size -= len(line)
    return b"".join(lines)


def write_input(folder: Path, megabytes: int) -> None:
    """Half of it long texts, a fifth rows, a tenth each an archive, images and sounds."""
    folder.mkdir()
    chosen, total = random.Random(0), megabytes * 1_000_000
    with (folder / "long.txt").open("wb") as file:
        while file.tell() < total // 2:
            file.write(text(chosen, 1_000_000))
    with (folder / "rows.jsonl").open("w") as file:
        while file.tell() < total // 5:
            file.write(json.dumps({"text": text(chosen, 8000).decode()}) + "\n")
    with tarfile.open(folder / "some.tar.gz", "w:gz", compresslevel=1) as archive:
        for n in range(max(1, total // 10 // 500_000)):
            member = tarfile.TarInfo(f"{n}.txt")
            data = text(chosen, 500_000)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    for n in range(max(1, total // 10 // 200_000)):
        noise = np.random.default_rng(n).integers(0, 256, (256, 256, 3), dtype=np.uint8)
        Image.fromarray(noise).save(folder / f"{n}.png")
        with wave.open(str(folder / f"{n}.wav"), "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(noise.tobytes())


def main() -> None:
    """Make, ingest, measure."""
    options = parser(__doc__, devices=("cpu",))
    options.add_argument("--megabytes", type=int, default=100)
    options.add_argument("--workers", type=int, default=0)
    options.add_argument("--shards", type=int, default=None)
    options.add_argument("--json", type=Path, default=None, help="write the figures here")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        source, out = Path(place) / "in", Path(place) / "out"
        write_input(source, asked.megabytes)
        size = sum(path.stat().st_size for path in source.iterdir())
        command = [sys.executable, "-m", "hotgrid", "ingest", str(source), "--out", str(out)]
        command += ["--workers", str(asked.workers)]
        command += [] if asked.shards is None else ["--shards", str(asked.shards)]
        begin = time.monotonic()
        subprocess.run(command, check=True)
        seconds = time.monotonic() - begin
        manifest = json.loads((out / "manifest.json").read_text())
    found = {
        "input_bytes": size,
        "decoded_bytes": manifest["bytes"],
        "documents": manifest["documents"],
        "seconds": round(seconds, 1),
        "megabytes_per_second": round(manifest["bytes"] / 1e6 / seconds, 2),
        "largest_process_mib": round(
            resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        ),
        "workers": asked.workers,
        "shards": asked.shards,
    }
    print(json.dumps(found, indent=2))
    if asked.json is not None:
        asked.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
