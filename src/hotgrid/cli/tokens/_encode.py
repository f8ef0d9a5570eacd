"""`hotgrid tokens encode` and `decode`: texts to tokens and back."""

import codecs
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from hotgrid.errors import ArgumentError
from hotgrid.progress import Progress

from ._choice import Choice
from ._input import Errors, Files, only, sources, token_arrays
from ._names import visible
from ._output import Format, output, read_tokens, refuse_existing, write_tokens

if TYPE_CHECKING:
    from hotgrid.tokens import Encoding

_DEFAULT = Choice()
_SUFFIXES: dict[str, Format] = {
    ".json": "json",
    ".npy": "npy",
    ".u32": "u32",
    ".txt": "text",
    ".ids": "text",
    "": "text",
}


def encode(
    *files: Files,
    choice: Choice = _DEFAULT,
    text: str | None = None,
    specials: bool = False,
    errors: Errors = "strict",
    format: Format | None = None,
    out: Path | None = None,
    force: bool = False,
) -> None:
    """Write the tokens of texts.

    Args:
        files: Files, folders or globs; standard input if there are none, or for `-`.
        choice: Which encoding.
        text: This text instead.
        specials: Treat `<|endoftext|>` and the like as special tokens; by default they are
            ordinary text.
        errors: What to do about bytes that are not UTF-8: strict refuses the file, replace
            reads them as U+FFFD; by default strict.
        format: text or json have a line for each text; npy and u32 have all tokens one after
            another, 32 bits each. By default from the suffix of --out (.txt, .ids, .json,
            .npy or .u32), and text without one.
        out: Write into this file, atomically, at the end.
        force: Replace the file if it exists.
    """
    form = format or _written_as(out)
    refuse_existing(out, force=force)
    to_terminal = out is None and sys.stdout.isatty()
    if to_terminal and form in ("npy", "u32"):
        raise ArgumentError(
            f"`--format {form}` is not for a terminal; add `--out FILE` or send it elsewhere"
        )
    found = sources(files, text)
    encoding = choice.load()
    total = sum(source.size for source in found)
    show = False if to_terminal else None
    with (
        Progress("encoding", total, unit="bytes", show=show, brief=True) as bar,
        output(out) as sink,
    ):
        texts = (
            token_arrays(encoding, source, specials=specials, errors=errors, bar=bar)
            for source in found
        )
        write_tokens(sink, texts, form)


def decode(
    file: Files = "-",
    /,
    *,
    choice: Choice = _DEFAULT,
    format: Format | None = None,
    out: Path | None = None,
    force: bool = False,
) -> None:
    """Write the text of tokens, byte for byte.

    Args:
        file: A file that encode has written; standard input if there is none, or for `-`.
        choice: Which encoding.
        format: text is whole numbers between blanks, commas or brackets, json is arrays of
            whole numbers, npy and u32 are binary. By default from the suffix of the file,
            else text.
        out: Write into this file, atomically, at the end.
        force: Replace the file if it exists.
    """
    refuse_existing(out, force=force)
    source = only((file,))
    form = format or _by_suffix(source.path)
    encoding = choice.load()
    to_terminal = out is None and sys.stdout.isatty()
    show = False if to_terminal else None
    with (
        source.open("tokens") as tokens,
        Progress("decoding", unit="bytes", show=show, brief=True) as bar,
        output(out) as sink,
    ):
        parts = _decoded(encoding, read_tokens(tokens, visible(source.name), form), bar)
        _write_text(parts, sink, replace=to_terminal)


def _written_as(out: Path | None) -> Format:
    """The format of the suffix of a new file.

    Raises:
        ArgumentError: The name has no known suffix.
    """
    if out is None or out.suffix in _SUFFIXES:
        return _by_suffix(out)
    raise ArgumentError(
        f"`--out {visible(out)}` has no suffix of a format, which may be .txt, "
        ".ids, .json, .npy or .u32; add `--format text` or another"
    )


def _by_suffix(path: Path | None) -> Format:
    return _SUFFIXES.get(path.suffix, "text") if path is not None else "text"


def _decoded(
    encoding: "Encoding", lists: Iterator[list[int]], bar: Progress
) -> Iterator[bytes]:
    for tokens in lists:
        try:
            part = encoding.decode_bytes(tokens)
        except (KeyError, OverflowError):
            wrong = next(token for token in tokens if not _is_token(encoding, token))
            raise ArgumentError(
                f"{wrong} is not a token of {encoding.name}, whose highest is "
                f"{encoding.max_token_value}; was it encoded by another?"
            ) from None
        bar.advance(len(part))
        yield part


def _is_token(encoding: "Encoding", token: int) -> bool:
    try:
        encoding.decode_single_token_bytes(token)
    except (KeyError, OverflowError):
        return False
    return True


def _write_text(parts: Iterator[bytes], sink: BinaryIO, *, replace: bool) -> None:
    """Write bytes; report those that are not UTF-8, and replace them on a terminal."""
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    shown = codecs.getincrementaldecoder("utf-8")("replace")
    right = True
    for part in parts:
        if right:
            right = _continues(decoder, part, final=False)
        sink.write(shown.decode(part).encode() if replace else part)
    if replace:
        sink.write(shown.decode(b"", final=True).encode())
    if not (right and _continues(decoder, b"", final=True)):
        sink.flush()
        done = "shown as U+FFFD" if replace else "written unchanged"
        print(f"hotgrid: some bytes are not UTF-8; {done}.", file=sys.stderr)  # noqa: T201


def _continues(decoder: codecs.IncrementalDecoder, part: bytes, *, final: bool) -> bool:
    try:
        decoder.decode(part, final=final)
    except UnicodeDecodeError:
        return False
    return True
