"""`hotgrid train show`: the curves and the groups of a run."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from hotgrid.cli._terminal import Terminal
from hotgrid.errors import ArgumentError, near

if TYPE_CHECKING:
    from hotgrid.train import RunSummary


def show(
    run: Path,
    /,
    *,
    only: Annotated[tuple[str, ...] | None, Parameter(consume_multiple=True)] = None,
    json: bool = False,
    html: Path | None = None,
) -> None:
    """Show the curves and the groups of a run.

    Args:
        run: The folder of the run.
        only: The names of the values to show, such as valid/loss; by default all.
        json: Print one JSON object instead: facts, curves and events.
        html: Write the report to this file as well, as one page.
    """
    from hotgrid.train import read_run, write_report

    found = read_run(run)
    names = chosen(found.curves, only)
    if html is not None:
        write_report(run, html)
    console = Terminal(highlight=False)
    if json:
        curves = {name: found.curves[name] for name in names}
        plain = {"folder": str(run), "status": found.status, "step": found.step}
        plain |= {"facts": found.facts, "asked": found.asked, "curves": curves}
        console.out(dumps(plain, indent=2, ensure_ascii=False), highlight=False)
        return
    console.print(_head(found), soft_wrap=True)
    for line in plots({name: found.curves[name] for name in names}, console):
        console.print(line, soft_wrap=True)
    for table in _tables(found, names):
        console.for_tables().print(table)


def chosen(known: Any, only: tuple[str, ...] | None) -> list[str]:
    """The names to show; an unknown one is an error."""
    for name in only or ():
        if name not in known:
            hint = near(name, known) or f"; there are {', '.join(known) or 'none'}"
            raise ArgumentError(f"the run has no value `{name}`{hint}")
    return list(only or known)


def plots(found: dict[str, Any], console: Terminal) -> list[Text]:
    """The charts of some curves, each with a legend."""
    from hotgrid.train._report import COLOURS, charts, text_plot

    width = min(console.width if console.is_terminal else 80, 110)
    lines: list[Text] = []
    for title, series in charts(found).items():
        head = Text(f"{title}  ", "bold")
        for number, name in enumerate(series):
            head.append(f"● {name}  ", COLOURS[number % len(COLOURS)])
        lines += [head, text_plot(series, width=width), Text()]
    return lines


def _head(run: RunSummary) -> Text:
    facts = run.facts
    parts = [run.status, f"{run.step:,} of {facts.get('steps', 0):,} steps"]
    parts += [str(facts[name]) for name in ("module", "device", "precision") if name in facts]
    if facts.get("ranks", 1) != 1:
        parts.append(f"{facts['ranks']} ranks")
    return Text.assemble((str(run.folder), "bold"), "  " + ", ".join(parts), "\n")


def _tables(run: RunSummary, names: list[str]) -> list[Table | Text]:
    from hotgrid.train._report import short

    values = Table("value", "last", "best", "at step", box=None, pad_edge=False)
    for name in names:
        step, best = run.best(name)
        values.add_row(name, short(run.curves[name][-1][1]), short(best), f"{step:,}")
    tables: list[Table | Text] = [values]
    groups = run.facts.get("groups")
    if isinstance(groups, str):
        tables.append(Text("\n" + groups))
    elif isinstance(groups, list) and groups:
        columns = list(dict.fromkeys(key for row in groups for key in row))
        table = Table(*columns, box=None, pad_edge=False)
        for row in groups:
            cells = (row.get(key) for key in columns)
            table.add_row(*(_cell(each) for each in cells))
        tables += [Text(), table]
    told = [each for each in run.events if each["event"] in ("fault", "rollback", "resume")]
    if told:
        tables.append(Text())
    for each in told:
        tables.append(Text(f"{each['event']} at step {each['step']:,} {each.get('text', '')}"))
    return tables


def _cell(value: Any) -> str:
    from hotgrid.train._report import short

    if value is None:
        return ""
    return short(value) if isinstance(value, int | float) else str(value)
