"""The program of a worker process: it reads units and writes results as lines of JSON."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import torch

from hotgrid.errors import HotgridError

from ._inputs._units import Unit
from ._settings import IngestSettings
from ._work import Worker

_LOOK_EVERY = 0.2
"""Seconds between two looks at the parent."""


def main() -> None:
    """Work until there are no more lines, or the parent is gone."""
    # Schedulers signal all processes of a job; the parent decides what happens.
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    # What a decoder prints must not mix with the results.
    news = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    torch.set_num_threads(1)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()

    def tell(**what: Any) -> None:
        news.write(json.dumps(what) + "\n")
        news.flush()

    def begin(position: int, size: int) -> None:
        tell(at=position, size=size)

    first = json.loads(sys.stdin.readline())
    worker = Worker(Path(first["folder"]), IngestSettings.from_table(first["settings"]))
    worker.prepare()
    tell(ready=True)
    for line in sys.stdin:
        job = json.loads(line)
        skipped = {int(place): why for place, why in job["skipped"].items()}
        try:
            kept = worker.work(
                job["number"], Unit(**job["unit"]), skipped=skipped, cut=job["cut"], begin=begin
            )
        except HotgridError as problem:
            tell(failed=[type(problem).__name__, str(problem)])
            return
        tell(done=job["number"], kept=kept)


def _end_with(parent: int) -> None:
    """End this process soon after its parent, which was killed.

    It shares the lock of the folder, and a run that resumes waits for it. Writes are
    atomic, so it may stop anywhere.
    """
    while os.getppid() == parent:
        time.sleep(_LOOK_EVERY)
    os._exit(1)


if __name__ == "__main__":
    main()
