"""`Syntax`: the units of source code as patches."""

import ast
import codecs
import io
import tokenize
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from types import MappingProxyType

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, near

from ._grammars import GRAMMARS, expect_parser, unit_starts
from ._segmenter import Segmenter


def _python(data: bytes) -> Iterable[int]:
    """Where statements begin: those of the module and of classes, decorators included."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as of escapes in strings
        try:
            module = ast.parse(data)
            encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
    lines = [0, *accumulate(map(len, data.splitlines(keepends=True)))]
    waiting: list[ast.stmt] = list(module.body)
    while waiting:
        each = waiting.pop()
        decorators = getattr(each, "decorator_list", [])
        line = decorators[0].lineno if decorators else each.lineno
        # A cookie can name an encoding that has other lines.
        if line < len(lines):
            begin = lines[line - 1]
            yield begin + _column(data[begin : lines[line]], each.col_offset, encoding)
        if isinstance(each, ast.ClassDef):
            waiting.extend(each.body)


def _column(line: bytes, column: int, encoding: str) -> int:
    """Where a column is in a line of the file: the parser counts bytes of UTF-8, unmarked."""
    if encoding == "utf-8":
        return column
    if encoding == "utf-8-sig":
        # The mark belongs to the first statement.
        return column and column + len(codecs.BOM_UTF8) * line.startswith(codecs.BOM_UTF8)
    try:
        return len(line.decode(encoding).encode()[:column].decode().encode(encoding))
    except UnicodeError:
        return column


SYNTAXES: MappingProxyType[str, Callable[[bytes], Iterable[int]]] = MappingProxyType(
    {name: partial(unit_starts, name) for name in GRAMMARS} | {"python": _python}
)
"""By language, where the units of source code begin; nothing for what cannot be parsed."""


@dataclass(frozen=True)
class Syntax(Segmenter):
    """A patch is a unit of source code with the bytes up to the next one.

    Units are the statements of a file and the members of its classes and the like. Those of
    Python need nothing else; other languages need the wheel of a tree-sitter grammar. Code
    that cannot be parsed is one patch, or has larger ones. It is parsed as a whole, so it is
    not causal.

    Args:
        language: One of `SYNTAXES`.

    Raises:
        ArgumentError: The language is unknown.
        MissingPartError: Its grammar is not installed.
    """

    language: str = "python"

    def __post_init__(self) -> None:
        if self.language not in SYNTAXES:
            raise ArgumentError(
                f"there is no syntax for `{self.language}`{near(self.language, SYNTAXES)} "
                f"(there are {', '.join(SYNTAXES)})"
            )
        if self.language != "python":
            expect_parser(self.language)

    def starts(self, data: bytes) -> Tensor:
        """Return for each byte whether a patch begins with it, as bool of shape `(t,)`."""
        starts = torch.zeros(len(data), dtype=torch.bool)
        starts[:1] = True
        for place in SYNTAXES[self.language](data):
            if place < len(data):
                starts[place] = True
        return starts
