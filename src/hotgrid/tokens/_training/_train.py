"""`train`: learn a vocabulary from texts."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from hotgrid import _native
from hotgrid.errors import ArgumentError, MissingPartError
from hotgrid.progress import Progress
from hotgrid.tokens._encoding import Encoding
from hotgrid.tokens._patterns import CL100K, LEXERS, PATTERNS, pattern_named, splitter

from ._sources import LexerSources, RegexSources, Source

_BYTES = 256
# What the native core can hold: see native/tokens/vocabulary.hpp.
_MOST_TOKENS = 2**24 - 512
_LONGEST_TOKEN = 65535
# Seconds between two updates of the progress bar and two checks for Ctrl-C.
_SECONDS = 0.1
# More than any count can be; fits into the native core.
_NO_LIMIT = 2**62


def train(
    texts_or_files: Source | Iterable[Source],
    vocab_size: int,
    *,
    pattern: str = CL100K,
    special_tokens: Sequence[str] = ("<|endoftext|>",),
    min_frequency: int = 1,
    max_token_length: int | None = None,
    name: str = "trained",
    threads: int | None = None,
    max_words: int = 10_000_000,
    progress: bool | None = None,
) -> Encoding:
    """Learn a vocabulary from texts.

    The most frequent pair of neighbouring tokens becomes a token, again and again, from the
    256 bytes on. Among equally frequent pairs the one with the smaller left token is taken,
    then the one with the smaller right token, as HuggingFace's trainer does; the result
    depends neither on the number of threads nor on the order of texts.

    Args:
        texts_or_files: Texts (`str`, or `bytes` of UTF-8) and files of UTF-8
            (`pathlib.Path`), or one of them. Files are read in blocks. No token crosses the
            end of a text or a special token in it.
        vocab_size: How many tokens are wanted, with the 256 bytes and the special tokens.
            There are fewer if the texts have no more pairs that are frequent enough.
        pattern: The regular expression that cuts texts into words; no token crosses one.
            Also `"gpt2"`, `"cl100k"`, `"llama3"`, `"qwen2"` or `"o200k"` for theirs, or the
            name of an encoding. Others go through the `regex` library, whole files at once
            and on one thread.
        special_tokens: Strings that are tokens of their own, numbered after all others.
        min_frequency: How often a pair must occur to become a token.
        max_token_length: Bytes that a token may have at most.
        name: What to call the encoding.
        threads: The most threads to count words with; by default all of the native core.
        max_words: How many different words are kept. When there are more, the rarest are
            forgotten until half as many are left; a word takes 15 to 25 bytes for each of its
            bytes.
        progress: Whether to show a bar; by default on a terminal.

    Raises:
        ArgumentError: An argument is out of range, a file cannot be read, a text is not UTF-8,
            or there is no text.
        MissingPartError: The native core is not built; training needs it.
        TypeError: Something is neither a text nor a file, or `pattern` is not a str.

    Example:
        >>> enc = train(["low lower lowest", "new newer newest"], 270, pattern="gpt2")
        >>> enc.decode_tokens_bytes([256, 257, 258])
        [b'we', b'lo', b'ne']
        >>> enc.encode("lower")
        [257, 262]
    """
    pattern = pattern_named(pattern)
    specials = _special_names(special_tokens)
    tokens = _token_count(vocab_size, len(specials))
    _at_least("min_frequency", min_frequency, 1)
    _at_least("max_words", max_words, 1)
    if max_token_length is not None:
        _at_least("max_token_length", max_token_length, 1)
    if threads is not None:
        _at_least("threads", threads, 1)
    if not _native.available():
        raise MissingPartError(
            f"learning a vocabulary needs hotgrid's native core, and {_native.missing()}"
        )
    core = _native.core()
    finder = core.Specials(dict.fromkeys(specials, 0)) if specials else None
    cores = core.threads() if threads is None else threads
    trainer = core.TokenTrainer(
        LEXERS.get(pattern), finder, min(cores, _NO_LIMIT), min(max_words, _NO_LIMIT)
    )
    with Progress(
        "counting words", unit="bytes", note=lambda _: f"{trainer.words:,} words", show=progress
    ) as bar:
        _count(trainer, texts_or_files, pattern, finder, bar.update)
    longest = min(max_token_length or _LONGEST_TOKEN, _LONGEST_TOKEN)
    trainer.start(tokens, min(min_frequency, _NO_LIMIT), longest)
    with Progress("making tokens", tokens, show=progress) as bar:
        while trainer.run(_SECONDS):
            bar.update(trainer.size)
        bar.update(trainer.size)
    made = trainer.tokens()
    return Encoding(
        name,
        pat_str=pattern,
        mergeable_ranks={token: rank for rank, token in enumerate(made)},
        special_tokens={token: len(made) + place for place, token in enumerate(specials)},
    )


def _count(
    trainer: Any,
    texts_or_files: Source | Iterable[Source],
    pattern: str,
    finder: Any,
    report: Callable[[int], None],
) -> None:
    if pattern in LEXERS:
        counter = LexerSources(trainer, report)
    else:
        counter = RegexSources(trainer, _splitter(pattern), finder, report)
    if isinstance(texts_or_files, (str, bytes, Path)):
        texts_or_files = [texts_or_files]
    elif not isinstance(texts_or_files, Iterable):
        raise TypeError(
            "`texts_or_files` must be texts (str or bytes) and files (pathlib.Path), "
            f"got {type(texts_or_files).__name__}"
        )
    counter.add(texts_or_files)
    if not trainer.words and trainer.forgotten:
        raise ArgumentError("`max_words` is too small: no word is frequent enough to be kept")
    if not trainer.words:
        raise ArgumentError("`texts_or_files` holds no text to learn from")


def _splitter(pattern: str) -> Any:
    if not pattern:
        raise ArgumentError(
            f"`pattern` must be a regular expression or one of {', '.join(PATTERNS)}, "
            f"got {pattern!r}"
        )
    try:
        return splitter(pattern)
    except ArgumentError as problem:
        raise ArgumentError(str(problem).replace("`pat_str`", "`pattern`", 1)) from None


def _special_names(special_tokens: Sequence[str]) -> list[str]:
    if isinstance(special_tokens, str):
        raise ArgumentError(
            f"`special_tokens` must be a list of str, got one str; write [{special_tokens!r}]"
        )
    names = list(special_tokens)
    for name in names:
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"`special_tokens` must be strings, not empty, got {name!r}")
        if names.count(name) > 1:
            raise ArgumentError(f"`special_tokens` has {name!r} more than once")
    return names


def _token_count(vocab_size: int, specials: int) -> int:
    least, most = _BYTES + specials, _MOST_TOKENS + specials
    if not isinstance(vocab_size, int) or not least <= vocab_size <= most:
        raise ArgumentError(
            f"`vocab_size` must be from {least} (256 bytes and {specials} special tokens) "
            f"to {most}, got {vocab_size!r}"
        )
    return vocab_size - specials


def _at_least(name: str, value: int, least: int) -> None:
    if not isinstance(value, int) or value < least:
        raise ArgumentError(f"`{name}` must be at least {least}, got {value!r}")
