"""`hotgrid tokens count`: how many tokens files have."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from json import dumps
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from hotgrid.cli._terminal import Terminal
from hotgrid.errors import ArgumentError
from hotgrid.progress import Progress

from ._choice import Choice
from ._input import Errors, Files, Source, sources, token_arrays
from ._names import printable, visible
from ._output import print_table

if TYPE_CHECKING:
    from hotgrid.tokens import Encoding

_DEFAULT = Choice()


@dataclass(frozen=True)
class Count:
    """The counts of one text, or of all."""

    name: str
    bytes: int
    characters: int
    tokens: int

    @property
    def bytes_per_token(self) -> float | None:
        """Bytes per token."""
        return self.bytes / self.tokens if self.tokens else None

    def plain(self) -> dict[str, Any]:
        """One object of `--json`."""
        return {
            "file": printable(self.name),
            "bytes": self.bytes,
            "characters": self.characters,
            "tokens": self.tokens,
            "bytes_per_token": self.bytes_per_token,
        }


def count(
    *files: Files,
    choice: Choice = _DEFAULT,
    text: str | None = None,
    specials: bool = False,
    errors: Errors = "strict",
    json: bool = False,
) -> int:
    """Count bytes, characters and tokens of texts.

    Args:
        files: Files, folders or globs; standard input if there are none, or for `-`.
        choice: The choice of encoding.
        text: This text instead.
        specials: Treat `<|endoftext|>` and the like as special tokens; by default they are
            ordinary text.
        errors: What to do about bytes that are not UTF-8: strict leaves the file out and says
            so, replace reads them as U+FFFD; by default strict.
        json: Print one JSON object instead of a table.
    """
    found = sources(files, text)
    encoding = choice.load()
    counts: list[Count] = []
    # A named file that cannot be read is an error; one found in a folder is not.
    problems: list[tuple[Source, str]] = []
    with Progress(
        "counting", sum(source.size for source in found), unit="bytes", brief=True
    ) as bar:
        for source in found:
            try:
                counts.append(_counted(encoding, source, specials, errors, bar))
            except ArgumentError as problem:
                problems.append((source, str(problem)))
            except OSError as problem:
                why = problem.strerror or str(problem)
                problems.append((source, f"`{visible(source.name)}` cannot be read ({why})"))
    total = Count(
        "total",
        sum(each.bytes for each in counts),
        sum(each.characters for each in counts),
        sum(each.tokens for each in counts),
    )
    console = Terminal(highlight=False)
    if json:
        answer = {
            "encoding": encoding.name,
            "files": [each.plain() for each in counts],
            "total": total.plain() | {"file": None},
            "problems": [
                {"file": printable(source.name), "message": message}
                for source, message in problems
            ],
        }
        console.out(dumps(answer, indent=2, ensure_ascii=False), highlight=False)
    elif counts:
        _print_table(console, encoding, counts, total)
    _say(problems)
    return 1 if any(source.named for source, _ in problems) else 0


def _counted(
    encoding: "Encoding", source: Source, specials: bool, errors: Errors, bar: Progress
) -> Count:
    arrays = token_arrays(encoding, source, specials=specials, errors=errors, bar=bar)
    tokens = sum(map(len, arrays))
    return Count(source.name, source.bytes, source.characters, tokens)


def _print_table(
    console: Terminal, encoding: "Encoding", counts: Sequence[Count], total: Count
) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("bytes", "characters", "tokens", "bytes/token"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(Text(f"file ({visible(encoding.name)})"), overflow="fold")
    for each in counts:
        table.add_row(*_cells(each))
    if len(counts) > 1:
        table.add_row(*_cells(total), style="bold")
    print_table(console, table)


def _cells(each: Count) -> tuple[str | Text, ...]:
    share = "-" if each.bytes_per_token is None else f"{each.bytes_per_token:.2f}"
    numbers = (each.bytes, each.characters, each.tokens)
    # A file may be called anything, also what rich or a terminal takes for a style.
    return (*(f"{number:,}" for number in numbers), share, Text(visible(each.name)))


def _say(problems: Iterable[tuple[Source, str]]) -> None:
    sys.stdout.flush()
    for source, message in problems:
        begin = "" if source.named else "left out: "
        print(f"hotgrid: {begin}{message}", file=sys.stderr)  # noqa: T201
