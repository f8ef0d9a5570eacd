"""Texts and tokens that come in parts."""

import codecs
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from hotgrid.errors import ArgumentError

from ._normal_form import NormalForm, repaired_parts
from ._specials import refuse_special, repaired

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_CHARACTERS = 1 << 18


def encode(
    texts: Any, source: Iterable[str] | Path | TextIO, allowed: Any, disallowed: Any
) -> "Iterator[npt.NDArray[np.uint32]]":
    """Tokens of a text that comes in parts; `texts` encodes them."""
    if isinstance(texts, NormalForm):
        parts = repaired_parts(_joined(_parts(source)))
        found = texts.encode_stream(parts, allowed, disallowed)
        yield from (tokens for tokens in found if len(tokens))
        return
    # What may begin a special token is held back until its end is known.
    finders = [finder for finder in (allowed, disallowed) if finder is not None]
    keep = max((finder.longest for finder in finders), default=1)
    held, enough = bytearray(), 0
    for part in _grown(_parts(source)):
        held += part
        if len(held) < enough:
            continue
        whole = bytes(held)
        _check(whole, disallowed)
        tokens, covered = texts.encode_prefix(whole, allowed, keep)
        del held[:covered]
        # If there is no place to cut, look again only when there is twice as much.
        enough = 0 if covered else 2 * len(held)
        if len(tokens):
            yield tokens
    _check(bytes(held), disallowed)
    rest = texts.encode_array(held.decode(), allowed)
    if len(rest):
        yield rest


def decode(
    token_bytes: Callable[[int], bytes], tokens: Iterable[int], errors: str
) -> Iterator[str]:
    """Text of tokens as they arrive; incomplete characters are held back."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    for token in tokens:
        if text := decoder.decode(token_bytes(token)):
            yield text
    if text := decoder.decode(b"", final=True):
        yield text


def _check(held: bytes, disallowed: Any) -> None:
    if disallowed is not None and (found := disallowed.first_in(held.decode())) is not None:
        refuse_special(found)


def _parts(source: Iterable[str] | Path | TextIO) -> Iterator[str]:
    if isinstance(source, str):
        raise TypeError("`source` must be parts of a text or a Path, got one str; write [text]")
    if isinstance(source, Path):
        try:
            with source.open(encoding="utf-8", newline="") as file:
                while part := file.read(_CHARACTERS):
                    yield part
        except UnicodeDecodeError as problem:
            raise ArgumentError(f"`{source}` is not UTF-8: {problem}") from None
        return
    for part in source:
        if not isinstance(part, str):
            raise TypeError(f"expected a text (str), got {type(part).__name__}")
        yield part


def _joined(parts: Iterable[str]) -> Iterator[str]:
    """Parts that are large enough to be worth a look; none is empty."""
    waiting: list[str] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= _CHARACTERS:
            yield "".join(waiting)
            waiting, size = [], 0
    if size:
        yield "".join(waiting)


def _grown(parts: Iterable[str]) -> Iterator[bytes]:
    """Parts as UTF-8, short ones put together; surrogate pairs may come in two parts."""
    half = ""
    for part in _joined(parts):
        whole = half + part
        half = whole[-1] if "\ud800" <= whole[-1] <= "\udbff" else ""
        if len(whole) > len(half):
            yield _utf8(whole[: len(whole) - len(half)])
    if half:
        yield _utf8(half)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return repaired(text).encode()
