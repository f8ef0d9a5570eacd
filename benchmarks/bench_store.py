"""Claim: a checkpoint is written at 70 % of what the disk takes, or more.

In the background, a loop that makes new tensors in every step lends the old ones and stalls
for less than 5 % of the time of writing. One that writes into its tensors stalls for a copy
in memory, that of the GPU where they are there; that is below 5 % too, except on a CPU whose
disk is faster than a twentieth of its memory.

The comparison is a plain file of the same size, written in blocks and synced by the same
script, once the usual way and once with `O_DIRECT`; the faster one is what the disk takes.
Rounds take turns, since the speed of a shared disk varies, and the best of each counts. Reading
comes from the disk (after dropping the page cache of the files) and once more from memory.

    python benchmarks/bench_store.py [--gigabytes N] [--folder FOLDER] [--device cpu]
"""

import mmap
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import torch
from options import parser
from report import report

from hotgrid.store import Checkpoints

BLOCK = 8 << 20
ROUNDS = 5


def affordable(folder: Path) -> float:
    """Gigabytes: 4, or what disk and memory allow (four files; state, copy and loaded)."""
    memory = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(0.25, min(4, shutil.disk_usage(folder).free / 5e9, memory / 5e9))


def state(gigabytes: float, device: str) -> dict[str, torch.Tensor]:
    """One large field, and a few hundred small tensors as a network has them."""
    cells = int(gigabytes * 1e9) // 4
    field = torch.randint(0, 2**31, (cells,), dtype=torch.int32, device=device)
    small = {f"layer{i}.weight": torch.ones(64, 64, device=device) for i in range(200)}
    return {"field": field, **small}


def write_plainly(path: Path, size: int, flags: int = 0) -> None:
    """What dd does: one block after the other, and a sync at the end."""
    block = memoryview(mmap.mmap(-1, BLOCK))
    block[:] = os.urandom(1 << 20) * (BLOCK >> 20)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | flags)
    for _ in range(0, size, BLOCK):
        os.write(descriptor, block)
    os.fsync(descriptor)
    os.close(descriptor)


def read_plainly(path: Path) -> None:
    block = memoryview(bytearray(BLOCK))
    with path.open("rb", buffering=0) as file:
        while file.readinto(block):
            pass


def forget(folder: Path) -> None:
    """Drop what the system keeps of these files in memory."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def check_that_changes_come_too_late(folder: Path, device: str) -> None:
    """A save holds what the tensors were, though the caller changes them or makes new ones."""
    field = torch.randint(0, 2**31, (1 << 26,), dtype=torch.int32, device=device)
    right = field.to("cpu", copy=True)
    checkpoints = Checkpoints(folder / "changed")
    checkpoints.save(0, {"field": field}, asynchronous=True)
    for _ in range(100):
        field.add_(1)
    checkpoints.wait()
    assert torch.equal(checkpoints.load().tensors["field"], right)
    right = field.to("cpu", copy=True)
    checkpoints.save(1, {"field": field}, asynchronous=True, copy=False)
    for _ in range(100):
        field = field + 1
    checkpoints.wait()
    assert torch.equal(checkpoints.load().tensors["field"], right)
    shutil.rmtree(folder / "changed")


def measure(folder: Path, tensors, size: int) -> dict[str, list[float]]:
    """Seconds of every round."""
    seconds: dict[str, list[float]] = {}
    checkpoints = Checkpoints(folder / "run", keep_last=None)
    plain = folder / "plain"
    steps = iter(range(10**6))

    def note(name: str, call) -> None:
        os.sync()
        start = time.perf_counter()
        call()
        seconds.setdefault(name, []).append(time.perf_counter() - start)
        print(f"  {name}: {seconds[name][-1]:.2f} s", file=sys.stderr, flush=True)

    def save_aside(kind: str, copy: bool = True) -> None:
        step = next(steps)
        save = lambda: checkpoints.save(step, tensors, asynchronous=True, copy=copy)

        def save_and_wait() -> None:
            note(kind, save)
            checkpoints.wait()

        note("save, asynchronous" if copy else "save, lent", save_and_wait)

    def remove_old() -> None:
        plain.unlink(missing_ok=True)
        for step in checkpoints.steps()[:-1]:
            shutil.rmtree(folder / "run" / f"step-{step:09d}")

    save_aside("stall, first")
    into = {name: torch.empty_like(tensor) for name, tensor in tensors.items()}
    checkpoints.load(wanted=into)
    for _ in range(ROUNDS):
        remove_old()
        note("plain write", lambda: write_plainly(plain, size))
        plain.unlink()
        note("plain write, direct", lambda: write_plainly(plain, size, os.O_DIRECT))
        note("save", lambda: checkpoints.save(next(steps), tensors))
        save_aside("stall")
        save_aside("stall, lent", copy=False)
        for verify in (True, False):
            kind = "load" if verify else "load, no checksums"
            load = lambda v=verify: checkpoints.load(wanted=into, verify=v)
            forget(folder)
            note(f"{kind}, from disk", load)
            note(f"{kind}, from memory", load)
        forget(folder)
        note("plain read, from disk", lambda: read_plainly(plain))
        note("plain read, from memory", lambda: read_plainly(plain))
    assert all(torch.equal(into[name], tensor) for name, tensor in tensors.items())
    return seconds


def table(seconds: dict[str, list[float]], size: int) -> list[dict]:
    """The best of each kind of work, beside the best of its rival."""
    best = {work: min(times) for work, times in seconds.items()}
    disk = min("plain write", "plain write, direct", key=lambda work: best[work])
    rivals = {"save": disk, "save, asynchronous": disk, "save, lent": disk}
    for work in best:
        kind, _, source = work.partition(", from ")
        if kind.startswith("load"):
            rivals[work] = f"plain read, from {source}"
    rows = []
    for work, taken in best.items():
        row = {"work": work, "s": round(taken, 3), "GB/s": round(size / taken / 1e9, 2)}
        if work in rivals:
            share = best[rivals[work]] / taken
            row |= {"share %": round(100 * share), "of": rivals[work]}
        elif work.startswith("stall"):
            whole = "save, lent" if work.endswith("lent") else "save, asynchronous"
            share = taken / best[whole]
            row |= {"share %": round(100 * share, 1), "of": f"the time of {whole}"}
        rows.append(row)
    return rows


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--gigabytes", type=float, help="default: 4, or what fits")
    options.add_argument("--folder", type=Path, help="on the disk to measure")
    given = options.parse_args()
    device = given.device
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        gigabytes = given.gigabytes or affordable(folder)
        check_that_changes_come_too_late(folder, device)
        tensors = state(gigabytes, device)
        size = sum(tensor.nbytes for tensor in tensors.values())
        rows = table(measure(folder, tensors, size), size)
    where = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    facts = {"tensors": where, "size": f"{size / 1e9:.2f} GB"}
    report(f"store-{device}", rows, torch=torch.__version__, **facts)


if __name__ == "__main__":
    main()
