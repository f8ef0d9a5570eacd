"""Tokens as text, JSON, `.npy` or raw integers, to standard output or into a file."""

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from hotgrid.cli._terminal import Terminal
from hotgrid.errors import ArgumentError
from hotgrid.files import whole_file

from ._json import read_json
from ._names import named_visibly, visible

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from rich.table import Table

    Arrays = Iterable[npt.NDArray[np.uint32]]

Format = Literal["text", "json", "npy", "u32"]
_PART = 1 << 20


def refuse_existing(path: Path | None, *, force: bool) -> None:
    """Refuse before any work to overwrite a file.

    Raises:
        ArgumentError: It exists, it is a device or a folder, or its folder is missing.
    """
    if path is None:
        return
    if path.exists() and not path.is_file():
        raise ArgumentError(
            f"`{visible(path)}` is not a file that can be replaced; name another"
        )
    if path.exists() and not force:
        raise ArgumentError(f"`{visible(path)}` already exists; `--force` replaces it")
    if not path.parent.is_dir():
        raise ArgumentError(
            f"there is no folder `{visible(path.parent)}` for `{visible(path.name)}`"
        )


def print_table(console: Terminal, table: "Table") -> None:
    """Print a table; in a pipe a row is one line."""
    wide = console if console.is_terminal else Terminal(width=10_000, highlight=False)
    with wide.capture() as captured:
        wide.print(table)
    lines = captured.get().splitlines()
    console.out("\n".join(line.rstrip() for line in lines), highlight=False)


@contextmanager
def output(path: Path | None) -> Iterator[BinaryIO]:
    """Where bytes go: a file that is written atomically, or standard output."""
    if path is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = path.resolve()
    with named_visibly(path), whole_file(path) as aside, aside.open("wb") as file:
        yield file


def write_tokens(out: BinaryIO, texts: "Iterable[Arrays]", form: Format) -> int:
    """Write the tokens of texts and return how many there were.

    `text` and `json` have a line for each text. `npy` and `u32` are all tokens one after
    another, 32 bits each, the low byte first.
    """
    if form == "npy":
        return _write_npy(out, texts)
    if form == "u32":
        return _write_raw(out, texts)
    begin, between, end = (b"[", b", ", b"]\n") if form == "json" else (b"", b" ", b"\n")
    count = 0
    for arrays in texts:
        out.write(begin)
        first = True
        for tokens in arrays:
            out.write(b"" if first else between)
            out.write(between.decode().join(map(str, tokens.tolist())).encode())
            count += len(tokens)
            first = False
        out.write(end)
    return count


def _write_raw(out: BinaryIO, texts: "Iterable[Arrays]") -> int:
    count = 0
    for arrays in texts:
        for tokens in arrays:
            out.write(tokens.astype("<u4", copy=False).tobytes())
            count += len(tokens)
    return count


def _write_npy(out: BinaryIO, texts: "Iterable[Arrays]") -> int:
    from numpy.lib.format import write_array_header_1_0

    # The length comes before the tokens, and a pipe cannot seek back.
    with tempfile.TemporaryFile() as aside:
        count = _write_raw(aside, texts)
        aside.seek(0)
        header = {"descr": "<u4", "fortran_order": False, "shape": (count,)}
        write_array_header_1_0(out, header)
        shutil.copyfileobj(aside, out, _PART)
    return count


def read_tokens(source: BinaryIO, name: str, form: Format) -> "Iterator[list[int]]":
    """Tokens out of what `write_tokens` has written, a list at a time.

    Raises:
        ArgumentError: A value is not a token, or the file has another format.
    """
    if form == "npy":
        yield from _read_npy(source, name)
    elif form == "u32":
        yield from _read_raw(source, name)
    elif form == "json":
        yield from read_json(source, name)
    else:
        yield from _read_words(source, name)


def _read_words(source: BinaryIO, name: str) -> Iterator[list[int]]:
    blanks = bytes.maketrans(b"[],", b"   ")
    held = b""
    while part := source.read(_PART):
        held, _, rest = _cut(held + part.translate(blanks))
        yield _numbers(held.split(), name)
        held = rest
    yield _numbers(held.split(), name)


def _cut(text: bytes) -> tuple[bytes, bytes, bytes]:
    """All words but the last, which may be incomplete."""
    at = max(map(text.rfind, (b" ", b"\n", b"\t", b"\r")))
    return text[: at + 1], b"", text[at + 1 :]


def _numbers(words: list[bytes], name: str) -> list[int]:
    try:
        if all(map(bytes.isdigit, words)):
            return list(map(int, words))
    except ValueError:  # thousands of digits
        pass
    wrong = next(word for word in words if not word.isdigit() or len(word) > 20)
    shown = wrong[:40].decode("utf-8", "replace")
    raise ArgumentError(
        f"`{name}` holds {shown!r} where a token should be; expected whole numbers between "
        "blanks, or a JSON array. For other formats see `--format`"
    )


def _read_raw(source: BinaryIO, name: str) -> Iterator[list[int]]:
    import numpy as np

    size = 0
    held = b""
    while part := source.read(_PART):
        size += len(part)
        held += part
        whole = len(held) // 4 * 4
        yield np.frombuffer(held[:whole], "<u4").tolist()
        held = held[whole:]
    if held:
        raise ArgumentError(f"`{name}` has {size:,} bytes, which is not a multiple of 4")


def _read_npy(source: BinaryIO, name: str) -> Iterator[list[int]]:
    import numpy as np
    from numpy.lib import format as npy

    try:
        version = npy.read_magic(source)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(source)
    except ValueError as problem:
        raise ArgumentError(f"`{name}` is not an .npy file: {problem}") from None
    if dtype.kind not in "iu" or len(shape) != 1:
        raise ArgumentError(
            f"`{name}` holds an array of {dtype} with {len(shape)} dimensions; expected whole "
            "numbers in one"
        )
    left = shape[0] * dtype.itemsize
    while left:
        part = source.read(min(left, _PART))
        while len(part) % dtype.itemsize and (more := source.read(1)):
            part += more
        if not part or len(part) % dtype.itemsize:
            raise ArgumentError(f"`{name}` ends {left - len(part):,} bytes early")
        left -= len(part)
        yield np.frombuffer(part, dtype).tolist()
