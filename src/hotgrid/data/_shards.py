"""Documents in files: text, JSON lines and parquet, read in blocks that can be found again."""

import contextlib
import glob
import importlib
import json
import lzma
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from hotgrid.errors import ArgumentError, DamagedError, MissingPartError, near
from hotgrid.files import open_regular

# JSON lines are read in blocks of this many bytes: small enough to split over ranks.
_BLOCK = 1 << 18
_PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}
_KINDS = (".txt", ".md", ".jsonl", ".parquet")


class Position(NamedTuple):
    """The next document: the block in the epoch, and the document in the block."""

    epoch: int = 0
    block: int = 0
    row: int = 0


@dataclass(frozen=True)
class Document:
    """A document, and the position after it.

    Attributes:
        text: What is in the file; of a table, the value in the chosen column.
        file: Where it is.
        after: Where reading continues.
        begins: Whether it is the first in its file.
    """

    text: Any
    file: Path
    after: Position
    begins: bool = False


class _Block(NamedTuple):
    """A part of a file that can be read alone."""

    file: Path
    place: int


class Shards:
    r"""Documents in many files.

    Which documents come in which order is a function of the seed and the epoch: the files are
    shuffled for every epoch, and each is read in order. So a `Position` of three numbers is
    all that is needed to continue.

    `.txt` and `.md` files are one document each, or several if `separator` is given. `.jsonl`
    files have one object a line, `.parquet` files one row a document; both name it by
    `column`. All but parquet may be compressed as `.gz`, `.bz2` or `.xz`.

    Args:
        paths: Files, folders (all files of these kinds below them) and globs.
        column: The key or column that holds the document. None yields whole objects.
        separator: What separates documents in a text file.
        seed: Another seed gives another order.
        shuffle: False reads the files in the order of their names, in every epoch.

    Attributes:
        files: The files, by name.

    Raises:
        ArgumentError: Nothing is found, or a file is of another kind.

    Example:
        >>> _ = Path("a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
        >>> shards = Shards(["a.jsonl"])
        >>> [document.text for document in shards.read(epochs=1)]
        ['one', 'two']
        >>> [document.text for document in shards.read(Position(0, 0, 1), epochs=1)]
        ['two']
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        *,
        column: str | None = "text",
        separator: str | None = None,
        seed: int = 0,
        shuffle: bool = True,
    ) -> None:
        self.column = column
        self.separator = separator
        self.seed = seed
        self.shuffle = shuffle
        self.files = _found(paths)
        self._blocks = [
            _Block(file, index) for file in self.files for index in range(_count(file))
        ]
        self._first = {block.file: at for at, block in reversed([*enumerate(self._blocks)])}

    def read(
        self,
        at: Position | None = None,
        *,
        rank: int = 0,
        ranks: int = 1,
        epochs: int | None = None,
    ) -> Iterator[Document]:
        """Yield documents, starting at a position.

        Ranks share the blocks of an epoch in turn; if there are fewer blocks than ranks they
        share the documents of each block instead.

        Args:
            at: Where to start; by default the first document.
            rank: Which rank reads.
            ranks: How many ranks read.
            epochs: How often to read everything; None never ends.

        Raises:
            ArgumentError: There is no such rank.
            DamagedError: A file cannot be read or parsed; the message names file and line.
        """
        if not 0 <= rank < ranks:
            raise ArgumentError(f"`rank` {rank} is not one of {ranks} ranks, 0 to {ranks - 1}")
        epoch, first, row = at or Position()
        by_block = len(self._blocks) >= ranks
        while epochs is None or epoch < epochs:
            empty = True
            for place, block in enumerate(self._order(epoch)[first:], first):
                if by_block and place % ranks != rank:
                    continue
                for index, text in enumerate(self._documents(block)):
                    empty = False
                    if index >= row and (by_block or index % ranks == rank):
                        after = Position(epoch, place, index + 1)
                        yield Document(text, block.file, after, index == block.place == 0)
                row = 0
            if empty and first == 0:
                raise ArgumentError(
                    f"rank {rank} of {ranks} finds no document in {len(self.files)} file(s), "
                    f"the first is `{self.files[0]}`"
                )
            epoch, first, row = epoch + 1, 0, 0

    def _order(self, epoch: int) -> list[_Block]:
        if not self.shuffle:
            return self._blocks
        from hotgrid.cluster import shard_of

        files = [
            self.files[at]
            for at in shard_of(len(self.files), 0, 1, epoch=epoch, seed=self.seed)
        ]
        return [block for file in files for block in self._of(file)]

    def _of(self, file: Path) -> Iterator[_Block]:
        at = self._first.get(file, len(self._blocks))
        while at < len(self._blocks) and self._blocks[at].file == file:
            yield self._blocks[at]
            at += 1

    def _documents(self, block: _Block) -> Iterator[Any]:
        kind, packed = _kind(block.file)
        try:
            yield from _READERS[kind](self, block, packed)
        except FileNotFoundError:
            raise DamagedError(f"`{block.file}` is missing") from None
        except DamagedError:
            raise
        except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError, zlib.error) as problem:
            raise DamagedError(f"`{block.file}` cannot be read: {problem}") from problem

    def _value(self, row: Any, where: str) -> Any:
        if self.column is None:
            return row
        if not isinstance(row, dict) or self.column not in row:
            has = (
                ", ".join(f"`{key}`" for key in row)
                if isinstance(row, dict)
                else repr(row)[:80]
            )
            raise DamagedError(
                f"{where} has no `{self.column}`; it has {has}: choose another `column`"
            )
        return row[self.column]


def _text(shards: Shards, block: _Block, packed: str | None) -> Iterator[str]:
    with _opened(block.file, packed) as file:
        # Some editors begin a file with a byte order mark, which is no text.
        text = file.read().decode("utf-8-sig")
    yield from (text.split(shards.separator) if shards.separator else [text])


def _json_lines(shards: Shards, block: _Block, packed: str | None) -> Iterator[Any]:
    with _opened(block.file, packed) as file:
        end = None if packed else (block.place + 1) * _BLOCK
        if block.place:
            # A line belongs to the block that its first byte is in.
            file.seek(block.place * _BLOCK - 1)
            file.readline()
        while end is None or file.tell() < end:
            at = 0 if packed else file.tell()
            line = file.readline()
            if not line:
                return
            if line.isspace():
                continue
            where = f"`{block.file}`" + ("" if packed else f" at byte {at}")
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as problem:
                raise DamagedError(f"{where} is not a line of JSON: {problem}") from None
            yield shards._value(row, where)


def _table(shards: Shards, block: _Block, packed: str | None) -> Iterator[Any]:
    parquet = _parquet()
    columns = None if shards.column is None else [shards.column]
    with _opened(block.file, packed) as file:
        table = parquet.ParquetFile(file)
        names = table.schema_arrow.names
        if shards.column is not None and shards.column not in names:
            raise DamagedError(
                f"`{block.file}` has no column `{shards.column}`{near(shards.column, names)}; "
                f"it has {', '.join(names)}"
            )
        rows = table.read_row_group(block.place, columns=columns)
    if shards.column is None:
        yield from rows.to_pylist()
    else:
        yield from rows.column(0).to_pylist()


_READERS: dict[str, Callable[[Shards, _Block, str | None], Iterator[Any]]] = {
    ".txt": _text,
    ".md": _text,
    ".jsonl": _json_lines,
    ".parquet": _table,
}


def _found(paths: Sequence[str | Path]) -> list[Path]:
    files: set[Path] = set()
    for path in paths:
        given = Path(path)
        if given.is_dir():
            found = [each for each in given.rglob("*") if _kind(each)[0] in _READERS]
        elif given.exists():
            found = [given]
        else:
            # Path.glob takes no absolute pattern.
            found = [Path(each) for each in glob.glob(str(path), recursive=True)]  # noqa: PTH207
        if not found:
            raise ArgumentError(
                f"`{path}`: no files found; hotgrid reads {', '.join(_KINDS)}, and all but "
                "parquet compressed as .gz, .bz2 or .xz"
            )
        files.update(each for each in found if each.is_file())
    if not files:
        raise ArgumentError(f"`paths` {[str(each) for each in paths]} names no file")
    for file in files:
        if _kind(file)[0] not in _READERS:
            raise ArgumentError(
                f"`{file}`: hotgrid reads {', '.join(_KINDS)}, and all but parquet compressed "
                "as .gz, .bz2 or .xz"
            )
    return sorted(files)


def _kind(file: Path) -> tuple[str, str | None]:
    suffix = file.suffix.lower()
    if suffix in _PACKED:
        return Path(file.stem).suffix.lower(), _PACKED[suffix]
    return suffix, None


def _count(file: Path) -> int:
    """In how many blocks a file is read."""
    kind, packed = _kind(file)
    if kind == ".parquet":
        if packed:
            raise ArgumentError(f"`{file}`: parquet files are compressed inside; unpack it")
        try:
            return _parquet().ParquetFile(file).num_row_groups
        except ValueError as problem:
            raise DamagedError(f"`{file}` is not a parquet file: {problem}") from None
    if kind == ".jsonl" and not packed:
        return -(-file.stat().st_size // _BLOCK)
    return 1


@contextlib.contextmanager
def _opened(file: Path, packed: str | None) -> Iterator[IO[bytes]]:
    with os.fdopen(open_regular(file.resolve()), "rb") as plain:
        if packed is None:
            yield plain
        else:
            with importlib.import_module(packed).open(plain, "rb") as unpacked:
                yield unpacked


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingPartError(
            "parquet files need pyarrow: pip install 'hotgrid[parquet]'"
        ) from None
    return parquet
