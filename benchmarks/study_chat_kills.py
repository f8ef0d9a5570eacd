"""Claim: however often `hotgrid chat train` is killed, it ends with the bits of one long run.

A small GPT is trained on text, on 1 and on 2 ranks of the CPU. All ranks get SIGKILL at a
random moment, again and again until the run is through. Every logged loss and every tensor
of the last checkpoint must then be equal, bit for bit, to those of a run that was not killed.

    python benchmarks/study_chat_kills.py --count 5
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from options import parser

from hotgrid.store import Checkpoints
from hotgrid.train import read_events

STEPS = 60


def write_text(file: Path) -> None:
    """Some documents."""
    words = ["the", "lattice", "is", "warm", "and", "a", "wave", "crosses", "it", "slowly"]
    chosen = random.Random(0)
    lines = (
        json.dumps({"text": " ".join(chosen.choices(words, k=chosen.randint(3, 40)))})
        for _ in range(2000)
    )
    file.write_text("\n".join(lines) + "\n")


def start(folder: Path, text: Path, ranks: int, *, resume: bool) -> list[subprocess.Popen]:
    """Start the run on a number of ranks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "hotgrid", "chat", "train", str(text), "--depth=2"]
    command += ["--size=64", "--heads=2", "--context=64", "--batch-tokens=512", "--samples=0"]
    command += [f"--steps={STEPS}", "--save-every=5", "--log-every=1", "--device=cpu"]
    command += ["--hold-out=0.05", f"--out={folder}"] + (["--resume"] if resume else [])
    found = []
    for rank in range(ranks):
        own = {**os.environ, "OMP_NUM_THREADS": "1"}
        if ranks > 1:
            own |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": str(rank)}
            own |= {"WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank)}
            own |= {"LOCAL_WORLD_SIZE": str(ranks)}
        quiet = subprocess.DEVNULL
        found.append(subprocess.Popen(command, env=own, stdout=quiet, stderr=quiet))
    return found


def ended(folder: Path) -> tuple[list, dict[str, torch.Tensor]]:
    """The losses and the last checkpoint of a run."""
    losses = [
        (each["step"], each["values"]["train/loss"])
        for each in read_events(folder)
        if each["event"] == "train"
    ]
    return losses, Checkpoints(folder / "checkpoints").load().tensors


def killed_run(folder: Path, text: Path, ranks: int, moments: random.Random) -> int:
    """Kill a run at random moments until it is through; return how often."""
    count = 0
    while True:
        running = start(folder, text, ranks, resume=(folder / "run.toml").exists())
        until = time.monotonic() + moments.uniform(3, 25)
        while time.monotonic() < until and any(each.poll() is None for each in running):
            time.sleep(0.02)
        if all(each.poll() == 0 for each in running):
            return count
        if any(each.poll() not in (None, 0) for each in running):
            sys.exit(f"the run in {folder} ends with an error by itself")
        for each in running:
            each.send_signal(signal.SIGKILL)
            each.wait()
        count += 1


def main() -> None:
    """Compare killed runs with one that was not."""
    options = parser(__doc__, devices=("cpu",))
    options.add_argument("--count", type=int, default=5, help="runs for each number of ranks")
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()
    moments = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as place:
        text = Path(place) / "text.jsonl"
        write_text(text)
        for ranks in (1, 2):
            whole = Path(place) / f"whole-{ranks}"
            for each in start(whole, text, ranks, resume=False):
                each.wait()
            losses, tensors = ended(whole)
            for number in range(asked.count):
                folder = Path(place) / f"killed-{ranks}-{number}"
                kills = killed_run(folder, text, ranks, moments)
                again, last = ended(folder)
                same = again == losses and all(
                    torch.equal(tensors[name], last[name]) for name in tensors
                )
                print(
                    f"{ranks} ranks, run {number}: {kills} kills, same bits: {same}", flush=True
                )
                if not same:
                    sys.exit(1)


if __name__ == "__main__":
    main()
