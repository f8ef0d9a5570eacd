"""The inputs of `hotgrid tokens`: files, folders, globs, standard input, a text."""

import codecs
import glob
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal, NoReturn

from cyclopts import CycloptsError, Parameter

from hotgrid.errors import ArgumentError, near

from ._choice import has_lexer
from ._names import named_visibly, visible

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from hotgrid.progress import Progress
    from hotgrid.tokens import Encoding

# A lone `-` is standard input, so the parser must let hyphens through.
Files = Annotated[str, Parameter(allow_leading_hyphen=True, metavar="FILE")]
Errors = Literal["strict", "replace"]

_PART = 1 << 20
_OPTIONS = (
    *("--encoding", "--vocab", "--pattern", "--text", "--specials", "--errors", "--format"),
    *("--out", "--force", "--json", "--html", "--megabytes", "--vocab-size", "--special"),
    *("--min-frequency", "--max-token-length", "--help"),
)
# After `--` the parser gives options and files alike: `-x.txt` can only be a file.
_OPTION = re.compile("--?[A-Za-z][A-Za-z-]*")


@dataclass
class Source:
    """One text: a file, standard input, or what was given on the command line.

    Attributes:
        name: Its name in messages.
        path: The file; None for others.
        text: The text, if it was given.
        named: Whether it was named itself, not found in a folder or by a glob.
        bytes: How many have been read so far.
        characters: How many those were.
    """

    name: str
    path: Path | None = None
    text: str | None = None
    named: bool = True
    bytes: int = field(default=0, init=False)
    characters: int = field(default=0, init=False)

    @property
    def size(self) -> int:
        """Bytes of the file; 0 if unknown."""
        try:
            return self.path.stat().st_size if self.path else 0
        except OSError:
            return 0

    def parts(self, errors: Errors = "strict", bar: "Progress | None" = None) -> Iterator[str]:
        """The text in parts, with little memory.

        Raises:
            ArgumentError: It is not UTF-8.
            OSError: It cannot be read.
        """
        if self.text is not None:
            yield self._given(self.text, errors)
            return
        decoder = codecs.getincrementaldecoder("utf-8")(errors)
        with self.open() as file:
            while True:
                part = file.read(_PART)
                waiting = len(decoder.getstate()[0])
                try:
                    text = decoder.decode(part, final=not part)
                except UnicodeDecodeError as problem:
                    at = self.bytes - waiting + problem.start
                    self._refuse(at, problem.object[problem.start])
                self.bytes += len(part)
                self.characters += len(text)
                if bar is not None:
                    bar.advance(len(part))
                if text:
                    yield text
                if not part:
                    return

    def _given(self, text: str, errors: Errors) -> str:
        try:
            self.bytes = len(text.encode())
        except UnicodeEncodeError as problem:
            # Bytes of a command line that are not UTF-8 come as lone surrogates.
            if errors == "strict":
                self._refuse(
                    len(text[: problem.start].encode()), ord(text[problem.start]) & 255
                )
            text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            self.bytes = len(text.encode())
        self.characters = len(text)
        return text

    def _refuse(self, at: int, byte: int) -> NoReturn:
        raise ArgumentError(
            f"`{visible(self.name)}` is not UTF-8: byte {at:,} is 0x{byte:02x}; convert it, "
            "or read what is wrong as U+FFFD with `--errors replace`"
        )

    def whole(self, errors: Errors = "strict", bar: "Progress | None" = None) -> str:
        """The whole text."""
        return "".join(self.parts(errors, bar))

    @contextmanager
    def open(self, what: str = "a text") -> Iterator[BinaryIO]:
        """The bytes; on a terminal, ask for `what`."""
        if self.path is not None:
            with named_visibly(self.path), self.path.open("rb") as file:
                yield file
            return
        if sys.stdin is None:
            raise ArgumentError("standard input is closed; name a file")
        if sys.stdin.isatty():
            print(f"Type {what}; Ctrl-D ends it.", file=sys.stderr)  # noqa: T201
        yield sys.stdin.buffer


def sources(files: Sequence[str], text: str | None = None) -> list[Source]:
    """The inputs: files, those of folders and globs, standard input if there are none.

    Raises:
        ArgumentError: A glob or a folder has no files, or there are a text and files.
        CycloptsError: A file is an option that is not known.
    """
    if text is not None:
        if files:
            raise ArgumentError("`--text` and files are two inputs; give one")
        return [Source("--text", text=text)]
    return [source for file in files or ("-",) for source in _found(file)]


def leave_out(source: Source, problem: ArgumentError) -> None:
    """Skip a file that is not text; one that was named itself is an error.

    Raises:
        ArgumentError: The problem.
    """
    if source.named:
        raise problem
    print(f"hotgrid: left out: {problem}", file=sys.stderr)  # noqa: T201


def only(files: Sequence[str], text: str | None = None) -> Source:
    """The only text.

    Raises:
        ArgumentError: There are several.
    """
    found = sources(files, text)
    if len(found) != 1:
        raise ArgumentError(f"this command takes one text, got {len(found):,}")
    return found[0]


def _found(file: str) -> list[Source]:
    if file == "-":
        return [Source("standard input")]
    path = Path(file)
    if path.is_dir():
        # Hidden folders hold what tools keep there.
        found = sorted(
            each
            for each in path.rglob("*")
            if each.is_file() and not any(map(_hidden, each.relative_to(path).parts))
        )
        if not found:
            raise ArgumentError(f"the folder `{visible(file)}` has no files")
        return [Source(str(each), each, named=False) for each in found]
    if not path.exists() and glob.has_magic(file):
        matches = sorted(filter(os.path.isfile, glob.glob(file, recursive=True)))  # noqa: PTH207  `**` and absolute ones
        if not matches:
            raise ArgumentError(f"no file matches `{visible(file)}`")
        return [Source(each, Path(each), named=False) for each in matches]
    name = file.partition("=")[0]
    if _OPTION.fullmatch(name) and not path.exists():
        # One that is valid elsewhere, or comes after `--`, gets no hint.
        hint = "" if name in _OPTIONS else near(name, _OPTIONS, "Did you mean {}?")
        way_out = hint or "`--help` lists the options; there is no file of that name."
        raise CycloptsError(msg=f"Unknown option: {name}. {way_out}")
    return [Source(file, path)]


def _hidden(name: str) -> bool:
    return name.startswith(".")


def special_rules(specials: bool) -> dict[str, Any]:
    """The value of `allowed_special` of `Encoding.encode` for `--specials`."""
    return {"allowed_special": "all" if specials else set(), "disallowed_special": ()}


def token_arrays(
    encoding: "Encoding",
    source: Source,
    *,
    specials: bool = False,
    errors: Errors = "strict",
    bar: "Progress | None" = None,
) -> "Iterator[npt.NDArray[np.uint32]]":
    """The tokens of a text in arrays `uint32[tokens]`, with little memory where that can be.

    A pattern without a lexer needs the whole text.
    """
    rules = special_rules(specials)
    if has_lexer(encoding):
        yield from encoding.encode_stream(source.parts(errors, bar), **rules)
    else:
        yield encoding.encode_to_numpy(source.whole(errors, bar), **rules)
