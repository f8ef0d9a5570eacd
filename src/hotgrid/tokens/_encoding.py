"""`Encoding`: texts to tokens and back, with tiktoken's interface and a few more methods."""

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias, TypeVar

from hotgrid.errors import ArgumentError

from . import _batches, _streams, _unstable
from ._batches import FlatBatch, PaddedBatch
from ._specials import Allowed, Disallowed, check_text, check_texts, repaired, repaired_places
from ._vocabulary import Vocabulary, thread_count

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Tokens: TypeAlias = npt.NDArray[np.uint32]

T = TypeVar("T")
_NO_LIMIT = 2**63 - 1
_NOTHING: frozenset[str] = frozenset()


class Encoding(Vocabulary):
    r"""A vocabulary, a pattern and special tokens: everything to encode and decode texts.

    A drop-in for `tiktoken.Encoding`, token for token. `get_encoding` makes those of OpenAI.

    Args:
        name: What to call it.
        pat_str: A regular expression that cuts texts into pieces; no token crosses one. The
            patterns of GPT-2, cl100k, o200k, Llama 3 and Qwen 2 have a fast lexer, any other
            goes through the `regex` library, read as tiktoken reads it. Also the name of such
            a pattern (`"gpt2"`, `"cl100k"`, `"llama3"`, `"qwen2"`, `"o200k"`) or of an
            encoding that has it.
        mergeable_ranks: Tokens and their ranks, which are also the order of merging.
        special_tokens: Strings that are tokens of their own, and their numbers.
        explicit_n_vocab: How many tokens there must be, numbered without a gap.

    Raises:
        ArgumentError: The ranks, the special tokens or the pattern cannot be used.
        OverflowError: A token's number is below 0 or needs more than 32 bits.
        TypeError: A token's number is not an int, or the pattern is not a str.
        AssertionError: There are not `explicit_n_vocab` tokens.

    Example:
        >>> ranks = {bytes([byte]): byte for byte in range(256)} | {b"he": 256, b"hello": 257}
        >>> enc = Encoding(
        ...     "tiny",
        ...     pat_str=r"\w+|\W+",
        ...     mergeable_ranks=ranks,
        ...     special_tokens={"<|end|>": 258},
        ... )
        >>> enc.encode("hello he<|end|>", allowed_special="all")
        [257, 32, 256, 258]
        >>> enc.decode([257, 32, 256, 258])
        'hello he<|end|>'
        >>> enc.count("hello he")
        3
    """

    def encode_ordinary(self, text: str) -> list[int]:
        """The tokens of a text without special tokens."""
        try:
            return self._texts.encode(text, None)
        except UnicodeEncodeError:
            return self._texts.encode(repaired(text), None)

    def encode(
        self,
        text: str,
        *,
        allowed_special: Allowed = _NOTHING,
        disallowed_special: Disallowed = "all",
    ) -> list[int]:
        """The tokens of a text.

        Special tokens control a model, so untrusted text must not contain them: by default
        such text is refused.

        Args:
            text: The text. Lone surrogates count as U+FFFD.
            allowed_special: Special tokens that become one token each; "all" for every one.
            disallowed_special: Strings that must not occur; "all" for every special token that
                is not allowed, `()` or None to take them for ordinary text.

        Raises:
            ArgumentError: A string that is not allowed occurs.
        """
        allowed, disallowed = self._specials.resolve(allowed_special, disallowed_special)
        check_text(text, disallowed)
        try:
            return self._texts.encode(text, allowed)
        except UnicodeEncodeError:
            return self._texts.encode(repaired(text), allowed)

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: Allowed = _NOTHING,
        disallowed_special: Disallowed = "all",
    ) -> "Tokens":
        """The tokens of a text as an array `uint32[tokens]` that cannot be written to.

        Raises:
            ArgumentError: A string that is not allowed occurs; see `encode`.
            UnicodeEncodeError: The text has lone surrogates.
        """
        allowed, disallowed = self._specials.resolve(allowed_special, disallowed_special)
        check_text(text, disallowed)
        return self._texts.encode_array(text, allowed)

    def encode_ordinary_batch(
        self, text: Iterable[str], *, num_threads: int | None = 8
    ) -> list[list[int]]:
        """The tokens of many texts without special tokens."""
        return self.encode_batch(text, num_threads=num_threads, disallowed_special=())

    def encode_batch(
        self,
        text: Iterable[str],
        *,
        num_threads: int | None = 8,
        allowed_special: Allowed = _NOTHING,
        disallowed_special: Disallowed = "all",
    ) -> list[list[int]]:
        """The tokens of many texts, a list for each.

        Args:
            text: The texts.
            num_threads: The most threads to use; never more than the native core has, and as
                many for None.
            allowed_special: See `encode`.
            disallowed_special: See `encode`.

        Raises:
            ArgumentError: A string that is not allowed occurs.
        """
        threads = thread_count(num_threads)
        return self._encode_many(
            list(text),
            allowed_special,
            disallowed_special,
            lambda texts, allowed: self._texts.encode_batch(texts, allowed, threads),
        )

    def encode_flat(
        self,
        texts: Sequence[str],
        *,
        num_threads: int | None = None,
        allowed_special: Allowed = _NOTHING,
        disallowed_special: Disallowed = "all",
    ) -> FlatBatch:
        """The tokens of many texts in one array: by far the fastest way.

        Args:
            texts: The texts. Long ones are cut and shared between threads.
            num_threads: The most threads to use; by default all of the native core.
            allowed_special: See `encode`.
            disallowed_special: See `encode`.

        Returns:
            `tokens` is `uint32[tokens]`, `offsets` is `int64[texts + 1]`: text `i` has the
            tokens `tokens[offsets[i]:offsets[i + 1]]`.

        Raises:
            ArgumentError: A string that is not allowed occurs, or `num_threads` is below 1.
        """
        if isinstance(texts, str):
            raise TypeError("`texts` must be a list of str, got one str; write [text]")
        if not isinstance(texts, Iterable):
            raise TypeError(f"`texts` must be a list of str, got {type(texts).__name__}")
        threads = thread_count(num_threads)
        return self._encode_many(
            list(texts),
            allowed_special,
            disallowed_special,
            lambda texts, allowed: FlatBatch(*self._texts.encode_flat(texts, allowed, threads)),
        )

    def encode_padded(
        self,
        texts: Sequence[str],
        *,
        pad_token: int,
        length: int | None = None,
        side: Literal["left", "right"] = "right",
        num_threads: int | None = None,
        allowed_special: Allowed = _NOTHING,
        disallowed_special: Disallowed = "all",
    ) -> PaddedBatch:
        """The tokens of many texts as the rows of one array, padded to the same length.

        Args:
            texts: The texts.
            pad_token: What short rows are padded with.
            length: Tokens in a row, by default as many as the longest text has; of longer
                texts the end is lost.
            side: Which side is padded.
            num_threads: The most threads to use; by default all of the native core.
            allowed_special: See `encode`.
            disallowed_special: See `encode`.

        Returns:
            `tokens` is `uint32[texts, length]`, `lengths` is `int64[texts]`: how many tokens
            of each row are not padding.

        Raises:
            ArgumentError: A string that is not allowed occurs, or an argument is out of range.
        """
        flat = self.encode_flat(
            texts,
            num_threads=num_threads,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
        )
        return _batches.padded(flat, pad_token, length, side)

    def encode_with_offsets(
        self,
        text: str,
        *,
        unit: Literal["char", "byte"] = "char",
        allowed_special: Allowed = _NOTHING,
        disallowed_special: Disallowed = "all",
    ) -> tuple[list[int], list[int]]:
        """The tokens of a text, and where each starts in it.

        An encoding that normalises texts (see `load_huggingface`) counts in the normalised one.

        Args:
            text: The text. Lone surrogates count as U+FFFD.
            unit: `char` counts characters of `text` (a token that starts inside one starts
                where it does; a pair of surrogates is two), `byte` counts bytes of UTF-8.
            allowed_special: See `encode`.
            disallowed_special: See `encode`.

        Raises:
            ArgumentError: A string that is not allowed occurs, or there is no such unit.
        """
        if unit not in ("char", "byte"):
            raise ArgumentError(f"`unit` must be 'char' or 'byte', got {unit!r}")
        in_bytes = unit == "byte"
        allowed, disallowed = self._specials.resolve(allowed_special, disallowed_special)
        check_text(text, disallowed)
        try:
            return self._with_starts(text, allowed, in_bytes)
        except UnicodeEncodeError:
            tokens, starts = self._with_starts(repaired(text), allowed, in_bytes)
            if in_bytes or self._normalises:
                return tokens, starts
            places = repaired_places(text)
            return tokens, [places[start] for start in starts]

    def _with_starts(
        self, text: str, allowed: Any, in_bytes: bool
    ) -> tuple[list[int], list[int]]:
        tokens = self._texts.encode(text, allowed)
        starts = self._core.offsets(tokens, in_bytes=in_bytes)
        if self._texts is self._core:
            return tokens, starts
        return tokens, self._texts.starts(text, allowed, starts, in_bytes)

    def encode_with_unstable(
        self,
        text: str,
        *,
        allowed_special: Allowed = _NOTHING,
        disallowed_special: Disallowed = "all",
    ) -> tuple[list[int], list[list[int]]]:
        """The tokens that stay whatever text follows, and what may follow them.

        By tiktoken's rule: the last piece and the blanks around it are open. An encoding that
        normalises texts (see `load_huggingface`) leaves open all that later text can
        change, and what is said here of the text holds for the normalised one.

        Returns:
            The stable tokens, which cover a first part of the text, and sequences of tokens
            each of which begins with the rest of the text, in no order.

        Raises:
            ArgumentError: A string that is not allowed occurs; see `encode`.
            UnicodeEncodeError: The text has lone surrogates.
        """
        allowed, disallowed = self._specials.resolve(allowed_special, disallowed_special)
        check_text(text, disallowed)
        return _unstable.encode(self, text, allowed)

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """The number of one token, special or not.

        Raises:
            KeyError: It is not a token.
        """
        token = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
        if not isinstance(token, bytes):
            raise TypeError(f"expected str or bytes, got {type(token).__name__}")
        rank = self._core.rank_of(token)
        if rank is None:
            rank = self._special_tokens.get(token.decode(errors="surrogateescape"))
        if rank is None:
            raise KeyError(token)
        return rank

    def encode_stream(
        self,
        source: Iterable[str] | Path | TextIO,
        *,
        allowed_special: Allowed = _NOTHING,
        disallowed_special: Disallowed = "all",
    ) -> "Iterator[Tokens]":
        """The tokens of a text that comes in parts, with little memory.

        The parts are one text: how it was cut does not matter. Text is held back until a
        place where it can be cut whatever follows, which in common text is the next word.

        Args:
            source: Parts of a text, a path of a UTF-8 file, or an open file.
            allowed_special: See `encode`.
            disallowed_special: See `encode`.

        Yields:
            Arrays `uint32[tokens]`.

        Raises:
            ArgumentError: A string that is not allowed occurs, the file is not UTF-8, or the
                pattern has no lexer.
        """
        finders = self._specials.resolve(allowed_special, disallowed_special)
        return _streams.encode(self._texts, source, *finders)

    def count(
        self,
        text: str,
        *,
        allowed_special: Allowed = _NOTHING,
        disallowed_special: Disallowed = "all",
    ) -> int:
        """How many tokens `encode` would return, without creating them."""
        counted = self.count_till_limit(
            text,
            _NO_LIMIT,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
        )
        return counted or 0

    def count_till_limit(
        self,
        text: str,
        limit: int,
        *,
        allowed_special: Allowed = _NOTHING,
        disallowed_special: Disallowed = "all",
    ) -> int | None:
        """How many tokens a text has, or None as soon as there are more than `limit`.

        Raises:
            ArgumentError: A string that is not allowed occurs, or `limit` is negative.
            TypeError: `limit` is not a whole number.
        """
        if type(limit) is not int or not 0 <= limit <= _NO_LIMIT:
            limit = _limit(limit)
        allowed, disallowed = self._specials.resolve(allowed_special, disallowed_special)
        check_text(text, disallowed)
        try:
            counted = self._texts.count(text, allowed, limit)
        except UnicodeEncodeError:
            counted = self._texts.count(repaired(text), allowed, limit)
        return counted if counted <= limit else None

    def split(self, text: str) -> list[str]:
        """The pieces that the pattern cuts a text into; lone surrogates count as U+FFFD."""
        try:
            if self._texts is not self._core:  # the `regex` library takes surrogates
                str.encode(text)
            return self._texts.split(text)
        except UnicodeEncodeError:
            return self._texts.split(repaired(text))

    def _encode_many(
        self,
        texts: list[str],
        allowed_special: Allowed,
        disallowed_special: Disallowed,
        encode: "Callable[[list[str], Any], T]",
    ) -> "T":
        allowed, disallowed = self._specials.resolve(allowed_special, disallowed_special)
        check_texts(texts, disallowed)
        try:
            return encode(texts, allowed)
        except UnicodeEncodeError:
            return encode([repaired(text) for text in texts], allowed)

    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]:
        piece = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
        return self._core.encode_piece(piece)

    def _merge_single_piece(self, piece: bytes) -> list[int]:
        return self._core.encode_piece(piece, merged=True)

    def _encode_only_native_bpe(self, text: str) -> list[int]:
        return self._core.encode_pieces(self._texts.split(text), as_array=False)

    def _encode_bytes(self, text: bytes) -> list[int]:
        if not isinstance(text, bytes):
            raise TypeError(f"expected bytes, got {type(text).__name__}")
        try:
            return self.encode_ordinary(text.decode())
        except UnicodeDecodeError as problem:
            return _unstable.encode_bytes(self, text, valid=problem.start)


def _limit(limit: object) -> int:
    try:
        value = operator.index(limit)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise TypeError(f"`limit` must be a whole number, got {limit!r}") from None
    if value < 0:
        raise ArgumentError(f"`limit` must not be negative, got {value}")
    return min(value, _NO_LIMIT)
