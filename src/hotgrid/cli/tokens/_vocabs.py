"""`hotgrid tokens vocabs`: the known encodings, and which are available."""

import hashlib
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from hotgrid.cli._terminal import Terminal
from hotgrid.tokens import DEFAULT_ENCODING

from ._names import printable, visible
from ._output import print_table


@dataclass(frozen=True)
class Known:
    """An encoding by name, and its file if there is one.

    Attributes:
        name: The name that `--encoding` takes.
        path: The file of ranks; None if it is not here.
        bytes: The size of the file.
        tokens: One more than the highest token; None if the file was not read.
        right: Whether its sha256 is the published one; None if there is no file to check.
        url: Where it would be fetched from; None if it comes with hotgrid.
    """

    name: str
    path: Path | None
    bytes: int | None
    tokens: int | None
    right: bool | None
    url: str | None

    @property
    def embedded(self) -> bool:
        """Whether it comes with hotgrid."""
        return self.url is None

    def plain(self) -> dict[str, Any]:
        """One object of `--json`."""
        return {
            "name": self.name,
            "default": self.name == DEFAULT_ENCODING,
            "here": self.right is True or self.embedded,
            "embedded": self.embedded,
            "path": printable(self.path) if self.path else None,
            "bytes": self.bytes,
            "tokens": self.tokens,
            "sha256_right": self.right,
            "url": self.url,
        }


def vocabs(*, json: bool = False) -> int:
    """List the known encodings, and which are available.

    Args:
        json: Print JSON instead of a table.
    """
    found = _known()
    console = Terminal(highlight=False)
    if json:
        rows = [each.plain() for each in found]
        console.out(dumps(rows, indent=2, ensure_ascii=False), highlight=False)
    else:
        _print_table(console, found)
    return 1 if any(each.right is False for each in found) else 0


def _known() -> list[Known]:
    from hotgrid.tokens import _registry, get_encoding
    from hotgrid.tokens._files import _vocabularies

    found: list[Known] = []
    for name in _registry._EMBEDDED:
        path = _registry._embedded_file(name)
        found.append(
            Known(name, path, path.stat().st_size, get_encoding(name).n_vocab, None, None)
        )
    for name, (ranks, _, _) in _registry._ENCODINGS.items():
        files = [_vocabularies._FILES[ranks]]
        if ranks == "r50k_base":
            files.append(_vocabularies._GPT2_MERGES)
        places = [
            (path, file)
            for file in files
            for path in _vocabularies._places(file)
            if path.is_file()
        ]
        if not places:
            found.append(Known(name, None, None, None, None, files[0].url))
            continue
        path, file = places[0]
        data = path.read_bytes()
        right = hashlib.sha256(data).hexdigest() == file.sha256
        tokens = get_encoding(name).n_vocab if right else None
        found.append(Known(name, path, len(data), tokens, right, file.url))
    return found


def _print_table(console: Terminal, found: list[Known]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("encoding", "tokens", "bytes", "sha256", "from"):
        justify = "right" if heading in ("tokens", "bytes") else "left"
        table.add_column(heading, justify=justify, overflow="fold")
    for each in found:
        name = f"{each.name} (default)" if each.name == DEFAULT_ENCODING else each.name
        if each.path is None:
            table.add_row(
                name, "", "", "", Text(f"not here; downloaded from {each.url}"), style="dim"
            )
            continue
        state = Text("right", "green") if each.right else Text("wrong", "bold red")
        if each.embedded:
            state = Text("")
        tokens = f"{each.tokens:,}" if each.tokens else ""
        table.add_row(name, tokens, f"{each.bytes:,}", state, _place(each))
    print_table(console, table)


def _place(each: Known) -> Text:
    return Text("comes with hotgrid" if each.embedded else visible(each.path))
