"""Ranks in threads: the whole protocol that checkpoints need, in milliseconds."""

import json
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


class ThreadGroup:
    """One rank of several that live in one process."""

    def __init__(self, rank: int, size: int, barrier: threading.Barrier, board: list[Any]):
        self.rank, self.size = rank, size
        self.barrier, self.board = barrier, board

    def gather_json(self, value: Any) -> list[Any]:
        # As text: what JSON cannot hold would not travel between real processes.
        self.board[self.rank] = json.dumps(value)
        self.barrier.wait(60)
        found = [json.loads(text) for text in self.board]
        self.barrier.wait(60)
        return found


def on_ranks(size: int, work: Callable[[ThreadGroup], Any]) -> list[Any]:
    """What each rank returned or raised. A rank that raises `SystemExit` is gone."""
    barrier, board = threading.Barrier(size), [None] * size
    results: list[Any] = [None] * size

    def run(rank: int) -> None:
        try:
            results[rank] = work(ThreadGroup(rank, size, barrier, board))
        except BaseException as problem:  # noqa: BLE001  the test looks at it
            results[rank] = problem
            if isinstance(problem, SystemExit):
                barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def memory_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder in memory where there is one: what is tested here is not the disk."""
    shared = Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None)


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Equal bit for bit, NaN included."""
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    flat_a, flat_b = (x.contiguous().reshape(-1).view(torch.uint8) for x in (a, b))
    return torch.equal(flat_a, flat_b)
