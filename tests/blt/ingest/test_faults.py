"""Kills, stops, crashes, ranks: the corpus has the bits of one quiet run."""

import errno
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from hotgrid.blt import Corpus, IngestSettings, ingest
from hotgrid.blt._ingest._inputs._units import list_units
from hotgrid.blt._ingest._pool import raise_told
from hotgrid.blt._ingest._ray import worked
from hotgrid.blt._ingest._work import Worker, is_done
from hotgrid.errors import ArgumentError, StoreError
from hotgrid.store import RunFolder

from ...cluster.forked_ranks import run_forked  # noqa: TID252  not a package
from .corpora import TEXT, bits, pdf, write_mixed


def command(source: Path, out: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "hotgrid", "ingest", str(source), "--out", str(out), *options]


def start(source: Path, out: Path, *options: str, **more: str) -> subprocess.Popen:
    quiet = subprocess.DEVNULL
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **more}
    return subprocess.Popen(
        command(source, out, *options), env=environment, stdout=quiet, stderr=quiet
    )


def wait_for(running: subprocess.Popen, out: Path, documents: int) -> None:
    """Wait until this many documents are written, or the process has ended."""
    while running.poll() is None:
        if sum(1 for _ in out.glob("documents/*/*.safetensors")) >= documents:
            return
        time.sleep(0.002)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("shards", [None, 2])
def test_a_killed_run_ends_with_the_same_bits(tmp_path: Path, shards: int | None):
    source = tmp_path / "in"
    write_mixed(source, texts=20)
    ingest([str(source)], tmp_path / "whole", IngestSettings(shards=shards), workers=0)
    moments = random.Random(0 if shards is None else 1)
    options = ["--resume", "--workers", "0" if shards is None else "2"]
    options += [] if shards is None else ["--shards", str(shards)]
    kills = 0
    for documents in sorted(moments.sample(range(1, 20), 2)):
        running = start(source, tmp_path / "out", *options)
        wait_for(running, tmp_path / "out", documents)
        kills += running.poll() is None
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert kills == 2
    assert not (tmp_path / "out" / "manifest.json").exists()
    last = start(source, tmp_path / "out", *options)
    assert last.wait() == 0
    assert bits(tmp_path / "out") == bits(tmp_path / "whole")


@pytest.mark.long
def test_sigterm_stops_between_documents(tmp_path: Path):
    source = tmp_path / "in"
    write_mixed(source, texts=100)
    running = start(source, tmp_path / "out", "--workers", "2")
    wait_for(running, tmp_path / "out", 3)
    running.terminate()
    assert running.wait() == 0
    assert not (tmp_path / "out" / "manifest.json").exists()
    ingest([str(source)], tmp_path / "out", resume=True, workers=0)
    ingest([str(source)], tmp_path / "whole", workers=0)
    assert bits(tmp_path / "out") == bits(tmp_path / "whole")


# Forked, as importing torch is most of what a rank does here.
RANK = "import sys; from hotgrid.cli import main; sys.argv[0] = 'hotgrid'; main()"
TASK = """
import os
number = os.environ["RANK"]
for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR"):
    del os.environ[name]
# As srun sets them.
step = {"STEP_NUM_TASKS": "2", "STEP_NUM_NODES": "1", "JOB_ID": "4711", "STEP_ID": "0"}
step |= {"PROCID": number, "LOCALID": number}
os.environ.update({f"SLURM_{name}": value for name, value in step.items()})
"""


@pytest.mark.slow
def test_ranks_give_the_bits_of_one(tmp_path: Path):
    source = tmp_path / "in"
    write_mixed(source)
    options = ("ingest", str(source), "--out", str(tmp_path / "out"), "--near", "0.9")
    run_forked(RANK, *options, loaded="hotgrid.blt")
    ingest([str(source)], tmp_path / "whole", IngestSettings(near=0.9), workers=0)
    assert bits(tmp_path / "out") == bits(tmp_path / "whole")


@pytest.mark.slow
def test_tasks_of_slurm_give_the_bits_of_one(tmp_path: Path):
    source = tmp_path / "in"
    write_mixed(source)
    options = ("ingest", str(source), "--out", str(tmp_path / "out"))
    run_forked(TASK + RANK, *options, loaded="hotgrid.blt")
    assert not list((tmp_path / "out").glob("earlier-*"))
    ingest([str(source)], tmp_path / "whole", workers=0)
    assert bits(tmp_path / "out") == bits(tmp_path / "whole")


FAKE = """
import os, signal, time
class PdfiumError(Exception): pass
class PdfDocument:
    def __init__(self, data):
        if b"crash" in data:
            os.kill(os.getpid(), signal.SIGSEGV)
        if b"hang" in data:
            time.sleep(1000)
        raise PdfiumError("just damaged")
"""


@pytest.mark.slow
def test_decoders_that_crash_or_hang_cost_one_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "pypdfium2.py").write_text(FAKE)
    monkeypatch.syspath_prepend(tmp_path / "fake")
    source = tmp_path / "in"
    source.mkdir()
    for name in ("1-crash", "3-hang", "5-damaged"):
        (source / f"{name}.pdf").write_bytes(pdf([name]))
    for n in (0, 2, 4, 6):
        (source / f"{n}.txt").write_bytes(TEXT + b"%d" % n)
    ingest([str(source)], tmp_path / "out", workers=2, timeout=5)
    corpus = Corpus(tmp_path / "out")
    assert [row["name"][-5] for row in corpus.rows()] == ["0", "2", "4", "6"]
    reasons = {row["name"].rsplit("/")[-1][0]: row["reason"] for row in corpus.quarantined()}
    assert "crashed (signal 11)" in reasons["1"]
    assert "longer than 5 s" in reasons["3"]
    assert "just damaged" in reasons["5"]


FAKE_PARQUET = """
import os, signal
class ParquetFile:
    num_row_groups = 1
    def __init__(self, file, **options):
        if os.path.basename(file).startswith("1-open"):
            os.kill(os.getpid(), signal.SIGSEGV)
        self.metadata = self.schema_arrow = self
        self.total_byte_size, self.names, self.schema = 1, ["text"], []
    def __enter__(self): return self
    def __exit__(self, *found): pass
    def row_group(self, part): return self
    def select(self, columns): return self
    def to_pylist(self): return [{"text": "one"}, {"text": "two"}]
    def iter_batches(self, *options, **more):
        yield self
        os.kill(os.getpid(), signal.SIGSEGV)
"""


@pytest.mark.slow
def test_a_reader_that_crashes_costs_the_rest_of_its_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fake = tmp_path / "fake" / "pyarrow"
    fake.mkdir(parents=True)
    for name in ("__init__.py", "types.py"):
        (fake / name).touch()
    (fake / "parquet.py").write_text(FAKE_PARQUET)
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for name in ("1-open.parquet", "2-rows.parquet"):
        (source / name).touch()
    (source / "3.txt").write_bytes(TEXT)
    monkeypatch.syspath_prepend(tmp_path / "fake")
    ingest([str(source)], out, workers=1)
    corpus = Corpus(out)
    assert [each.data for each in corpus] == [b"one", b"two", TEXT]
    faults = [(row["name"], row["reason"]) for row in corpus.quarantined()]
    assert [Path(name).name for name, _ in faults] == ["1-open.parquet", "2-rows.parquet"]
    assert all("crashed (signal 11)" in reason for _, reason in faults)


@pytest.mark.slow
def test_a_killed_run_frees_its_folder_while_a_worker_decodes(tmp_path: Path):
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "pypdfium2.py").write_text(FAKE)
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "hang.pdf").write_bytes(pdf(["hang"]))
    for n in range(4):
        (source / f"{n}.txt").write_bytes(TEXT + b"%d" % n)
    running = start(source, out, "--workers", "2", PYTHONPATH=str(tmp_path / "fake"))
    wait_for(running, out, 4)
    assert running.poll() is None
    running.send_signal(signal.SIGKILL)
    running.wait()
    # Resuming waits three seconds for the lock; the document would take a thousand.
    with RunFolder(out):
        pass


def test_units_whose_files_are_missing_or_cut_are_done_again(tmp_path: Path):
    settings = IngestSettings(document_bytes=1024)
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT * 60)
    [unit] = list_units([str(path)], [], settings)
    worker = Worker(tmp_path / "out", settings)
    assert worker.work(0, unit) > 2
    assert is_done(tmp_path / "out", 0, unit)
    whole = bits(tmp_path / "out")
    [record] = [name for name in whole if name.endswith(".jsonl")]
    documents = [name for name in whole if name.endswith(".safetensors")]
    lines = whole[record].splitlines(keepends=True)
    for name, left in (
        (documents[0], whole[documents[0]][:-1]),
        (documents[1], b""),
        (record, b"".join(lines[:-1])),
        (record, b"".join(lines)[:-30]),
        (record, b""),
    ):
        (tmp_path / "out" / name).write_bytes(left)
        assert not is_done(tmp_path / "out", 0, unit)
        worker.work(0, unit)
        assert bits(tmp_path / "out") == whole
    (tmp_path / "out" / documents[0]).unlink()
    assert not is_done(tmp_path / "out", 0, unit)


@pytest.mark.parametrize("shards", [None, 2])
def test_resuming_writes_what_is_missing_again(tmp_path: Path, shards: int | None):
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for n in range(5):
        (source / f"{n}.txt").write_bytes(TEXT + b"%d" % n)
    settings = IngestSettings(shards=shards)
    ingest([str(source)], out, settings, workers=0)
    whole = bits(out)
    for name in whole:
        for left in (None, whole[name][:-10]):
            (out / name).unlink()
            if left is not None:
                (out / name).write_bytes(left)
            done = ingest([str(source)], out, settings, resume=True, workers=0)
            assert done.manifest["documents"] == 5
            assert bits(out) == whole


def test_documents_are_on_the_disk_before_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    calls: list[bool] = []
    monkeypatch.setattr(
        os, "sync", lambda: calls.append((tmp_path / "out" / "manifest.json").exists())
    )
    ingest([], tmp_path / "out", texts=["one", "two"], workers=0)
    assert calls == [False]


def test_a_task_of_ray_tells_that_it_cannot_write(tmp_path: Path):
    settings = IngestSettings()
    (tmp_path / "out").write_text("in the way")
    [unit] = list_units([], ["one"], settings)
    told = worked(
        str(tmp_path / "out"), json.dumps(settings.to_table()), 0, json.dumps(unit.to_table())
    )
    assert told["kept"] == 0
    with pytest.raises(ArgumentError, match="cannot write"):
        raise_told(told["kind"], told["problem"])
    told = worked(
        str(tmp_path / "in"), json.dumps(settings.to_table()), 0, json.dumps(unit.to_table())
    )
    assert told["kept"] == 1
    raise_told(told["kind"], told["problem"])


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, StoreError), (errno.EROFS, ArgumentError)]
)
def test_a_document_that_cannot_be_written_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
):
    texts = [f"text {n}" for n in range(4)]
    ingest([], tmp_path / "whole", texts=texts, workers=0)
    write = Path.write_bytes

    def fails(path: Path, data: Any) -> int:
        if path.suffix == ".safetensors" and b"text 2" in data:
            raise OSError(number, os.strerror(number))
        return write(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", fails)
        with pytest.raises(kind, match=os.strerror(number)):
            ingest([], tmp_path / "out", texts=texts, workers=0)
    assert not (tmp_path / "out" / "manifest.json").exists()
    ingest([], tmp_path / "out", texts=texts, resume=True, workers=0)
    assert bits(tmp_path / "out") == bits(tmp_path / "whole")


def test_a_folder_in_use_is_not_touched(tmp_path: Path):
    ingest([], tmp_path / "out", texts=["one"], workers=0)
    before = bits(tmp_path / "out")
    with RunFolder(tmp_path / "out"), pytest.raises(StoreError, match="in use"):
        ingest([], tmp_path / "out", texts=["two"], workers=0)
    assert bits(tmp_path / "out") == before


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # those of Ray itself
def test_ray_data_gives_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # Nothing is written to the home folder; sockets want a short path.
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    place = tempfile.mkdtemp(prefix="ray")
    ray: Any = importlib.import_module("ray")
    importlib.import_module("ray.data")
    write_mixed(tmp_path / "in")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=100_000_000,
        _temp_dir=place,
    )
    try:
        ingest([str(tmp_path / "in")], tmp_path / "out", ray=True)
    finally:
        ray.shutdown()
        shutil.rmtree(place, ignore_errors=True)
    ingest([str(tmp_path / "in")], tmp_path / "whole", workers=0)
    assert bits(tmp_path / "out") == bits(tmp_path / "whole")
