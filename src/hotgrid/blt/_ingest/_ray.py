"""Units of work as tasks of Ray Data, for jobs of many machines."""

import importlib
import json
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from hotgrid.errors import HotgridError, MissingPartError

from ._inputs._units import Unit
from ._pool import Job, News, Stop, raise_told
from ._settings import IngestSettings
from ._work import Worker

_AT_ONCE = 256
"""Units that are handed to Ray together; between two such lots a run can stop."""


class RayTasks:
    """Does units on the machines of a Ray cluster, which see the same files and folder.

    Args:
        folder: The folder of the corpus.
        settings: The settings of the ingest.

    Raises:
        MissingPartError: Ray is not installed.
    """

    def __init__(self, folder: Path, settings: IngestSettings) -> None:
        try:
            # By name: Ray is too large to be installed wherever types are checked.
            self._data = importlib.import_module("ray.data")
        except ImportError:
            raise MissingPartError("Ray Data needs ray: pip install 'hotgrid[ray]'") from None
        self._folder, self._settings = str(folder.resolve()), json.dumps(settings.to_table())
        self._most = settings.limit

    def run(self, jobs: deque[Job], until: float, news: News, stop: Stop) -> int:
        """Do units until there are none, or a stop; return the documents."""
        kept, folder, settings = 0, self._folder, self._settings

        def work(row: Mapping[str, Any]) -> dict[str, Any]:
            return worked(folder, settings, int(row["number"]), str(row["unit"]))

        while jobs and not stop() and (self._most is None or kept < self._most):
            lot = list(islice(jobs, _AT_ONCE))
            rows = [
                {"number": number, "unit": json.dumps(unit.to_table())} for number, unit in lot
            ]
            for row in self._data.from_items(rows).map(work).iter_rows():
                raise_told(str(row["kind"]), str(row["problem"]))
                kept += int(row["kept"])
                news(int(row["size"]))
            for _ in lot:
                jobs.popleft()
        return kept

    def close(self) -> None:
        """The cluster stays as it is."""


def worked(folder: str, settings: str, number: int, unit: str) -> dict[str, Any]:
    """Do one unit: what a task of Ray runs."""
    found = Unit(**json.loads(unit))
    try:
        kept = _worker(folder, settings).work(number, found)
    except HotgridError as problem:
        # Ray would wrap it into errors of its own.
        told = {"kind": type(problem).__name__, "problem": str(problem)}
        return {"kept": 0, "size": 0, **told}
    return {"kept": kept, "size": found.size, "kind": "", "problem": ""}


@lru_cache(maxsize=2)
def _worker(folder: str, settings: str) -> Worker:
    """A process of Ray loads the model once."""
    import torch

    torch.set_num_threads(1)
    return Worker(Path(folder), IngestSettings.from_table(json.loads(settings)))
