"""Encodings by name."""

import functools
import threading
from pathlib import Path
from types import MappingProxyType

from hotgrid.errors import ArgumentError, near

from ._encoding import Encoding
from ._files import read_vocabulary
from ._models import encoding_name_for_model
from ._patterns import CL100K, GPT2, O200K

_END = "<|endoftext|>"
_FILLING = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
_END_OF_PROMPT = "<|endofprompt|>"
_BUILDING = threading.Lock()

DEFAULT_ENCODING = "hotgrid_32k"
"""The encoding that comes with hotgrid: 32,768 tokens, part of the package, no download."""


def _harmony() -> dict[str, int]:
    """The special tokens of o200k_harmony: a few with a name, the others reserved."""
    named = {
        "<|startoftext|>": 199998,
        _END: 199999,
        "<|return|>": 200002,
        "<|constrain|>": 200003,
        "<|channel|>": 200005,
        "<|start|>": 200006,
        "<|end|>": 200007,
        "<|message|>": 200008,
        "<|call|>": 200012,
    }
    taken = set(named.values())
    reserved = {
        f"<|reserved_{token}|>": token for token in range(200000, 201088) if token not in taken
    }
    return {_END: 199999, _END_OF_PROMPT: 200018, **named, **reserved}


def _numbered(names: tuple[str, ...], first: int) -> dict[str, int]:
    return {name: first + place for place, name in enumerate(names)}


# Name: file of ranks, pattern, special tokens.
_ENCODINGS = MappingProxyType(
    {
        "gpt2": ("r50k_base", GPT2, {_END: 50256}),
        "r50k_base": ("r50k_base", GPT2, {_END: 50256}),
        "p50k_base": ("p50k_base", GPT2, {_END: 50256}),
        "p50k_edit": ("p50k_base", GPT2, {_END: 50256, **_numbered(_FILLING, 50281)}),
        "cl100k_base": (
            "cl100k_base",
            CL100K,
            {_END: 100257, **_numbered(_FILLING, 100258), _END_OF_PROMPT: 100276},
        ),
        "o200k_base": ("o200k_base", O200K, {_END: 199999, _END_OF_PROMPT: 200018}),
        "o200k_harmony": ("o200k_base", O200K, _harmony()),
    }
)

# Name: pattern, special tokens. The reserved ones are for future models.
_EMBEDDED = MappingProxyType(
    {
        DEFAULT_ENCODING: (
            O200K,
            _numbered(
                (
                    _END,
                    *_FILLING,
                    _END_OF_PROMPT,
                    *(f"<|reserved_{place}|>" for place in range(11)),
                ),
                32752,
            ),
        ),
    }
)


def get_encoding(
    encoding_name: str = DEFAULT_ENCODING, *, vocabulary: str | Path | None = None
) -> Encoding:
    """An encoding by its name: hotgrid's own, or one of OpenAI's.

    `hotgrid_32k` is part of hotgrid. The others need a file of ranks. It is looked up at
    `vocabulary`, in the folder `HOTGRID_VOCAB_DIR`, in tiktoken's cache and in hotgrid's, and
    otherwise downloaded and kept. Its sha256 is checked in any case.

    Args:
        encoding_name: One of `list_encoding_names()`.
        vocabulary: The file of ranks, or a folder that has it.

    Raises:
        ArgumentError: There is no encoding of that name, or `vocabulary` was given for the
            one that needs none.
        DamagedError: A file that was found is not the one it is named for.
        MissingPartError: The file was not found and cannot be downloaded.

    Example:
        >>> try:
        ...     get_encoding("cl100k")
        ... except ValueError as error:
        ...     print(str(error).splitlines()[0])
        there is no encoding 'cl100k'; did you mean `cl100k_base`?
    """
    if not isinstance(encoding_name, str):
        raise ArgumentError(
            f"`encoding_name` must be a str, got {encoding_name!r}; "
            f"there are {', '.join(list_encoding_names())}"
        )
    if encoding_name not in (names := list_encoding_names()):
        hint = near(encoding_name, names) or "."
        raise ArgumentError(
            f"there is no encoding {encoding_name!r}{hint}\nThere are {', '.join(names)}."
        )
    if vocabulary is not None:
        if encoding_name in _EMBEDDED:
            raise ArgumentError(
                f"{encoding_name!r} is part of hotgrid and takes no `vocabulary`; "
                "`load_tiktoken` reads a file of your own"
            )
        return _built(encoding_name, Path(vocabulary))
    with _BUILDING:
        return _kept(encoding_name)


def list_encoding_names() -> list[str]:
    """The names that `get_encoding` knows.

    Example:
        >>> "cl100k_base" in list_encoding_names()
        True
    """
    return [*_EMBEDDED, *_ENCODINGS]


def encoding_for_model(model_name: str) -> Encoding:
    """The encoding that an OpenAI model uses.

    Args:
        model_name: For example `gpt-4o`.

    Raises:
        KeyError: The model is unknown.
        DamagedError: A file that was found is not the one it is named for.
        MissingPartError: The file of ranks was not found and cannot be downloaded.

    Example:
        >>> try:
        ...     encoding_for_model("gtp-4o")
        ... except KeyError as error:
        ...     print("Did you mean 'gpt-4o'?" in str(error))
        True
    """
    return get_encoding(encoding_name_for_model(model_name))


@functools.cache
def _kept(name: str) -> Encoding:
    encoding = _built(name, None)
    encoding._getter = get_encoding
    return encoding


def _embedded_file(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.tiktoken.gz")


def _built(name: str, place: Path | None) -> Encoding:
    if name in _EMBEDDED:
        import zlib

        pattern, specials = _EMBEDDED[name]
        data = zlib.decompress(_embedded_file(name).read_bytes(), wbits=31)
        return Encoding.from_rank_file(name, data, pat_str=pattern, special_tokens=specials)
    ranks, pattern, specials = _ENCODINGS[name]
    return Encoding.from_rank_file(
        name, read_vocabulary(ranks, place), pat_str=pattern, special_tokens=specials
    )
