"""`trace`: a timeline of all ranks, in one file for a browser."""

import contextlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hotgrid.files import whole_file

from ._communicator import Communicator, SingleRank

_KINDS = {"user_annotation", "gpu_user_annotation", "kernel", "gpu_memcpy", "gpu_memset"}
_MESSAGES = ("gloo:", "nccl:", "c10d::")


@contextlib.contextmanager
def trace(path: str | Path, communicator: Communicator | None = None) -> Iterator[None]:
    """Record what is done inside, on every rank, and write it into one file.

    The file is what Chrome (`chrome://tracing`) and https://ui.perfetto.dev show: a row
    for every thread of every rank, with the phases of a cut grid (`steps`, `exchange`, or
    `exchange under way`, `interior`, `wait for margins`, `borders`), the messages and the
    kernels of GPUs. Everything is kept in memory until the end: trace some hundred steps.
    A collective call: every rank enters and leaves, and the first one writes.

    Args:
        path: The file.
        communicator: The ranks; by default this one alone.

    Raises:
        ArgumentError: The path cannot be written.
        StoreError: The disk is full or failed.

    Example:
        `with hg.cluster.trace("street.json", hg.cluster.world()): sim.run(100)`
    """
    from torch.cuda import is_available
    from torch.profiler import ProfilerActivity, profile

    ranks = communicator or SingleRank()
    kinds = [ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * is_available()]
    with profile(activities=kinds, acc_events=True) as found:
        yield
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "trace.json"
        found.export_chrome_trace(str(whole))
        recorded = json.loads(whole.read_text(encoding="utf-8"))
    # Times count from a moment that may differ from process to process, in nanoseconds.
    mine = {"base": recorded.get("baseTimeNanoseconds", 0), "events": _events(recorded)}
    every = ranks.gather_json(mine)
    if ranks.rank == 0:
        with whole_file(Path(path)) as aside:
            aside.write_text(json.dumps({"traceEvents": _merged(every)}), encoding="utf-8")
    ranks.barrier()


def _events(recorded: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Phases, messages and kernels; all the other calls to torch would bury them."""
    return [
        {key: event[key] for key in ("name", "ph", "ts", "dur", "tid")}
        for event in recorded["traceEvents"]
        if event.get("ph") == "X"
        and (event.get("cat") in _KINDS or event["name"].startswith(_MESSAGES))
    ]


def _merged(every: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One process in the picture for each rank, and a time that begins at 0."""
    first = min(each["base"] for each in every)
    late = [(each["base"] - first) / 1000 for each in every]
    begin = min(
        (
            event["ts"] + more
            for each, more in zip(every, late, strict=True)
            for event in each["events"]
        ),
        default=0.0,
    )
    merged: list[dict[str, Any]] = []
    for rank, (each, more) in enumerate(zip(every, late, strict=True)):
        title = {"name": f"rank {rank}"}
        merged.append({"name": "process_name", "ph": "M", "pid": rank, "args": title})
        merged += [
            {**event, "ts": event["ts"] + more - begin, "pid": rank} for event in each["events"]
        ]
    return merged
