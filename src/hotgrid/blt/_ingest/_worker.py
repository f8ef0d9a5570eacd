"""The program of a worker process: it reads units and writes results as lines of JSON."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch

from hotgrid.errors import HotgridError

from ._inputs._units import Unit
from ._settings import IngestSettings
from ._work import StoppedError, Worker


def main() -> None:
    """Work until there are no more lines, or the parent is gone."""
    # Schedulers signal all processes of a job; the parent decides what happens.
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    # What a decoder prints must not mix with the results.
    news = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    torch.set_num_threads(1)
    parent = os.getppid()

    def tell(**what: Any) -> None:
        news.write(json.dumps(what) + "\n")
        news.flush()

    def begin(position: int, size: int) -> None:
        if os.getppid() != parent:
            raise StoppedError
        tell(at=position, size=size)

    first = json.loads(sys.stdin.readline())
    worker = Worker(Path(first["folder"]), IngestSettings.from_table(first["settings"]))
    worker.prepare()
    tell(ready=True)
    for line in sys.stdin:
        job = json.loads(line)
        skipped = {int(place): why for place, why in job["skipped"].items()}
        try:
            kept = worker.work(job["number"], Unit(**job["unit"]), skipped=skipped, begin=begin)
        except StoppedError:
            return
        except HotgridError as problem:
            tell(failed=[type(problem).__name__, str(problem)])
            return
        tell(done=job["number"], kept=kept)


if __name__ == "__main__":
    main()
