"""Documents to batches of equal rows, prepared ahead in a thread."""

import atexit
import base64
import dataclasses
import queue
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotgrid.errors import ArgumentError, DamagedError

from ._counters import Counters
from ._packer import Packer
from ._shards import Document, Position, Shards
from ._shuffle import ShuffleBuffer

_Sequences = list[NDArray[np.integer]]
_PARTS = ("ready", "buffer", "waiting")


class _Snapshot(NamedTuple):
    """Everything that a loader needs to continue after a batch."""

    position: Position
    ready: _Sequences
    buffer: _Sequences
    draws: int
    waiting: _Sequences
    counters: Counters


class PackedBatches:
    r"""Batches of packed rows from documents, resumable after any batch.

    Documents are read, turned into sequences by `encode` many at a time, shuffled and packed.
    A thread does so ahead of the consumer; `encode` should release the GIL, as
    `hotgrid.tokens` does. `state` belongs to the batch that was yielded last, however far
    ahead the thread is. `Trainer` takes it as a `BatchStream`.

    Args:
        shards: The documents.
        encode: Turns a list of documents into sequences of integers, usually one for each.
        batch: Rows of a batch.
        length: Length of a row.
        start: What every sequence begins with, such as the BOS token.
        shuffle: The size of the shuffle buffer; 0 keeps the order.
        fill_rate: How many sequences are added to it before each draw.
        waiting: How many sequences the packer chooses from.
        rest: What happens to what is cut off, as for `Packer`.
        seed: The seed of the shuffle buffer.
        rank: Which rank this is.
        ranks: How many ranks share the documents.
        epochs: How often to read everything; None never ends. The last rows that do not
            fill a batch are left out.
        ahead: How many batches to prepare ahead.
        at_once: How many documents are encoded at once.

    Raises:
        ArgumentError: An argument is wrong.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("a.jsonl").write_text('{"text": "hello"}\n{"text": "you"}\n')
        >>> def encode(texts):
        ...     return [list(text.encode()) for text in texts]
        >>> batches = PackedBatches(
        ...     Shards(["a.jsonl"]), encode, batch=1, length=10, start=[0], epochs=1
        ... )
        >>> for batch in batches:
        ...     print(batch)
        tensor([[  0, 104, 101, 108, 108, 111,   0, 121, 111, 117]])
    """

    def __init__(
        self,
        shards: Shards,
        encode: Callable[[list[Any]], Sequence[Any]],
        *,
        batch: int,
        length: int,
        start: Sequence[Any],
        shuffle: int = 128,
        fill_rate: int = 2,
        waiting: int = 1024,
        rest: Literal["keep", "drop"] = "keep",
        seed: int = 0,
        rank: int = 0,
        ranks: int = 1,
        epochs: int | None = None,
        ahead: int = 4,
        at_once: int = 128,
    ) -> None:
        for name, value in (("batch", batch), ("ahead", ahead), ("at_once", at_once)):
            if value < 1:
                raise ArgumentError(f"`{name}` must be at least 1, got {value}")
        self.shards, self.encode = shards, encode
        self.rows, self.epochs, self.ahead, self.at_once = batch, epochs, ahead, at_once
        self.rank, self.ranks = rank, ranks
        self._packer = Packer(
            length, start=np.asarray(start, np.int32), waiting=waiting, rest=rest
        )
        self._buffer: ShuffleBuffer[NDArray[np.integer]] = ShuffleBuffer(
            max(1, shuffle), min(fill_rate, max(1, shuffle)), seed
        )
        self._ready: _Sequences = []
        self._position = Position()
        self._counters = Counters()
        self._last = self._snapshot()
        self._thread: _Ahead | None = None

    @property
    def identity(self) -> str:
        """Settings that determine the batches, as text; a resumed run must have the same."""
        names = "\n".join(file.name for file in self.shards.files)
        return (
            f"{len(self.shards.files)} files ({zlib.crc32(names.encode()):08x}), seed "
            f"{self.shards.seed}, {self.rows} rows of {self._packer.length}, shuffle "
            f"{self._buffer.size} by {self._buffer.seed}"
        )

    @property
    def counters(self) -> Counters:
        """Counts up to the batch that was yielded last."""
        return self._last.counters

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Tensor:
        if self._thread is None:
            self._thread = _Ahead(self._batches(), self.ahead)
        batch, self._last = self._thread.next()
        return batch

    def close(self) -> None:
        """Stop preparing batches. Iterating again continues after the last one yielded."""
        if self._thread is not None:
            self._thread.stop()
            self._thread = None
            self._restore(self._last)

    def state(self) -> dict[str, Any]:
        """Return everything needed to continue after the last batch, as plain JSON."""
        last = self._last
        numbers = [*last.position, last.draws, *dataclasses.astuple(last.counters)]
        parts = {name: _packed(getattr(last, name)) for name in _PARTS}
        return {"numbers": numbers, **parts}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue where another loader with the same arguments was.

        Raises:
            DamagedError: The state is not one of `state()`.
        """
        self.close()
        try:
            numbers = [int(each) for each in state["numbers"]]
            parts = {name: _unpacked(state[name], self._packer.start) for name in _PARTS}
            self._last = _Snapshot(
                Position(*numbers[:3]),
                draws=numbers[3],
                counters=Counters(*numbers[4:]),
                **parts,
            )
        except (KeyError, TypeError, ValueError, IndexError) as problem:
            raise DamagedError(f"this is not the state of a loader: {problem}") from problem
        self._restore(self._last)

    def _batches(self) -> Iterator[tuple[Tensor, _Snapshot]]:
        rows = self._packer.rows(self._buffer.shuffled(self._sequences()))
        while True:
            found = [row for _, row in zip(range(self.rows), rows, strict=False)]
            if len(found) < self.rows:
                return
            self._counters.rows += self.rows
            self._counters.packed = self._packer.packed
            self._counters.dropped = self._packer.dropped
            yield torch.from_numpy(np.stack(found)).to(torch.int64), self._snapshot()

    def _sequences(self) -> Iterator[NDArray[np.integer]]:
        self._filled = self._position.epoch
        documents = self.shards.read(
            self._position, rank=self.rank, ranks=self.ranks, epochs=self.epochs
        )
        while True:
            while self._ready:
                yield self._ready.pop()
            if not self._encode_more(documents):
                return

    def _encode_more(self, documents: Iterator[Document]) -> bool:
        chunk = [document for _, document in zip(range(self.at_once), documents, strict=False)]
        if not chunk:
            return False
        encoded = self.encode([document.text for document in chunk])
        count = self._counters
        for document in chunk:
            count.files += document.begins
            count.bytes += _size(document.text)
        count.documents += len(chunk)
        # Taken from the end, so that taking one costs nothing.
        self._ready = [np.asarray(each, np.int32) for each in reversed(encoded)]
        found = sum(map(len, self._ready))
        count.tokens += found
        self._position = chunk[-1].after
        # Without this, documents that are all empty would be read forever.
        if found:
            self._filled = self._position.epoch
        elif self._position.epoch > self._filled + 1:
            raise ArgumentError(
                f"no document of {len(self.shards.files)} files, such as "
                f"`{self.shards.files[0]}`, has any tokens: all are empty, or `encode` returns "
                "nothing"
            )
        return True

    def _snapshot(self) -> _Snapshot:
        return _Snapshot(
            self._position,
            list(self._ready),
            list(self._buffer.items),
            self._buffer.draws,
            self._packer.state,
            dataclasses.replace(self._counters),
        )

    def _restore(self, to: _Snapshot) -> None:
        self._position, self._ready = to.position, list(to.ready)
        self._buffer.items, self._buffer.draws = list(to.buffer), to.draws
        self._packer.state = to.waiting
        self._packer.packed, self._packer.dropped = to.counters.packed, to.counters.dropped
        self._counters = dataclasses.replace(to.counters)


class _Ahead:
    """A thread that prepares items and stays a few ahead."""

    def __init__(self, items: Iterator[Any], ahead: int) -> None:
        self._queue: queue.Queue[Any] = queue.Queue(ahead)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(items,), daemon=True)
        self._thread.start()
        # A thread that is still inside native code when Python ends aborts the process.
        atexit.register(self.stop)

    def next(self) -> Any:
        kind, value = self._queue.get()
        if kind == "item":
            return value
        # Every later call ends the same way.
        self._queue.put((kind, value))
        raise value

    def stop(self) -> None:
        atexit.unregister(self.stop)
        self._stopped.set()
        while self._thread.is_alive():
            try:
                self._queue.get(timeout=0.01)
            except queue.Empty:
                continue

    def _run(self, items: Iterator[Any]) -> None:
        try:
            for item in items:
                self._queue.put(("item", item))
                if self._stopped.is_set():
                    return
            self._queue.put(("end", StopIteration()))
        except Exception as problem:  # noqa: BLE001 - it is raised in the consumer
            self._queue.put(("end", problem))


def _size(document: object) -> int:
    # JSON can hold half of a surrogate pair.
    return len(document.encode(errors="replace")) if isinstance(document, str) else 0


def _packed(sequences: _Sequences) -> dict[str, Any]:
    values = b"".join(np.ascontiguousarray(each, "<i4").tobytes() for each in sequences)
    lengths = [len(each) for each in sequences]
    return {"lengths": lengths, "values": base64.b64encode(values).decode()}


def _unpacked(part: Mapping[str, Any], like: NDArray[np.integer]) -> _Sequences:
    lengths = [int(each) for each in part["lengths"]]
    values = np.frombuffer(base64.b64decode(part["values"], validate=True), "<i4")
    values = values.astype(np.int32).reshape(-1, *like.shape[1:])
    if sum(lengths) != len(values):
        raise ValueError(f"{len(values)} values in sequences of {sum(lengths)}")
    return list(np.split(values, np.cumsum(lengths)[:-1])) if lengths else []
