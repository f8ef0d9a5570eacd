"""Claim: however often `hotgrid ingest` is killed, it ends with the bits of one quiet run.

An input of texts, rows, archives, images and damaged files is ingested in worker processes.
The command gets SIGKILL at a random moment, again and again; then it is resumed to the end.
Every file of the corpus must be equal, bit for bit, to that of a run that was not killed.

    python benchmarks/study_ingest_kills.py --count 20
"""

import json
import random
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import numpy as np
from options import parser
from PIL import Image

NOT_COMPARED = {"run.toml", "complete.json", ".run.lock"}


def write_input(folder: Path, documents: int) -> None:
    """Files of several kinds, of which some cannot be read."""
    folder.mkdir()
    chosen = random.Random(0)

    def text() -> str:
        return " ".join(f"{chosen.getrandbits(28):x}" for _ in range(chosen.randint(20, 4000)))

    for n in range(documents):
        (folder / f"{n:05}.txt").write_text(text())
    rows = "\n".join(json.dumps({"id": n, "text": text()}) for n in range(documents))
    (folder / "rows.jsonl").write_text(rows)
    with tarfile.open(folder / "some.tar.gz", "w:gz") as archive:
        for n in range(0, documents, 7):
            archive.add(folder / f"{n:05}.txt", f"again/{n}.txt")
    for n in range(documents // 10):
        pixels = np.random.default_rng(n).integers(0, 256, (64, 64, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{n}.png")
        (folder / f"{n}-broken.png").write_bytes((folder / f"{n}.png").read_bytes()[:200])


def start(source: Path, out: Path, workers: int) -> subprocess.Popen:
    """Start the command."""
    command = [sys.executable, "-m", "hotgrid", "ingest", str(source), "--out", str(out)]
    command += ["--resume", "--workers", str(workers), "--near", "0.9"]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=quiet, stderr=quiet)


def bits(folder: Path) -> dict[str, bytes]:
    """Every file of a corpus."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in NOT_COMPARED
    }


def main() -> None:
    """Kill at random moments, and compare."""
    options = parser(__doc__, devices=("cpu",))
    options.add_argument("--count", type=int, default=20, help="kills in all")
    options.add_argument("--documents", type=int, default=400)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()
    moments = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as place:
        source, number, kills = Path(place) / "in", 0, 0
        write_input(source, asked.documents)
        begin = time.monotonic()
        if start(source, Path(place) / "whole", asked.workers).wait():
            sys.exit("the run that is not killed fails")
        seconds = time.monotonic() - begin
        wanted = bits(Path(place) / "whole")
        while kills < asked.count:
            out = Path(place) / f"killed-{number}"
            own = 0
            while True:
                running, begin = start(source, out, asked.workers), time.monotonic()
                try:
                    code = running.wait(moments.uniform(0.2, 1.2) * seconds)
                except subprocess.TimeoutExpired:
                    running.send_signal(signal.SIGKILL)
                    running.wait()
                    own += 1
                    # Workers of a killed run need a moment to notice.
                    time.sleep(1)
                    continue
                if not own:  # faster than the first: kill the next ones earlier
                    seconds = min(seconds, time.monotonic() - begin)
                if code == 0:
                    break
            kills, number = kills + own, number + 1
            same = bits(out) == wanted
            print(
                f"run {number}: {own} kills, {len(wanted)} files, same bits: {same}", flush=True
            )
            if not same:
                sys.exit(1)
    print(f"{kills} kills in {number} runs: same bits")


if __name__ == "__main__":
    main()
