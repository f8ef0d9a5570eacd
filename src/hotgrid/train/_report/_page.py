"""`report.html`: one self-contained page about a run."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hotgrid._version import __version__
from hotgrid.files import whole_file

from ._chart import chart
from ._dashboard import charts
from ._plot import short
from ._run import RunSummary, read_run
from ._style import SCRIPT, STYLE

REPORT = "report.html"
"""The name of the report in the folder of a run."""
_GOOD = ("finished", "early stopping")
_MARKED = ("resume", "rollback")
_TOLD = ("resume", "rollback", "fault", "end")


def write_report(
    folder: str | Path,
    file: str | Path | None = None,
    *,
    pictures: Mapping[str, Path] | None = None,
) -> Path:
    """Write the report of a run: figures, curves, groups, settings, what happened.

    The page is one file with inline SVG. It needs no network, and follows the light or dark
    setting of the reader.

    Args:
        folder: The folder of the run.
        file: Where to write; by default `report.html` in the folder.
        pictures: PNG files to show in it, by title.

    Returns:
        The file.

    Raises:
        StoreError: There is no training run in the folder, or the disk is full.
        DamagedError: Its files are damaged.
    """
    run = read_run(folder)
    path = Path(folder) / REPORT if file is None else Path(file)
    with whole_file(path) as aside:
        aside.write_text("".join(_page(run, pictures or {})), encoding="utf-8")
    return path


def _page(run: RunSummary, pictures: Mapping[str, Path]) -> Iterator[str]:
    title = html.escape(run.folder.resolve().name)
    yield '<!doctype html><html lang="en"><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title} - training report</title><style>{STYLE}</style><main>"
    kind = "good" if run.status in _GOOD else "bad" if _failed(run) else ""
    shown = "ended with a fault" if kind == "bad" else run.status
    badge = f'<span class="status {kind}">{html.escape(shown)}</span>'
    yield f"<header><h1>{title}</h1>{badge}</header>"
    yield f'<p class="sub">{html.escape(_subtitle(run.facts))}</p>'
    yield f'<div class="tiles">{"".join(_tiles(run))}</div>'
    marks = sorted({each["step"] for each in run.events if each["event"] in _MARKED})
    yield '<div class="charts">'
    for name, series in charts(run.curves).items():
        yield chart(name, series, marks)
    yield "</div>"
    for name, picture in pictures.items():
        data = base64.b64encode(picture.read_bytes()).decode()
        yield f"<section><h2>{html.escape(name)}</h2>"
        yield f'<img alt="{html.escape(name)}" style="max-width: 100%" '
        yield f'src="data:image/png;base64,{data}"></section>'
    yield _groups(run.facts.get("groups"))
    yield _happened(run.events)
    yield _settings(run.asked)
    yield f"<footer>Written by hotgrid {__version__} from events.jsonl.</footer>"
    yield f"</main><script>{SCRIPT}</script></html>\n"


def _failed(run: RunSummary) -> bool:
    return bool(run.events) and run.events[-1]["event"] == "fault"


def _subtitle(facts: Mapping[str, Any]) -> str:
    parts = [str(facts.get("module", "a module"))]
    if isinstance(facts.get("parameters"), int):
        parts.append(f"{facts['parameters']:,} parameters")
    parts += [str(facts[name]) for name in ("device", "precision", "time") if name in facts]
    if isinstance(facts.get("ranks"), int) and facts["ranks"] > 1:
        parts.insert(2, f"{facts['ranks']} ranks")
    return " · ".join(parts)


def _tiles(run: RunSummary) -> Iterator[str]:
    steps = run.facts.get("steps")
    of = f"of {steps:,}" if isinstance(steps, int) else ""
    yield _tile("steps", f"{run.step:,}", of)
    for name, points in run.curves.items():
        if "gradient norm" in name or "rate, " in name:
            continue
        step, best = run.best(name)
        note = f"best {short(best)} at step {step:,}"
        if name.endswith("a second"):
            note = f"highest {short(best)}"
        yield _tile(name, short(points[-1][1]), note)
    missing = [
        name
        for each in run.events[-2:]
        for name, value in (each.get("values") or {}).items()
        if value is None and name not in run.curves
    ]
    for name in dict.fromkeys(missing):
        note = "not known for this device" if name.endswith("MFU") else "nothing to show"
        yield _tile(name, "n/a", note)


def _tile(name: str, value: str, note: str) -> str:
    return (
        f'<div class="tile"><span>{html.escape(name)}</span><b>{html.escape(value)}</b>'
        f"<i>{html.escape(note)}</i></div>"
    )


def _groups(groups: Any) -> str:
    if isinstance(groups, str) and groups:
        return f"<section><h2>groups</h2><pre>{html.escape(groups)}</pre></section>"
    if not isinstance(groups, list) or not groups:
        return ""
    columns = list(dict.fromkeys(name for row in groups for name in row))
    rows = [[row.get(name) for name in columns] for row in groups]
    return f"<section><h2>groups</h2>{_table(columns, rows)}</section>"


def _happened(events: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [
            each["step"],
            each["event"],
            each.get("text") or each.get("why") or each.get("time", ""),
        ]
        for each in events
        if each["event"] in _TOLD
    ]
    if not rows:
        return ""
    return f"<section><h2>what happened</h2>{_table(['step', 'event', ''], rows)}</section>"


def _settings(asked: Mapping[str, str]) -> str:
    if not asked:
        return ""
    rows = [[name, value] for name, value in asked.items() if name != "optimizer"]
    return f"<section><h2>settings</h2>{_table(['name', 'value'], rows)}</section>"


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = "".join(
        f"<th{_kind(rows, at)}>{html.escape(x)}</th>" for at, x in enumerate(columns)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{_kind(rows, at)}>{_cell(x)}</td>" for at, x in enumerate(row))
        + "</tr>"
        for row in rows
    )
    kind = ' class="few"' if len(columns) < 4 else ""
    return f"<table{kind}><tr>{head}</tr>{body}</table>"


def _kind(rows: Sequence[Sequence[Any]], column: int) -> str:
    numbers = all(isinstance(row[column], int | float | None) for row in rows)
    return ' class="number"' if numbers else ' class="text"'


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return html.escape(short(value) if isinstance(value, int | float) else str(value))
