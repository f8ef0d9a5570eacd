"""`ingest`: from paths to a corpus of byte patches."""

import hashlib
import json
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hotgrid.cluster import StopRequest, follow_slurm, job, world
from hotgrid.errors import ArgumentError, HotgridError
from hotgrid.files import whole_file
from hotgrid.progress import Progress
from hotgrid.store import RunFolder

from ._corpus import Corpus
from ._encode import Encoder
from ._inputs._hub import files_of, read_reference
from ._inputs._read import read_unit
from ._inputs._record import Fault
from ._inputs._units import HUB, STDIN, Unit, expect_inputs, list_units
from ._merge import Merge
from ._modalities._registry import modality_of
from ._outputs._manifest import read_manifest
from ._outputs._names import COMPLETE, SPOOL, WRITTEN
from ._pool import InProcess, Job, Processes
from ._ray import RayTasks
from ._recorded_inputs import expect_all_inputs, recorded_inputs
from ._settings import MIB, IngestSettings
from ._work import is_done

_ROUND = 10.0
"""Seconds after which ranks tell each other how far they are."""
_SMALL = 16 * MIB
_COPIED = 1 << 20


@dataclass(frozen=True)
class IngestSummary:
    """The result of an ingest.

    Attributes:
        folder: The corpus.
        finished: False if SIGTERM stopped it; with `resume` it continues.
        manifest: That of the corpus; empty if it is not finished.
    """

    folder: Path
    finished: bool
    manifest: dict[str, Any]


def ingest(
    paths: Sequence[str],
    out: str | Path,
    settings: IngestSettings | None = None,
    *,
    texts: Sequence[str] = (),
    resume: bool = False,
    workers: int | None = None,
    timeout: float = 300.0,
    ray: bool = False,
    progress: bool | None = None,
) -> IngestSummary:
    """Read documents of any kind, cut them into patches, and write a corpus.

    The corpus is the same bits for any number of workers and ranks, and however often the
    ingest was killed and resumed. What cannot be read is listed in `quarantine.jsonl`. Ranks of
    torchrun, and tasks of srun, split the input.

    Args:
        paths: Files, folders, patterns, `-` for standard input, or `hf://datasets/...`.
        out: The folder of the corpus. An earlier one in it is moved aside.
        settings: What decides about the output.
        texts: Texts that are documents themselves.
        resume: Resume the corpus in the folder, if there is one with the same settings.
        workers: Processes that work; 0 is this one. By default this one for up to 16 MiB,
            and else one for each core, or one for a GPU.
        timeout: Seconds that a document may take in a worker process.
        ray: Work on the machines of a Ray cluster, with Ray Data; they must see the same
            files and folder.
        progress: See `hotgrid.progress.Progress`.

    Raises:
        ArgumentError: A path does not exist, or settings do not fit the run to resume, or an
            input of it is not among these.
        MissingPartError: `ray` without Ray.
        StoreError: Another process works in the folder, or the disk is full.
    """
    settings = IngestSettings() if settings is None else settings
    if not paths and not texts:
        raise ArgumentError("there is nothing to ingest: give paths, or texts")
    if workers is not None and workers < 0:
        raise ArgumentError(f"`workers` must be 0 or more, got {workers}")
    if not timeout > 0:
        raise ArgumentError(f"`timeout` must be more than 0 seconds, got {timeout:g}")
    # Before an earlier corpus is moved aside.
    options = _checked(paths, texts, settings, Path(out), resume=resume)
    follow_slurm()
    group = world()
    folder = Path(out)
    asked = {name: json.dumps(value) for name, value in settings.to_table().items()}
    asked["model"] = str(settings.of_documents()["model"])
    with RunFolder(folder, group=group) as run, StopRequest() as stop:
        run.begin(
            asked,
            files=WRITTEN,
            options=options,
            job=job(),
            resume=resume and (folder / "run.toml").is_file(),
        )
        units = list(
            list_units(
                paths,
                texts,
                settings,
                out=folder,
                fetched=files_of,
                spool=_spooled(paths, folder, group),
            )
        )
        key = _key(units)
        if len(set(group.gather_json(key))) > 1:
            raise ArgumentError("ranks see different files; all must see the same input")
        merge = Merge(folder, settings, len(units))
        if _is_complete(folder, key):
            if group.rank == 0:
                merge.clean()
            return IngestSummary(folder, True, read_manifest(folder))
        with run.shared() as inherited:
            mine = deque(
                (number, unit)
                for number, unit in enumerate(units)
                if number % group.size == group.rank and not is_done(folder, number, unit)
            )
            total = sum(unit.size for unit in units)
            done = total - sum(group.gather_json(sum(unit.size for _, unit in mine)))
            hands = (
                RayTasks(folder, settings)
                if ray
                else _hands(folder, settings, workers, mine, timeout, inherited)
            )
            try:
                finished = _rounds(hands, mine, group, stop, settings, (done, total, progress))
            finally:
                hands.close()
        if settings.shards is None:
            # Documents were not synced one by one; shards are.
            os.sync()
        group.gather_json(None)
        manifest: dict[str, Any] = {}
        if finished and group.rank == 0:
            manifest = merge.run()
            with whole_file(folder / COMPLETE) as aside:
                aside.write_text(json.dumps({"input": key}) + "\n", encoding="utf-8")
            merge.clean()
        # The others wait for the end.
        group.gather_json(None)
        if finished and group.rank:
            manifest = read_manifest(folder)
    return IngestSummary(folder, finished, manifest)


def _checked(
    paths: Sequence[str],
    texts: Sequence[str],
    settings: IngestSettings,
    folder: Path,
    *,
    resume: bool,
) -> dict[str, list[str]]:
    """Check inputs and settings, and return what the record of the run says of the inputs."""
    expect_inputs(paths, settings, folder)
    for path in paths:
        if path.startswith(HUB):
            read_reference(path)
    Encoder(settings)  # what is wrong with a model or a segmenter is said at once
    found = recorded_inputs(paths, texts)
    if resume:
        expect_all_inputs(folder, found)
    return found


def count_input(
    paths: Sequence[str],
    settings: IngestSettings | None = None,
    *,
    texts: Sequence[str] = (),
    out: str | Path | None = None,
) -> dict[str, Counter[str]]:
    """Count documents and bytes by modality without decoding or writing a corpus.

    Documents that cannot be read are counted under `quarantined`. Standard input is copied to
    a temporary file meanwhile.

    Args:
        paths: See `ingest`.
        settings: What decides about the output.
        texts: Texts that are documents themselves.
        out: Where the corpus would go: a folder that is no input.
    """
    settings = IngestSettings() if settings is None else settings
    found: dict[str, Counter[str]] = {}
    taken = 0
    with TemporaryDirectory() as aside:
        spool = _spooled(paths, Path(aside), world())
        place = None if out is None else Path(out)
        listed = list_units(paths, texts, settings, out=place, fetched=files_of, spool=spool)
        for unit in listed:
            for each in read_unit(unit, settings):
                if isinstance(each, Fault) or not each.size:
                    found.setdefault("quarantined", Counter()).update(documents=1)
                    continue
                kinds = {modality_of(p.data, p.name, pure=p.pure).name for p in each.parts}
                name = kinds.pop() if len(kinds) == 1 else "mixed"
                found.setdefault(name, Counter()).update(documents=1, bytes=each.size)
                taken += 1
                if taken == settings.limit:
                    return found
    return found


def _rounds(
    hands: InProcess | Processes | RayTasks,
    mine: deque[Job],
    group: Any,
    stop: Callable[[], bool],
    settings: IngestSettings,
    shown: tuple[int, int, bool | None],
) -> bool:
    """Work until all ranks have; False if one of them is to stop.

    Ranks meet every few seconds, so that a lost one is noticed, and none waits for long.
    """
    done, total, show = shown
    own = others = kept = 0
    show = False if group.rank else show

    def news(size: int) -> None:
        nonlocal own
        own += size
        bar.update(min(total, done + own + others))

    note = lambda rate: f"{rate / 1e6:,.2f} MB/s"
    with Progress("ingesting", total, unit="bytes", note=note, show=show) as bar:
        while True:
            until = time.monotonic() + (_ROUND if group.size > 1 else float("inf"))
            kept += hands.run(mine, until, news, stop)
            if settings.limit is not None and kept >= settings.limit:
                mine.clear()
            said = group.gather_json([stop() and bool(mine), not mine, own])
            others = sum(each[2] for each in said) - own
            if any(each[0] for each in said):
                return False
            if all(each[1] for each in said):
                bar.update(total)
                return True


def _hands(
    folder: Path,
    settings: IngestSettings,
    workers: int | None,
    mine: deque[Job],
    timeout: float,
    inherited: Sequence[int],
) -> InProcess | Processes:
    if workers is None:
        small = sum(unit.size for _, unit in mine) <= _SMALL
        cores = 1 if settings.device.startswith("cuda") else len(os.sched_getaffinity(0))
        workers = 0 if small else cores
    if not workers or not mine:
        return InProcess(folder, settings)
    return Processes(folder, settings, min(workers, len(mine)), timeout, inherited)


def _spooled(paths: Sequence[str], folder: Path, group: Any) -> Path | None:
    """A file with standard input, so that it can be read again; None if it is not asked for."""
    if STDIN not in paths:
        return None
    if group.size > 1:
        raise ArgumentError("standard input (`-`) cannot be split over ranks; use a file")
    with whole_file(folder / SPOOL) as aside, aside.open("wb") as file:
        while data := sys.stdin.buffer.read(_COPIED):
            file.write(data)
    # The same bytes are the same input, whenever they came.
    os.utime(folder / SPOOL, (0, 0))
    return folder / SPOOL


def _key(units: Sequence[Unit]) -> str:
    whole = hashlib.sha256()
    for unit in units:
        whole.update(json.dumps(unit.to_table()).encode())
    return whole.hexdigest()


def _is_complete(folder: Path, key: str) -> bool:
    try:
        same = json.loads((folder / COMPLETE).read_text("utf-8"))["input"] == key
        return same and Corpus(folder).has_all_files()
    except (OSError, ValueError, KeyError, HotgridError):
        return False
