"""`hotgrid chat loader-bench`: how fast text becomes batches."""

import time
from json import dumps

from rich.table import Table

from hotgrid.cli._terminal import Terminal
from hotgrid.errors import ArgumentError

from ._options import Data, ReadOptions

# What a GPU of today trains on with a model of depth 12: see docs/guide/chat.md.
_NEEDED = 530_000
_TEXT = ReadOptions()


def loader_bench(
    *data: Data,
    tokenizer: str | None = None,
    context: int = 2048,
    rows: int = 32,
    seconds: float = 10.0,
    threads: int | None = None,
    text: ReadOptions = _TEXT,
    json: bool = False,
) -> None:
    """Measure how fast text becomes batches.

    Args:
        data: Files, folders and globs of text.
        tokenizer: A tokenizer.json or the name of an encoding; by default hotgrid_32k.
        context: Tokens of a row; by default 2048.
        rows: Rows of a batch; by default 32.
        seconds: How long to measure; by default 10.
        threads: Threads that encode; by default all.
        text: The choice of text.
        json: Print one JSON object instead of a table.
    """
    from hotgrid.chat import TextBatches, TextEncoder, find_vocabulary

    if seconds <= 0:
        raise ArgumentError(f"`--seconds` {seconds:g}: choose a time above 0")
    source, encoding = text.data(data), find_vocabulary(tokenizer)
    source.expect_text()
    encode = TextEncoder(encoding, threads=threads)
    shards = source.shards(source.paths, seed=0)
    batches = TextBatches(shards, encode, encoding, rows=rows, context=context)
    next(batches)
    first = vars(batches.counters).copy()
    began, cpu = time.perf_counter(), time.process_time()
    made = 0
    while time.perf_counter() - began < seconds:
        next(batches)
        made += 1
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    counters = batches.counters
    batches.close()
    tokens = made * rows * context
    per_core = tokens / max(cpu, 1e-9)
    found = {
        "encoding": encoding.name,
        "files": counters.files,
        "documents": counters.documents,
        "bytes_per_second": (counters.bytes - first["bytes"]) / wall,
        "tokens_per_second": tokens / wall,
        "tokens_per_second_per_core": per_core,
        "cores_used": cpu / wall,
        "lost_by_packing": counters.loss,
        "cores_for_530000_tokens_per_second": _NEEDED / per_core,
    }
    console = Terminal(highlight=False)
    if json:
        console.out(dumps(found, indent=2), highlight=False)
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in found.items():
        shown = f"{value:,.4g}" if isinstance(value, float) and value < 100 else value
        shown = f"{shown:,.0f}" if isinstance(shown, float) else str(shown)
        table.add_row(name.replace("_", " "), shown)
    console.for_tables().print(table)
