"""A file written block by block, bypassing the page cache, with checksums."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import queue
import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from ._blocks import BLOCK, THREADS, block_sum

if TYPE_CHECKING:
    from torch import Tensor

_ALIGNMENT = 4096


class _Buffer(NamedTuple):
    """Memory of one block, as bytes and as a tensor; aligned to a page."""

    view: memoryview
    tensor: Tensor


class _Block(NamedTuple):
    """A block that is ready to be written."""

    number: int
    buffer: _Buffer
    size: int


class BlockWriter:
    """Writes a new file from tensors of bytes, on any device.

    The caller fills one block while threads compute the checksums of others and write them.
    They write with `O_DIRECT` if the file system supports it: data that will not be read
    soon need not pass through the page cache, which costs a copy, pages for the
    whole checkpoint, and on small machines most of the time.

    Plain threads and not an executor: an executor takes no more work once the interpreter
    is about to exit, which is when the last asynchronous save may still be running.
    """

    def __init__(self, path: Path, size: int) -> None:
        import torch

        self._size = size
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            _reserve(self._descriptor, size)
        except OSError:
            os.close(self._descriptor)
            raise
        with contextlib.suppress(OSError):
            self._go_direct(True)
        self._sums: dict[int, str] = {}
        self._problem: Exception | None = None
        self._threads: list[threading.Thread] = []
        self._ready: queue.SimpleQueue[_Block | None] = queue.SimpleQueue()
        self._free: queue.SimpleQueue[_Buffer] = queue.SimpleQueue()
        self._count = max(1, min(THREADS, -(-size // BLOCK)))
        for _ in range(self._count + 1):
            memory = mmap.mmap(-1, _aligned(min(BLOCK, max(1, size))))
            view = memoryview(memory)
            self._free.put(_Buffer(view, torch.frombuffer(view, dtype=torch.uint8)))
        self._buffer, self._filled, self._number = self._free.get(), 0, 0

    def __enter__(self) -> Self:
        # Some Pythons start no threads during exit; then do without.
        with contextlib.suppress(RuntimeError):
            for _ in range(self._count):
                thread = threading.Thread(target=self._run)
                thread.start()
                self._threads.append(thread)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._stop()
        os.close(self._descriptor)

    def add(self, data: Tensor) -> None:
        """Append bytes, a flat tensor of uint8."""
        while data.numel():
            fits = min(BLOCK - self._filled, data.numel())
            self._buffer.tensor[self._filled : self._filled + fits].copy_(data[:fits])
            self._filled += fits
            data = data[fits:]
            if self._filled == BLOCK:
                self._send()

    def finish(self) -> list[str]:
        """Sync everything to the disk; return the checksums of the blocks.

        Raises:
            OSError: Something could not be written.
        """
        if self._filled:
            self._send()
        self._stop()
        if self._problem:
            raise self._problem
        os.ftruncate(self._descriptor, self._size)
        os.fsync(self._descriptor)
        return [self._sums[number] for number in range(self._number)]

    def _send(self) -> None:
        if self._problem:
            raise self._problem
        block = _Block(self._number, self._buffer, self._filled)
        if self._threads:
            self._ready.put(block)
        else:
            self._write(block)
        self._buffer, self._filled = self._free.get(), 0
        self._number += 1

    def _stop(self) -> None:
        for _ in self._threads:
            self._ready.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _run(self) -> None:
        while (block := self._ready.get()) is not None:
            self._write(block)

    def _write(self, block: _Block) -> None:
        number, (view, _), size = block
        try:
            self._sums[number] = block_sum(view[:size])
            end = _aligned(size)
            view[size:end] = bytes(end - size)
            if not self._problem:
                self._write_all(view[:end], number * BLOCK)
        except Exception as problem:  # noqa: BLE001  the caller raises it
            self._problem = self._problem or problem
        finally:
            self._free.put(block.buffer)

    def _write_all(self, data: memoryview, place: int) -> None:
        refused = False
        while len(data):
            try:
                count = os.pwrite(self._descriptor, data, place)
            except OSError as problem:
                if problem.errno != errno.EINVAL or refused:
                    raise
                # A file system that accepts the flag, but does not support it.
                refused = True
                self._go_direct(False)
            else:
                data, place = data[count:], place + count

    def _go_direct(self, on: bool) -> None:
        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
        flags = flags | os.O_DIRECT if on else flags & ~os.O_DIRECT
        fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags)


def _reserve(descriptor: int, size: int) -> None:
    """Reserve all the space at once, if the file system can.

    Then blocks are written in parallel, and a full disk is known before the first byte.
    Python's `os.posix_fallocate` would write to every block of a file system that cannot.
    """
    reserve = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if reserve is None:
        return
    reserve.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long)
    if reserve(descriptor, 0, 0, max(1, size)):
        problem = ctypes.get_errno()
        if problem in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise OSError(problem, os.strerror(problem))


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
