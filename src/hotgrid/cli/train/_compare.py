"""`hotgrid train compare`: runs side by side."""

from json import dumps
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table

from hotgrid.cli._terminal import Terminal
from hotgrid.errors import ArgumentError

from ._show import chosen, plots


def compare(
    *runs: Path,
    only: Annotated[tuple[str, ...] | None, Parameter(consume_multiple=True)] = None,
    json: bool = False,
) -> None:
    """Compare runs: curves, last and best values, and settings that differ.

    Args:
        runs: The folders of the runs, two or more.
        only: The names of the values to compare, such as valid/loss; by default all that
            are neither norms nor rates.
        json: Print one JSON object instead of plots and tables.
    """
    if len(runs) < 2:
        raise ArgumentError("name two runs or more, such as `hotgrid train compare a b`")
    from hotgrid.train import compare_runs, read_run
    from hotgrid.train._report import short

    found = [read_run(run) for run in runs]
    compared = compare_runs(found)
    names = chosen(compared["values"], only)
    if only is None:
        names = [each for each in names if "gradient norm" not in each and "rate, " not in each]
    console = Terminal(highlight=False)
    if json:
        compared["values"] = {name: compared["values"][name] for name in names}
        console.out(dumps(compared, indent=2, ensure_ascii=False), highlight=False)
        return
    for name in names:
        # One chart for each value, with a curve for each run.
        title = name.replace("/", " ")
        curves = {
            f"/{title}, {run.folder}": run.curves[name] for run in found if name in run.curves
        }
        for line in plots(curves, console):
            console.print(line, soft_wrap=True)
    table = Table("value", *map(str, runs), box=None, pad_edge=False)
    table.add_row("steps", *(f"{step:,}" for step in compared["steps"]))
    table.add_row("status", *compared["status"])
    for name in names:
        for kind in ("last", "best"):
            cells = compared["values"][name][kind]
            table.add_row(f"{name}, {kind}", *("" if x is None else short(x) for x in cells))
    for name, values in compared["settings"].items():
        table.add_row(f"setting {name}", *(value or "" for value in values))
    console.for_tables().print(table)
