"""Takes batches of a plan and writes their digests, until it is killed.

    python doomed_loader.py PLAN WORKERS FOLDER

Continues where FOLDER says an earlier one was.
"""

import hashlib
import json
import sys
from pathlib import Path

from hotgrid.data import Plan, PlanBatches


def digest(batch) -> str:
    found = hashlib.sha256()
    for name in sorted(batch):
        value = batch[name]
        found.update(
            value.numpy().tobytes() if hasattr(value, "numpy") else repr(value).encode()
        )
    return found.hexdigest()


def main(plan: str, workers: str, folder: str) -> None:
    place = Path(folder)
    with PlanBatches(Plan.read(plan), 5, workers=int(workers), epochs=3) as batches:
        if (place / "state.json").exists():
            batches.load(json.loads((place / "state.json").read_text()))
        for batch in batches:
            state = batches.state()
            (place / f"{state['next'] - 1:03}.txt").write_text(digest(batch))
            aside = place / "aside"
            aside.write_text(json.dumps(state))
            # Whole or not at all.
            aside.replace(place / "state.json")
            print(state["next"], flush=True)
            if len(sys.argv) > 4:
                # Killed by the one who reads this.
                sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:4])
