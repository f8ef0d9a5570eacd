"""The table as one self-contained HTML page."""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

import torch

from hotgrid._version import __version__
from hotgrid.files import whole_file
from hotgrid.grid.model import checked_device

from ._row import Row

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8886; padding: .3rem .6rem; text-align: left; }
td { vertical-align: top; }
.number { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
.small { font-size: .85rem; opacity: .75; }
.pass { color: #18794e; } .fail { color: #cd2b31; font-weight: bold; }
:root { color-scheme: light dark; }
"""

_HEADINGS = ("", "reference", "value", "error", "limit", "", "source", "seconds")


def write_page(path: str | Path, rows: Sequence[Row], device: str | None = None) -> Path:
    """Write the table as one HTML page without scripts, atomically.

    Arguments:
        path: The file.
        rows: The rows, in their order.
        device: Where they were computed.

    Returns:
        The path of the file.

    Example:
        `write_page("table.html", list(validate(quick=True)), "cpu")`
    """
    path = Path(path)
    with whole_file(path) as aside:
        aside.write_text(_page(rows, place(device)), encoding="utf-8")
    return path


def place(device: str | None) -> str:
    """Where rows are computed, as text."""
    found = checked_device(device)
    name = (
        torch.cuda.get_device_name(found)
        if found.type == "cuda"
        else f"{found.type}, {torch.get_num_threads()} threads"
    )
    return f"{name}; hotgrid {__version__}, torch {torch.__version__}"


def number(value: float) -> str:
    """A number as the table shows it."""
    return f"{value:.6g}"


def _page(rows: Sequence[Row], where: str) -> str:
    passed = sum(row.passed for row in rows)
    heads = "".join(f"<th>{heading}</th>" for heading in _HEADINGS)
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    lines = "\n".join(_line(row) for row in rows)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>hotgrid validate</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>Validation of hotgrid</h1>\n"
        f"<p>{passed} of {len(rows)} rows pass. Computed on {escape(where)}, {when}.</p>\n"
        f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{lines}\n</tbody>\n</table>\n"
        "</body>\n</html>\n"
    )


def _line(row: Row) -> str:
    numbers = "".join(
        f'<td class="number">{number(x)}</td>'
        for x in (row.reference, row.value, row.error, row.limit)
    )
    word = "pass" if row.passed else "fail"
    setting = f'<div class="small">{escape(row.setting)}</div>' if row.setting else ""
    return (
        f"<tr><td>{escape(row.name)}{setting}</td>{numbers}"
        f'<td class="{word}">{word}</td><td class="small">{escape(row.source)}</td>'
        f'<td class="number">{row.seconds:.1f}</td></tr>'
    )
