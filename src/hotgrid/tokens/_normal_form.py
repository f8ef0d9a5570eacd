"""Texts in Unicode's normal form C before they are encoded, as some tokenizers ask for."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ._specials import check_text, repaired

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Characters that never combine with the one before, so a text may be cut before them:
# all below the first combining mark, and letters of scripts that are written without spaces.
_STARTS = re.compile(
    "[\x00-\u02ff\u0400-\u0482\u05d0-\u05ea\u0620-\u064a\u0904-\u0939\u0e01-\u0e30"
    "\u3041-\u3096\u30a1-\u30fa\u3400-\u9fff\uac00-\ud7a3\U0001f300-\U0001f3fa]"
)


def normal(text: str) -> str:
    """The text in normal form C; most texts already are, which is quick to check."""
    if unicodedata.is_normalized("NFC", text):
        return text
    return unicodedata.normalize("NFC", text)


class _Segments:
    """A finder of special tokens that finds none, for text from which they were cut out."""

    def __init__(self, found: list[tuple[str, int | None]]) -> None:
        self.found = found

    def segments(self, text: str) -> list[tuple[str, int | None]]:
        del text
        return self.found


class NormalForm:
    """Puts texts in normal form C and hands them to another encoder.

    Special tokens are found in the text as given; the text between them is normalised,
    each stretch by itself.
    """

    def __init__(self, texts: Any, core: Any) -> None:
        self.texts = texts
        self.core = core

    def encode(self, text: str, allowed: Any) -> list[int]:
        """The tokens of a text."""
        # Parts of a text in normal form are in normal form.
        if not isinstance(text, str) or unicodedata.is_normalized("NFC", text):
            return self.texts.encode(text, allowed)
        tokens: list[int] = []
        for stretch, special in self._stretches(text, allowed):
            tokens += self.texts.encode(stretch, None)
            if special is not None:
                tokens.append(special)
        return tokens

    def _stretches(self, text: str, allowed: Any) -> list[tuple[str, int | None]]:
        # A surrogate next to its other half is one character: first repaired, then normalised.
        str.encode(text)
        found = [(text, None)] if allowed is None else allowed.segments(text)
        return [(normal(stretch), special) for stretch, special in found]

    def starts(self, text: str, allowed: Any, joined: list[int], in_bytes: bool) -> list[int]:
        """Where tokens start in the normalised text."""
        if self.texts is self.core:
            return joined
        found = _Segments(self._stretches(text, allowed))
        return self.texts.starts(text, found, joined, in_bytes)

    def encode_array(self, text: str, allowed: Any) -> Any:
        """The tokens of a text as an array that cannot be written to."""
        import numpy as np

        if unicodedata.is_normalized("NFC", text):
            return self.texts.encode_array(text, allowed)
        tokens = np.array(self.encode(text, allowed), dtype=np.uint32)
        tokens.flags.writeable = False
        return tokens

    def encode_batch(self, texts: list[str], allowed: Any, threads: int) -> list[list[int]]:
        """The tokens of each text."""
        if (ready := self._ready(texts, allowed)) is not None:
            return self.texts.encode_batch(ready, allowed, threads)
        return [self.encode(text, allowed) for text in texts]

    def encode_flat(self, texts: list[str], allowed: Any, threads: int) -> tuple[Any, Any]:
        """The tokens of all texts, and where each begins."""
        import numpy as np

        if (ready := self._ready(texts, allowed)) is not None:
            return self.texts.encode_flat(ready, allowed, threads)
        rows = [self.encode(text, allowed) for text in texts]
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        return np.array([token for row in rows for token in row], dtype=np.uint32), offsets

    def _ready(self, texts: list[str], allowed: Any) -> list[str] | None:
        """Texts that can be encoded as they are, or None where specials must be found first."""
        if not all(isinstance(text, str) for text in texts):
            return texts
        if all(unicodedata.is_normalized("NFC", text) for text in texts):
            return texts
        if allowed is not None:
            return None
        return [self._stretches(text, None)[0][0] for text in texts]

    def count(self, text: str, allowed: Any, limit: int) -> int:
        """How many tokens a text has; it may stop counting beyond a limit."""
        if not isinstance(text, str) or unicodedata.is_normalized("NFC", text):
            return self.texts.count(text, allowed, limit)
        return len(self.encode(text, allowed))

    def split(self, text: str) -> list[str]:
        """The pieces that the pattern cuts the normalised text into."""
        return self.texts.split(normal(text))

    def settled(self, text: str) -> tuple[int, int]:
        """The size of the normalised text, and up to where its pieces stay whatever follows.

        Ahead of the last place where a text can be cut the normal form stays. The pieces do
        where all that a pattern looks at stays: the next character, two more if that is an
        apostrophe (`'re`), and a run of blanks or of letters as far as it goes.
        """
        cut = _last_start(text, len(text))
        head = normal(text[:cut])
        run = len(head)
        while run and _is_letter(head[run - 1]):
            run -= 1
        apostrophe = head.find("'", max(len(head) - 2, 0))
        seen = (len(head) if apostrophe < 0 else apostrophe) - 1
        return len(head) + len(normal(text[cut:])), min(run, len(head.rstrip()), seen)

    def encode_stream(
        self, parts: Iterable[str], allowed: Any, disallowed: Any
    ) -> "Iterator[npt.NDArray[np.uint32]]":
        """The tokens of a text that comes in parts, independent of where it was cut."""
        import numpy as np

        finders = [finder for finder in (allowed, disallowed) if finder is not None]
        keep = max((finder.longest for finder in finders), default=1)
        given, held, enough = "", bytearray(), 0
        for part in parts:
            given += part
            check_text(given, disallowed)
            for stretch, special, rest in self._whole_specials(given, allowed, keep):
                held += normal(stretch).encode()
                yield self.texts.encode_array(held.decode(), None)
                yield np.array([special], dtype=np.uint32)
                given, held, enough = rest, bytearray(), 0
            cut = _last_start(given, len(given) - keep)
            held += normal(given[:cut]).encode()
            given = given[cut:]
            if len(held) < enough:
                continue
            tokens, covered = self.texts.encode_prefix(bytes(held), None, 1)
            del held[:covered]
            enough = 0 if covered else 2 * len(held)
            yield tokens
        for stretch, special in self._stretches(given, allowed):
            held += stretch.encode()
            yield self.texts.encode_array(held.decode(), None)
            held = bytearray()
            if special is not None:
                yield np.array([special], dtype=np.uint32)

    def _whole_specials(
        self, text: str, allowed: Any, keep: int
    ) -> Iterator[tuple[str, int, str]]:
        """Text before a special token that cannot become longer, the token, and the rest."""
        at = 0
        for stretch, special in [] if allowed is None else allowed.segments(text):
            at += len(stretch)
            if special is None or at > len(text) - keep:
                return
            at += len(self.core.decode([special]).decode())
            yield stretch, special, text[at:]


def repaired_parts(parts: Iterable[str]) -> Iterator[str]:
    """Parts without surrogates; the halves of a pair may come in two parts."""
    waiting = ""
    for part in parts:
        whole = waiting + part
        half = "\ud800" <= whole[-1:] <= "\udbff"
        waiting = whole[-1] if half else ""
        yield repaired(whole[:-1] if half else whole)
    yield repaired(waiting)


def _last_start(text: str, highest: int) -> int:
    """The last place up to `highest` where a text can be cut and each part normalised."""
    for at in range(min(highest, len(text) - 1), 0, -1):
        if _STARTS.match(text, at):
            return at
    return 0


def _is_letter(character: str) -> bool:
    """Whether it is a letter or a mark, or may be one in another version of Unicode."""
    category = unicodedata.category(character)
    return category[0] in "LM" or category == "Cn"
