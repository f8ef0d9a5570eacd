"""`hotgrid tokens bench`: how fast a text of yours is encoded."""

import itertools
import time
from json import dumps
from typing import TYPE_CHECKING

from rich.table import Table

from hotgrid.cli._terminal import Terminal
from hotgrid.cli._whole_number import WholeNumber
from hotgrid.errors import ArgumentError

from ._choice import Choice
from ._input import Errors, Files, Source, leave_out, sources
from ._names import visible
from ._output import print_table

if TYPE_CHECKING:
    from hotgrid.tokens import Encoding

_DEFAULT = Choice()
_PASSES, _SECONDS = 5, 3.0


def bench(
    *files: Files,
    choice: Choice = _DEFAULT,
    text: str | None = None,
    errors: Errors = "strict",
    megabytes: WholeNumber = None,
    json: bool = False,
) -> int:
    """Measure how fast your text is encoded.

    The first pass of a new encoding (cold) and the best of later ones over the same text
    (warm), for Python lists and for arrays, with one thread and with all.

    Args:
        files: Files, folders or globs; standard input if there are none, or for `-`.
        choice: The choice of encoding.
        text: This text instead.
        errors: What to do about bytes that are not UTF-8: strict refuses the file, replace
            reads them as U+FFFD; by default strict.
        megabytes: Use no more of the text than this; by default 8.
        json: Print one JSON object instead of a table.
    """
    from hotgrid.tokens._plain_core import token_core

    limit = 8 if megabytes is None else megabytes
    if limit < 1:
        raise ArgumentError(f"`--megabytes` must be at least 1, got {limit}")
    texts = _texts(sources(files, text), errors, limit * 1_000_000)
    size = sum(len(each.encode()) for each in texts)
    if not size:
        raise ArgumentError("there is no text to encode")
    encoding = choice.load()
    rows = []
    for output, threads in itertools.product(
        ("list", "flat"), sorted({1, token_core().threads()})
    ):
        cold, warm = _seconds(encoding, texts, output, threads)
        rows.append(
            {
                "output": output,
                "threads": threads,
                "cold_mb_s": round(size / cold / 1e6, 2),
                "warm_mb_s": round(size / warm / 1e6, 2),
            }
        )
    console = Terminal(highlight=False)
    if json:
        answer = {"encoding": encoding.name, "texts": len(texts), "bytes": size, "rows": rows}
        console.out(dumps(answer, indent=2, ensure_ascii=False), highlight=False)
        return 0
    table = Table(box=None, pad_edge=False)
    for heading in ("output", "threads", "cold MB/s", "warm MB/s"):
        table.add_column(heading, justify="right" if table.columns else "left", no_wrap=True)
    for output, threads, *speeds in map(dict.values, rows):
        table.add_row(output, str(threads), *(f"{speed:,.1f}" for speed in speeds))
    print_table(console, table)
    summary = f"{visible(encoding.name)}, {len(texts):,} texts, {size:,} bytes."
    console.print(summary, style="dim", markup=False, soft_wrap=True)
    return 0


def _seconds(
    encoding: "Encoding", texts: list[str], output: str, threads: int
) -> tuple[float, float]:
    """The time of the first pass, and of the best later one."""
    fresh = type(encoding).__new__(type(encoding))  # it has no words in its cache yet
    fresh.__setstate__(encoding.__getstate__())
    encode = fresh.encode_batch if output == "list" else fresh.encode_flat
    encode(["x"], num_threads=threads)  # imports numpy
    times: list[float] = []
    while len(times) < 2 or (len(times) <= _PASSES and sum(times) < _SECONDS):
        begin = time.perf_counter()
        encode(texts, num_threads=threads, disallowed_special=())
        times.append(time.perf_counter() - begin)
    return times[0], min(times[1:])


def _texts(found: list[Source], errors: Errors, limit: int) -> list[str]:
    texts: list[str] = []
    for source in found:
        taken: list[str] = []
        try:
            for part in source.parts(errors):
                data = part.encode()
                taken.append(data[:limit].decode("utf-8", "ignore"))
                limit -= len(data)
                if limit <= 0:
                    break
        except ArgumentError as problem:
            leave_out(source, problem)
            continue
        texts.append("".join(taken))
        if limit <= 0:
            break
    return texts
