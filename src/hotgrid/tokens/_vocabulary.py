"""`Vocabulary`: the tokens of an encoding, and how they become text."""

import functools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, SupportsIndex, TypeAlias

from hotgrid.errors import ArgumentError

from . import _streams
from ._normal_form import NormalForm
from ._patterns import LEXERS, RegexPieces, pattern_named
from ._plain_core import BytePairs, token_core
from ._specials import SpecialTokens

# Ranks of the left, the right and the joined token, best first; whether whole pieces win.
Merges: TypeAlias = tuple[list[tuple[int, int, int]], bool]

# What the native core can hold; one more means "no token" there.
_HIGHEST = 2**32 - 2
_MANY_THREADS = 1 << 30


class Vocabulary:
    """The half of `Encoding` that reads no text: making, decoding, copying."""

    name: str
    """The name of the encoding."""
    max_token_value: int
    """The highest token."""

    def __init__(
        self,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: dict[bytes, int],
        special_tokens: dict[str, int],
        explicit_n_vocab: int | None = None,
    ) -> None:
        pat_str = pattern_named(pat_str)
        if not mergeable_ranks:
            raise ArgumentError("`mergeable_ranks` is empty; a vocabulary needs a token")
        _check_specials(special_tokens)
        try:
            core = token_core().BytePairs.from_ranks(
                mergeable_ranks, special_tokens, LEXERS.get(pat_str)
            )
        except ValueError as problem:
            raise ArgumentError(f"`mergeable_ranks` of {name!r}: {problem}") from None
        except RuntimeError:  # a rank that is not a number of 32 bits
            _check_numbers("mergeable_ranks", mergeable_ranks)
            raise
        self._take(name, core, pat_str, special_tokens)
        self._mergeable_ranks = mergeable_ranks
        count = len(mergeable_ranks) + len(special_tokens)
        if explicit_n_vocab and not count == self.n_vocab == explicit_n_vocab:
            raise AssertionError(
                f"`explicit_n_vocab` is {explicit_n_vocab}, but {name!r} has {count} tokens "
                f"and the highest is {self.max_token_value}"
            )

    def _take(self, name: str, core: Any, pat_str: str, special_tokens: dict[str, int]) -> None:
        self.name = name
        self.max_token_value = max(core.highest, *special_tokens.values(), 0)
        self._pat_str = pat_str
        self._core = core
        self._special_tokens = special_tokens
        self._has_lexer = pat_str in LEXERS and not isinstance(core, BytePairs)
        self._texts: Any = core if self._has_lexer else RegexPieces(core, pat_str)
        self._specials = SpecialTokens(special_tokens)
        # Set by `get_encoding`: unpickling calls it with the name.
        self._getter: Callable[[str], Any] | None = None
        # Set where a list of pairs says what merges: see `load_huggingface`.
        self._merges: Merges | None = None
        self._keeps_rest = self._normalises = False

    def _keep_rest(self) -> None:
        """Treat text between the matches of the pattern as pieces, too."""
        self._texts = RegexPieces(self._core, self._pat_str, keeps_rest=True)
        self._keeps_rest = True

    def _normalise(self) -> None:
        """Put texts in Unicode's normal form C before encoding."""
        self._texts = NormalForm(self._texts, self._core)
        self._normalises = True

    @classmethod
    def _from_core(
        cls, name: str, core: Any, *, pat_str: str, special_tokens: dict[str, int]
    ) -> Self:
        """An encoding around a `BytePairs` of the native core."""
        made = cls.__new__(cls)
        made._take(name, core, pat_str, special_tokens)
        return made

    @classmethod
    def from_rank_file(
        cls, name: str, file: bytes, *, pat_str: str, special_tokens: dict[str, int]
    ) -> Self:
        """An encoding from the bytes of a `.tiktoken` file; much faster than from a dict.

        Raises:
            ArgumentError: A line is not a token and a rank, there is none, or the pattern
                cannot be used.
        """
        return cls._from_rank_file(
            name,
            file,
            f"the ranks of {name!r}",
            pat_str=pat_str,
            special_tokens=special_tokens,
        )

    @classmethod
    def _from_rank_file(
        cls,
        name: str,
        file: bytes,
        source: str,
        *,
        pat_str: str,
        special_tokens: dict[str, int],
    ) -> Self:
        """The same; errors call the file `source`."""
        pat_str = pattern_named(pat_str)
        _check_specials(special_tokens)
        try:
            core = token_core().BytePairs.from_rank_file(
                file, special_tokens, LEXERS.get(pat_str)
            )
        except ValueError as problem:
            raise ArgumentError(f"{source} cannot be read: {problem}") from None
        if not core.size:
            raise ArgumentError(f"{source} cannot be read: it has no tokens; is it complete?")
        return cls._from_core(name, core, pat_str=pat_str, special_tokens=special_tokens)

    @classmethod
    def _from_merges(
        cls,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: dict[bytes, int],
        special_tokens: dict[str, int],
        merges: Merges,
    ) -> Self:
        """An encoding where a list of pairs says what merges, as in HuggingFace's tokenizers.

        Raises:
            ArgumentError: The ranks, the merges or the pattern cannot be used.
        """
        try:
            core = token_core().BytePairs.from_merges(
                mergeable_ranks, *merges, special_tokens, LEXERS.get(pat_str)
            )
        except ValueError as problem:
            raise ArgumentError(f"the vocabulary of {name!r}: {problem}") from None
        made = cls._from_core(name, core, pat_str=pat_str, special_tokens=special_tokens)
        made._merges = merges
        return made

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """The bytes of tokens.

        Raises:
            KeyError: One is not a token.
            OverflowError: One is negative or needs more than 32 bits.
            TypeError: They are not a sequence, or one is not a whole number.
        """
        return self._core.decode(tokens)

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """The text of tokens; bytes that are not UTF-8 are treated as in `bytes.decode`."""
        return self._core.decode(tokens).decode("utf-8", errors=errors)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """The bytes of one token, special or not.

        Raises:
            KeyError: It is not a token.
        """
        try:
            return self._core.decode([token])
        except KeyError:
            raise KeyError(str(token)) from None

    def decode_tokens_bytes(self, tokens: Iterable[int]) -> list[bytes]:
        """The bytes of each token."""
        return [self.decode_single_token_bytes(token) for token in tokens]

    def decode_with_offsets(self, tokens: Sequence[int]) -> tuple[str, list[int]]:
        """The text of tokens, and the character each token starts in.

        Raises:
            UnicodeDecodeError: The bytes are not UTF-8.
        """
        try:
            text = self.decode(tokens, errors="strict")
        except TypeError:  # perhaps no sequence
            tokens = list(tokens)
            text = self.decode(tokens, errors="strict")
        return text, self._core.offsets(tokens, in_bytes=False)

    def decode_batch(
        self,
        batch: Iterable[Sequence[int]],
        *,
        errors: str = "replace",
        num_threads: int | None = 8,
    ) -> list[str]:
        """The texts of many sequences of tokens."""
        thread_count(num_threads)
        return [self.decode(tokens, errors) for tokens in batch]

    def decode_bytes_batch(
        self, batch: Iterable[Sequence[int]], *, num_threads: int | None = 8
    ) -> list[bytes]:
        """The bytes of many sequences of tokens."""
        thread_count(num_threads)
        return [self.decode_bytes(tokens) for tokens in batch]

    def decode_stream(self, tokens: Iterable[int], errors: str = "replace") -> Iterator[str]:
        """The text of tokens as they arrive, never with half a character.

        Raises:
            KeyError: One is not a token.
        """
        return _streams.decode(lambda token: self._core.decode([token]), tokens, errors)

    def token_byte_values(self) -> list[bytes]:
        """All tokens that are not special, as bytes, sorted."""
        return list(self._sorted_tokens)

    @property
    def eot_token(self) -> int:
        """The number of `<|endoftext|>`."""
        return self._special_tokens["<|endoftext|>"]

    @property
    def special_tokens_set(self) -> set[str]:
        """The special tokens."""
        return set(self._special_tokens)

    def is_special_token(self, token: int) -> bool:
        """Whether a number is a special token."""
        if not isinstance(token, int):
            raise AssertionError(f"`token` must be an int, got {token!r}")
        return token in self._special_values

    @property
    def n_vocab(self) -> int:
        """One more than the highest token."""
        return self.max_token_value + 1

    def with_special_tokens(
        self, special_tokens: Mapping[str, int], *, name: str | None = None
    ) -> Self:
        """The same vocabulary with other special tokens.

        Args:
            special_tokens: All that it has then, and their numbers.
            name: What to call it; by default as this one.

        Raises:
            ArgumentError: A special token cannot be used.

        Example:
            >>> from hotgrid.tokens import get_encoding
            >>> enc = get_encoding().with_special_tokens({"<|stop|>": 32752})
            >>> enc.encode("a<|stop|>", allowed_special="all")[-1]
            32752
        """
        state: Any = self.__getstate__()
        made = type(self).__new__(type(self))
        made.__setstate__(
            state | {"special_tokens": dict(special_tokens), "name": name or self.name}
        )
        return made

    @functools.cached_property
    def _mergeable_ranks(self) -> dict[bytes, int]:
        return self._core.ranks()

    @functools.cached_property
    def _sorted_tokens(self) -> list[bytes]:
        return sorted(self._mergeable_ranks)

    @functools.cached_property
    def _special_values(self) -> set[int]:
        return set(self._special_tokens.values())

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self._getter is not None:
            return self._getter, (self.name,)
        return super().__reduce_ex__(protocol)

    def __getstate__(self) -> object:
        state: dict[str, Any] = {
            "name": self.name,
            "pat_str": self._pat_str,
            "mergeable_ranks": self._mergeable_ranks,
            "special_tokens": self._special_tokens,
        }
        for option in ("normalises", "keeps_rest"):
            if getattr(self, f"_{option}"):
                state[option] = True
        return state if self._merges is None else state | {"merges": self._merges}

    def __setstate__(self, value: Any) -> None:
        settings = dict(value)
        keeps_rest = settings.pop("keeps_rest", False)
        normalises = settings.pop("normalises", False)
        if "merges" in settings:
            self.__dict__ = vars(type(self)._from_merges(**settings))
        else:
            self.__init__(**settings)
        if keeps_rest:
            self._keep_rest()
        if normalises:
            self._normalise()


def thread_count(threads: int | None) -> int:
    """The number of threads to use; None means all of the native core.

    Any number above 0 is accepted, as in tiktoken; fractions are rounded up.

    Raises:
        ArgumentError: It is not above 0.
        TypeError: It is not a number.
    """
    if type(threads) is int and 0 < threads < _MANY_THREADS:  # almost always
        return threads
    if threads is None:
        return token_core().threads()
    try:
        enough = bool(threads > 0)
        count = math.ceil(min(threads, _MANY_THREADS)) if enough else 0
    except (TypeError, ValueError):
        raise TypeError(f"`num_threads` must be a number or None, got {threads!r}") from None
    if not enough:
        raise ArgumentError(f"`num_threads` must be at least 1, got {threads}")
    return count


def _check_specials(special_tokens: Mapping[str, int]) -> None:
    _check_numbers("special_tokens", special_tokens)
    for text in special_tokens:
        if not isinstance(text, str):
            raise TypeError(f"`special_tokens`: {text!r} must be a str")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ArgumentError(
                f"`special_tokens`: {text!r} has a lone surrogate, which is not text"
            ) from None


def _check_numbers(what: str, numbers: Mapping[Any, int]) -> None:
    """Refuse invalid token numbers, with tiktoken's exceptions."""
    for token, number in numbers.items():
        try:
            value = operator.index(number)
        except TypeError:
            raise TypeError(
                f"`{what}`: the number of {token!r} must be an int, got {number!r}"
            ) from None
        if 0 <= value <= _HIGHEST:
            continue
        error = ArgumentError if value == _HIGHEST + 1 else OverflowError
        raise error(
            f"`{what}`: the number of {token!r} must be in the range 0 to {_HIGHEST}, "
            f"got {value}"
        )
