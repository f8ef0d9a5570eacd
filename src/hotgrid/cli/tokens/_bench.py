"""`hotgrid tokens bench`: how fast your text is encoded, here and by other libraries."""

import importlib.util
import itertools
import sys
import tempfile
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from hotgrid.cli._terminal import Terminal
from hotgrid.cli._whole_number import WholeNumber
from hotgrid.errors import ArgumentError

from ._choice import Choice
from ._input import Errors, Files, Source, leave_out, sources
from ._names import visible
from ._output import print_table
from ._rivals import CONTESTANTS, Job, Subject, measured

if TYPE_CHECKING:
    from hotgrid.tokens import Encoding

_DEFAULT = Choice()
_PASSES, _SECONDS = 5, 3.0
_JUDGE = "tiktoken"
_COLUMNS = (
    "contestant",
    "version",
    "output",
    "threads",
    "cold_mb_s",
    "warm_mb_s",
    "times",
    "note",
)


def bench(
    *files: Files,
    choice: Choice = _DEFAULT,
    text: str | None = None,
    errors: Errors = "strict",
    megabytes: WholeNumber = None,
    json: bool = False,
) -> int:
    """Measure how fast your text is encoded, here and by other libraries.

    The first pass of a new process (cold) and the best of later ones over the same text
    (warm), for Python lists and for arrays, with one thread and with all. Each library has
    its own process for each, so even a short text takes a while; standard error shows what
    is measured.

    Args:
        files: Files, folders or globs; standard input if there are none, or for `-`.
        choice: Which encoding.
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
    counts = sorted({1, token_core().threads()})
    with tempfile.TemporaryDirectory(prefix="hotgrid-bench-") as folder:
        subject = _subject(encoding, choice, Path(folder))
        corpus = Path(folder, "texts.json")
        corpus.write_text(dumps(texts))
        rows = _rows(subject, str(corpus), counts)
    judge = _judged(rows)
    for row in rows:
        _add_speed(row, rows, size)
    console = Terminal(highlight=False)
    if json:
        answer = {
            "encoding": encoding.name,
            "texts": len(texts),
            "bytes": size,
            "judge": judge,
            "rows": [{key: row.get(key) for key in _COLUMNS} for row in rows],
        }
        console.out(dumps(answer, indent=2, ensure_ascii=False), highlight=False)
    else:
        _print_table(console, rows)
        said = f"{visible(encoding.name)}, {len(texts):,} texts, {size:,} bytes. "
        said += (
            f"Every figure is for exactly the tokens of {judge}."
            if judge
            else "The tokens were not checked: pip install tiktoken."
        )
        console.print(said, style="dim", markup=False, soft_wrap=True)
    return 1 if any(row["contestant"] == "hotgrid" and row["note"] for row in rows) else 0


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


def _subject(encoding: "Encoding", choice: Choice, folder: Path) -> Subject:
    """The encoding as files, for libraries that do not have it by name."""
    from hotgrid.tokens import save_huggingface, save_tiktoken
    from hotgrid.tokens._patterns import LEXERS

    ranks = tokenizer = None
    if encoding._merges is None:
        ranks = folder / f"{encoding.name}.tiktoken"
        save_tiktoken(encoding, ranks)
    if encoding._merges is not None or importlib.util.find_spec("tokenizers"):
        tokenizer = folder / "tokenizer.json"
        save_huggingface(encoding, tokenizer)
    return Subject(
        name=encoding.name,
        pattern=encoding._pat_str,
        lexer=LEXERS.get(encoding._pat_str),
        ranks=str(ranks) if ranks else None,
        tokenizer=str(tokenizer) if tokenizer else None,
        published=choice.vocab is None,
    )


def _rows(subject: Subject, corpus: str, counts: list[int]) -> list[dict[str, Any]]:
    """What each contestant did, for each form and number of threads; one row if nothing."""
    rows: list[dict[str, Any]] = []
    for name, (package, *_) in CONTESTANTS.items():
        for form, threads in itertools.product(("list", "flat"), counts):
            _tell(f"measuring {name}, {form}, {threads} thread{'s' if threads > 1 else ''}")
            job = Job(name, subject, corpus, form, threads, passes=_PASSES, seconds=_SECONDS)
            found = measured(job)
            row = {"contestant": name, "output": form, "threads": threads, "note": "", **found}
            if "absent" in found:
                row["note"] = f"absent: pip install {package}"
            elif "failed" in found:
                row["note"] = found["failed"]
            if row["note"]:
                if rows and rows[-1]["contestant"] == name:
                    break  # it has lists only
                rows.append(row | {"output": "", "threads": None})
                break
            rows.append(row)
    _tell("")
    return rows


def _judged(rows: list[dict[str, Any]]) -> str | None:
    """Remove the figures of libraries that disagree with the judge; return its name."""
    judges = [row for row in rows if "digest" in row and row["contestant"] != "hotgrid"]
    if not judges:
        return None
    judge = next((row for row in judges if row["contestant"] == _JUDGE), judges[0])
    for row in rows:
        if "digest" in row and row["digest"] != judge["digest"]:
            row["note"] = f"other tokens than {judge['contestant']}"
    return judge["contestant"]


def _add_speed(row: dict[str, Any], rows: list[dict[str, Any]], size: int) -> None:
    """Speeds in MB/s, and how many times faster hotgrid is in the same terms."""
    row |= {"cold_mb_s": None, "warm_mb_s": None, "times": None}
    if row["note"]:
        return
    row["cold_mb_s"] = round(size / row["first"] / 1e6, 2)
    row["warm_mb_s"] = round(size / row["best"] / 1e6, 2)
    same = (row["output"], row["threads"])
    for ours in rows:
        if ours["contestant"] == "hotgrid" and (ours["output"], ours["threads"]) == same:
            row["times"] = round(row["best"] / ours["best"], 2) if not ours["note"] else None


def _tell(what: str) -> None:
    """What is measured just now: on one line of a terminal, elsewhere a line each."""
    if sys.stderr is None:
        return
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)  # noqa: T201
    elif what:
        print(f"hotgrid: {what}", file=sys.stderr, flush=True)  # noqa: T201


def _print_table(console: Terminal, rows: list[dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("who", no_wrap=True)
    table.add_column("output", no_wrap=True)
    for heading in ("threads", "cold MB/s", "warm MB/s", "hotgrid is"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for row in rows:
        cold, warm, times = (row[key] for key in ("cold_mb_s", "warm_mb_s", "times"))
        ours = row["contestant"] == "hotgrid"
        table.add_row(
            f"{row['contestant']} {row.get('version', '')}",
            row["output"],
            str(row["threads"] or ""),
            "" if cold is None else f"{cold:,.1f}",
            "" if warm is None else f"{warm:,.1f}",
            "" if ours or times is None else f"{times:,.1f}x",
            Text(row["note"], "red" if ours else "dim"),
            style="bold" if ours else "",
        )
    print_table(console, table)
