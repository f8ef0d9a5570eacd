"""Source code: a piece is a statement of a file, such as a function or a class."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PurePosixPath

from hotgrid.blt._ingest._settings import IngestSettings
from hotgrid.blt._segment._grammars import parser_of
from hotgrid.blt._segment._syntax import SYNTAXES
from hotgrid.blt._sidecar._graph import Leaf

from ._modality import Modality, View
from ._text import Text

LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    ".rs": "rust",
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".hpp": "cpp",
    ".cu": "cpp",
    ".go": "go",
    ".java": "java",
    ".js": "javascript",
    ".mjs": "javascript",
    ".ts": "typescript",
    ".rb": "ruby",
    ".sh": "bash",
    ".cs": "c_sharp",
    ".php": "php",
    ".scala": "scala",
    ".swift": "swift",
    ".kt": "kotlin",
    ".lua": "lua",
    ".jl": "julia",
    ".hs": "haskell",
    ".zig": "zig",
}
"""The language by the suffix of a file, one of `GRAMMARS`."""

_PROGRAMS = {"python": "python", "node": "javascript", "bash": "bash", "sh": "bash"}
_SHEBANG = re.compile(rb"#!\s*/\S*?(\w+?)[\d.]*(?:\s+(\w+?)[\d.]*)?\s*(?:\n|$)")


class Code(Modality):
    """Source code, by the suffix of its name or the program in its first line."""

    name = "code"
    whole = False

    def accepts(self, head: bytes, name: str) -> bool:
        """Whether it is text, in a known language."""
        return language_of(head, name) is not None and Text().accepts(head, name)

    def views(self, data: bytes, name: str, settings: IngestSettings) -> list[View]:
        """The bytes as they are, with the statements of the file as pieces."""
        language = language_of(data[:256], name) or ""
        pieces = list(_pieces(data, language))
        if not pieces:
            pieces = [Leaf("code_snippet", 0, len(data), 0.5, {"language": language})]
        return [View("code", self.name, data, pieces, {"language": language})]


def language_of(head: bytes, name: str) -> str | None:
    """The language of source code; None if it is not known."""
    known = LANGUAGES.get(PurePosixPath(name).suffix.lower())
    if known is None and (found := _SHEBANG.match(head)):
        program = found[2] if found[1] == b"env" else found[1]
        known = _PROGRAMS.get((program or b"").decode("ascii", "ignore"))
    return known


def _pieces(data: bytes, language: str) -> Iterator[Leaf]:
    parser = parser_of(language)
    if parser is not None:
        tree = parser.parse(data)
        # Not `node.start_point`: in tree-sitter 0.26.0 it damages memory.
        lines = [found.start() for found in re.finditer(b"\n", data)]
        for node in tree.root_node.named_children:
            extra = {"node_type": node.type, "language": language}
            extra |= {"start_row": bisect_left(lines, node.start_byte)}
            extra |= {"end_row": bisect_left(lines, node.end_byte)}
            if node.end_byte > node.start_byte:
                sure = 0.5 if node.has_error else 1.0
                yield Leaf(node.type, node.start_byte, node.end_byte, sure, extra)
        return
    if language == "python":
        starts = sorted({each for each in SYNTAXES[language](data) if each < len(data)})
        for begin, end in pairwise([*starts, len(data)]):
            yield Leaf("statement", begin, end, 1.0, {"language": language})
