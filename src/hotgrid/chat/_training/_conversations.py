"""Conversations from JSON lines, as tokens of which replies count."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotgrid.chat._template import ChatMessage, render
from hotgrid.data import Shards
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.tokens import Encoding

_PARTS = 1 << 32


def conversation(row: Any) -> list[ChatMessage] | str:
    """Return the messages of a row, or its text.

    A row has `messages`, or `question` and `answer`, or `text`.

    Raises:
        DamagedError: It has none of them, or a message is not one.

    Example:
        >>> conversation({"question": "2 + 2?", "answer": "4"})[1]
        ChatMessage(role='assistant', content='4')
    """
    shown = json.dumps(row, ensure_ascii=False, default=str)[:120]
    if not isinstance(row, dict):
        raise DamagedError(f"a conversation is a JSON object, got {shown}")
    if isinstance(row.get("messages"), list):
        try:
            found = [
                ChatMessage(each["role"], text_of(each, "content")) for each in row["messages"]
            ]
        except (KeyError, TypeError, ArgumentError) as problem:
            raise DamagedError(
                f"a message needs `role` and `content`: {problem}; in {shown}"
            ) from None
        if not any(message.role == "assistant" for message in found):
            raise DamagedError(f"a conversation has no reply to learn from: {shown}")
        if any(message.role == "system" for message in found[1:]):
            raise DamagedError(f"a system message must be the first: {shown}")
        return found
    if "question" in row and "answer" in row:
        return [
            ChatMessage("user", text_of(row, "question")),
            ChatMessage("assistant", text_of(row, "answer")),
        ]
    if isinstance(row.get("text"), str):
        return row["text"]
    raise DamagedError(
        f"a row has neither `messages`, nor `question` and `answer`, nor `text`: {shown}"
    )


def text_of(row: dict[str, Any], name: str) -> str:
    """Return a field of a row that is a text or a number, as text.

    Raises:
        DamagedError: It is something else, such as null.
    """
    value = row[name]
    if isinstance(value, str):
        return value
    if type(value) in (int, float):
        return str(value)
    shown = json.dumps(row, ensure_ascii=False, default=str)[:120]
    raise DamagedError(f"`{name}` of a row is {str(value)[:60]!r}, not a text: {shown}")


class ConversationEncoder:
    """Rows to tokens, and for each token whether it counts.

    Args:
        encoding: The vocabulary.
        hold_out: The share of rows that is held out.
        held: Whether to encode what is held out, and not the rest.
        most: The most tokens of a sequence. Longer texts become several; of a longer
            conversation the beginning stays, if a part of a reply is in it.

    Attributes:
        skipped: How many conversations had no reply in their first `most` tokens.
    """

    def __init__(
        self,
        encoding: Encoding,
        *,
        hold_out: float = 0.0,
        held: bool = False,
        most: int | None = None,
    ) -> None:
        if not 0 <= hold_out < 1:
            raise ArgumentError(f"`hold_out` is {hold_out}; choose a share from 0 to below 1")
        if most is not None and most < 1:
            raise ArgumentError(f"`most` must be at least 1, got {most}")
        self.encoding, self._share, self._held = encoding, int(hold_out * _PARTS), held
        self._most, self.skipped = most or 1 << 62, 0

    def __call__(self, rows: Sequence[Any]) -> list[NDArray[np.integer]]:
        """Return arrays of shape `[n, 2]`, without the tokens that begin them."""
        wanted = (row for row in rows if self._is_held(row) == self._held)
        return [each for row in wanted for each in self._encoded(row)]

    def _encoded(self, row: Any) -> list[NDArray[np.integer]]:
        found = conversation(row)
        if isinstance(found, str):
            tokens = np.asarray(self.encoding.encode_ordinary(found), np.int32)
            whole = np.stack([tokens, np.ones_like(tokens)], 1)
            starts = range(0, max(1, len(whole)), min(self._most, max(1, len(whole))))
            return [whole[start : start + self._most] for start in starts]
        numbers, counts = render(self.encoding, found, reply=False)
        pair = [np.asarray(numbers[1:], np.int32), np.asarray(counts[1:], np.int32)]
        kept = np.stack(pair, 1)[: self._most]
        if not kept[:, 1].any():
            # A row of it alone would have no loss.
            self.skipped += 1
            return []
        return [kept]

    def _is_held(self, row: Any) -> bool:
        if not self._share:
            return False
        text = json.dumps(row, sort_keys=True, default=str).encode()
        number = int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "little")
        return number < self._share


@dataclass(frozen=True)
class ConversationData:
    """Conversations to tune with.

    Args:
        paths: Files of JSON lines or parquet, folders and globs. Several are mixed.
        hold_out: The share of rows that is held out for evaluation.
    """

    paths: Sequence[str | Path]
    hold_out: float = 0.02

    def shards(self, *, seed: int | None = None) -> Shards:
        """The rows; without a seed in their order."""
        return Shards(self.paths, column=None, seed=seed or 0, shuffle=seed is not None)

    def tokens(self, encoding: Encoding, context: int | None = None) -> tuple[int, int]:
        """How many tokens there are to learn from, and how many of them count.

        Args:
            encoding: The vocabulary.
            context: Tokens of a row; what does not fit into one is not counted.

        Raises:
            ArgumentError: There is no conversation, or no reply that begins within a row.
            DamagedError: A row is not a conversation.
        """
        return survey(self, encoding, context)[:2]


def survey(
    data: ConversationData, encoding: Encoding, context: int | None
) -> tuple[int, int, int]:
    """Return `ConversationData.tokens`, and how many conversations are skipped.

    Raises:
        ArgumentError: There is no conversation, or no reply that begins within a row.
        DamagedError: A row is not a conversation.
    """
    encode = ConversationEncoder(encoding, hold_out=data.hold_out, most=context)
    total = counted = 0
    for document in data.shards().read(epochs=1):
        for each in encode([document.text]):
            total += len(each) + 1
            counted += int(each[:, 1].sum())
    place = f"`{data.paths[0]}`" + (
        f" and {len(data.paths) - 1} more" if len(data.paths) > 1 else ""
    )
    if not counted and encode.skipped:
        raise ArgumentError(
            f"no reply in {place} begins within {context} tokens: choose longer rows with "
            "`context` (--context)"
        )
    if not counted:
        raise ArgumentError(f"there is nothing to learn from in {place}")
    return total, counted, encode.skipped
