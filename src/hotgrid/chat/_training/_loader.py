"""Text as batches of tokens: encoded ahead in threads, packed, resumed exactly."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotgrid.chat._model._gpt import IGNORED
from hotgrid.chat._model._vocabulary import beginning
from hotgrid.data import Counters, PackedBatches, Packer, Shards
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.tokens import Encoding

# Longer documents are cut at the ends of paragraphs, into passages of about this length:
# some of a single book can then be held out, and the loader's state stays small.
_PASSAGE = 16_384
_WAITING = _SHUFFLED = 128
_PARTS = 1 << 32


class TokenBatch(NamedTuple):
    """Rows of tokens, and what follows each.

    Attributes:
        tokens: The tokens, of shape (rows, context).
        targets: The token after each; -100 where it does not count.
        documents: The document of each token in its row; None where tokens see those of
            other documents before them in the row.
    """

    tokens: Tensor
    targets: Tensor
    documents: Tensor | None = None

    @classmethod
    def of(cls, rows: Tensor, bos: int, *, isolate: bool) -> Self:
        """Make a batch of rows of one token more; a second channel says which count."""
        numbers = rows[..., 0] if rows.ndim == 3 else rows
        tokens, targets = numbers[:, :-1].contiguous(), numbers[:, 1:].contiguous()
        if rows.ndim == 3:
            targets = targets.masked_fill(rows[:, 1:, 1] == 0, IGNORED)
        documents = (tokens == bos).cumsum(1) if isolate else None
        return cls(tokens, targets, documents)


class TextEncoder:
    """Texts to tokens, without those that are held out (or these alone).

    Args:
        encoding: The vocabulary.
        hold_out: The share of passages that is held out.
        held: Whether to encode what is held out, and not the rest.
        threads: The most threads; by default all of the native core.
    """

    def __init__(
        self,
        encoding: Encoding,
        *,
        hold_out: float = 0.0,
        held: bool = False,
        threads: int | None = None,
    ) -> None:
        if not 0 <= hold_out < 1:
            raise ArgumentError(f"`hold_out` is {hold_out}; choose a share from 0 to below 1")
        self.encoding, self.threads = encoding, threads
        self._most, self._held = int(hold_out * _PARTS), held

    def __call__(self, texts: Sequence[Any]) -> list[NDArray[np.integer]]:
        """Return the tokens of every passage that is wanted."""
        wanted = [
            each
            for text in texts
            for each in passages(text)
            if self._is_held(each) == self._held
        ]
        if not wanted:
            return []
        flat = self.encoding.encode_flat(
            wanted, num_threads=self.threads, disallowed_special=()
        )
        return np.split(flat.tokens.astype(np.int32), flat.offsets[1:-1])

    def _is_held(self, passage: str) -> bool:
        if not self._most:
            return False
        digest = hashlib.blake2b(passage.encode(errors="replace"), digest_size=4).digest()
        return int.from_bytes(digest, "little") < self._most


def passages(text: object) -> Iterator[str]:
    r"""Yield a text in parts that end with a paragraph, or whole if it is short.

    Example:
        >>> [len(each) for each in passages("word " * 2000 + "\n\n" + "more " * 2000)]
        [10002, 10000]
    """
    if not isinstance(text, str):
        raise DamagedError(
            f"a document is {str(text)[:60]!r}, a {type(text).__name__}; expected text: choose "
            "another column"
        )
    while len(text) > _PASSAGE:
        at = text.rfind("\n\n", 1, _PASSAGE) + 2
        if at < 3:
            at = text.rfind("\n", 1, _PASSAGE) + 1 or _PASSAGE
        yield text[:at]
        text = text[at:]
    if text.strip():
        yield text


class TextBatches:
    """Batches of tokens for training, resumable after any batch; a `BatchStream`.

    Args:
        shards: The documents.
        encode: Turns documents into sequences, such as a `TextEncoder`; sequences of shape
            `[n, 2]` say for each token whether it counts.
        encoding: The vocabulary.
        rows: Rows of a batch, on this rank.
        context: Tokens of a row.
        isolate: Whether tokens see those of their own document alone.
        rank: Which rank this is.
        ranks: How many ranks share the documents.
        seed: The seed of the shuffle buffer.
        rest: `"keep"` packs what is cut off to fill a row as another sequence, `"drop"` loses
            it.
        counts: Whether sequences have the shape `[n, 2]`.
        epochs: How often to read everything; None never ends.
    """

    def __init__(
        self,
        shards: Shards,
        encode: Callable[[list[Any]], Sequence[Any]],
        encoding: Encoding,
        *,
        rows: int,
        context: int,
        isolate: bool = False,
        rank: int = 0,
        ranks: int = 1,
        seed: int = 0,
        rest: Any = "keep",
        counts: bool = False,
        epochs: int | None = None,
    ) -> None:
        self._bos, self._isolate, self._ranks = beginning(encoding), isolate, ranks
        self._inner = PackedBatches(
            shards,
            encode,
            batch=rows,
            length=context + 1,
            start=[[self._bos, 0]] if counts else [self._bos],
            shuffle=_SHUFFLED,
            waiting=_WAITING,
            rest=rest,
            seed=seed,
            rank=rank,
            ranks=ranks,
            epochs=epochs,
        )

    @property
    def counters(self) -> Counters:
        """Counts of what was read and packed so far."""
        return self._inner.counters

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> TokenBatch:
        return TokenBatch.of(next(self._inner), self._bos, isolate=self._isolate)

    def state(self) -> dict[str, Any]:
        """Return where the stream is, as JSON."""
        return self._inner.state()

    def load(self, state: Mapping[str, Any]) -> None:
        """Go to where `state` was called."""
        self._inner.load(state)

    def close(self) -> None:
        """Stop reading ahead."""
        self._inner.close()


class HeldOutRows:
    """Rows for evaluation, as `Evaluation` takes them.

    Args:
        rows: Tokens (rows, context + 1), or with a channel that says which of them count.
        bos: The token that begins a document.
        size: Rows of a batch.
        isolate: Whether tokens see those of their own document alone.
    """

    def __init__(self, rows: Tensor, bos: int, size: int, *, isolate: bool = False) -> None:
        self.rows, self._bos, self._size, self._isolate = rows, bos, size, isolate

    def __len__(self) -> int:
        return (len(self.rows) + self._size - 1) // self._size

    def batch(self, index: int, rank: int = 0, ranks: int = 1) -> TokenBatch:
        """Return a batch, or the part of a rank."""
        part = self.rows[index * self._size : (index + 1) * self._size][rank::ranks]
        return TokenBatch.of(part, self._bos, isolate=self._isolate)


def held_out_rows(
    shards: Shards,
    encode: Callable[[list[Any]], Sequence[Any]],
    encoding: Encoding,
    *,
    context: int,
    most: int,
) -> Tensor:
    """Pack passages into rows that say for each token whether it counts.

    Those of the text do, what begins a document and what pads the last row do not: so the
    loss is that of the text alone.

    Args:
        shards: All documents.
        encode: Encodes what is held out, such as a `TextEncoder`.
        encoding: The vocabulary.
        context: Tokens of a row; rows have one more.
        most: Enough rows.

    Returns:
        Of shape (rows, context + 1, 2); no row if nothing is held out.
    """
    start = np.array([[beginning(encoding), 0]], np.int32)
    packer = Packer(context + 1, start=start, waiting=_WAITING)
    found = [
        row for _, row in zip(range(most), packer.rows(_counted(shards, encode)), strict=False)
    ]
    if len(found) < most and packer.state:
        # Less than a row is left.
        last = np.concatenate(packer.state)
        found.append(np.concatenate([last, start.repeat(context + 1 - len(last), 0)]))
    rows = np.stack(found) if found else np.zeros((0, context + 1, 2))
    return torch.from_numpy(rows).to(torch.int64)


def _counted(
    shards: Shards, encode: Callable[[list[Any]], Sequence[Any]]
) -> Iterator[NDArray[np.integer]]:
    for document in shards.read(epochs=1):
        for each in encode([document.text]):
            tokens = np.asarray(each, np.int32)
            yield tokens if tokens.ndim == 2 else np.stack([tokens, np.ones_like(tokens)], 1)
