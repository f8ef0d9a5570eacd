"""How fast `hotgrid ingest` is, and how much memory it needs for inputs of any size.

A mixed input is made: long texts, rows of JSON, a packed archive, source code, images and
sounds. It is ingested by a process of its own. The memory of that process and of its workers is
read ten times a second: the largest in each tenth of the time must not grow with the input.

    python benchmarks/bench_ingest.py --megabytes 100
    python benchmarks/bench_ingest.py --megabytes 10000 --workers 2 --entropies float16
"""

import functools
import io
import json
import random
import resource
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from memory import Memory
from options import parser
from PIL import Image
from report import report

SHARES = {"long": 0.4, "rows": 0.2, "archive": 0.1, "code": 0.1, "images": 0.1, "sounds": 0.1}
WORDS = ("lattice", "warm", "wave", "crosses", "slowly", "particles", "collide", "stream")
WORDS += ("until", "nothing", "moves", "but", "light", "on", "water", "under", "a", "window")


@functools.cache
def lines() -> bytes:
    """16 MB of words in lines, of which texts are parts."""
    words = np.array(WORDS)[np.random.default_rng(0).integers(0, len(WORDS), (220_000, 12))]
    return "\n".join(map(" ".join, words.tolist())).encode()


def text(chosen: random.Random, size: int) -> bytes:
    """Words in lines, about this many bytes, after a line that no other text has."""
    begin = chosen.randrange(len(lines()) - size)
    return b"%x\n" % chosen.getrandbits(64) + lines()[begin : begin + size]


def write_input(folder: Path, megabytes: int) -> None:
    """Files of all kinds, as `SHARES` says."""
    folder.mkdir()
    chosen = random.Random(0)
    sizes = {name: int(share * megabytes * 1_000_000) for name, share in SHARES.items()}
    with (folder / "long.txt").open("wb") as file:
        while file.tell() < sizes["long"]:
            file.write(text(chosen, 1_000_000))
    with (folder / "rows.jsonl").open("w") as file:
        while file.tell() < sizes["rows"]:
            file.write(json.dumps({"text": text(chosen, 8000).decode()}) + "\n")
    with tarfile.open(folder / "some.tar.gz", "w:gz", compresslevel=1) as archive:
        for n in range(max(1, sizes["archive"] // 500_000)):
            member = tarfile.TarInfo(f"{n}.txt")
            data = text(chosen, 500_000)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    write_code(folder / "code", sizes["code"])
    for n in range(max(1, sizes["images"] // 200_000)):
        noise = np.random.default_rng(n).integers(0, 256, (256, 256, 3), dtype=np.uint8)
        Image.fromarray(noise).save(folder / f"{n}.png", compress_level=1)
    for n in range(max(1, sizes["sounds"] // 200_000)):
        with wave.open(str(folder / f"{n}.wav"), "wb") as sound:
            sound.setparams((1, 2, 16000, 0, "NONE", ""))
            sound.writeframes(np.random.default_rng(n).bytes(200_000))


def write_code(folder: Path, size: int) -> None:
    """Python's own sources again and again, each time with another first line."""
    folder.mkdir()
    number = 0
    for data in sources():
        (folder / f"{number:06}.py").write_bytes(b"# %d\n" % number + data)
        number, size = number + 1, size - len(data)
        if size <= 0:
            return


def sources() -> Iterator[bytes]:
    """Modules of the standard library, without end."""
    found = [
        path.read_bytes() for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    ]
    while True:
        yield from found


def main() -> None:
    """Make, ingest, measure."""
    options = parser(__doc__, devices=("cpu",))
    options.add_argument("--megabytes", type=int, default=100)
    options.add_argument("--workers", type=int, default=0)
    options.add_argument("--shards", type=int, default=None)
    options.add_argument("--entropies", default="float32")
    options.add_argument(
        "--place", type=Path, help="a folder with room for eight times as much"
    )
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.place) as place:
        source, out = Path(place) / "in", Path(place) / "out"
        begin = time.monotonic()
        write_input(source, asked.megabytes)
        print(f"the input was made in {time.monotonic() - begin:.0f} s", flush=True)
        command = [sys.executable, "-m", "hotgrid", "ingest", str(source), "--out", str(out)]
        command += ["--workers", str(asked.workers), "--entropies", asked.entropies]
        # The process may be paused for long, so that others can measure.
        command += ["--timeout", "100000"]
        command += [] if asked.shards is None else ["--shards", str(asked.shards)]
        begin = time.monotonic()
        running = subprocess.Popen(command)
        with Memory(running.pid) as memory:
            if running.wait():
                sys.exit("it failed")
        seconds = time.monotonic() - begin
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        manifest = json.loads((out / "manifest.json").read_text())
        sizes = {each.name: size_of(each) for each in (source, out)}
    rows: list[dict[str, Any]] = [
        {
            "input MB": sizes["in"] // 1_000_000,
            "decoded MB": manifest["bytes"] // 1_000_000,
            "documents": manifest["documents"],
            "quarantined": manifest["quarantined"],
            "corpus MB": sizes["out"] // 1_000_000,
            "seconds": round(seconds, 1),
            "CPU seconds": round(used.ru_utime + used.ru_stime, 1),
            "MB/s": round(manifest["bytes"] / 1e6 / seconds, 2),
        }
    ]
    rows += memory.tenths()
    facts = {name: str(getattr(asked, name)) for name in ("workers", "shards", "entropies")}
    report(f"ingest-{asked.megabytes}-mb", rows, **facts)


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
