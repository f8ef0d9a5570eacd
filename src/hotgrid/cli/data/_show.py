"""`hotgrid data show`: the columns and steps of a plan, and some samples."""

from __future__ import annotations

from json import dumps, loads
from pathlib import Path
from typing import Any

from rich.table import Table

from hotgrid.cli._terminal import Terminal
from hotgrid.errors import ArgumentError

from ._read import read_plan


def show(path: Path, /, *, samples: int = 1, json: bool = False) -> None:
    """Show the columns and the steps of a plan, and some samples.

    Args:
        path: The JSON file of the plan.
        samples: How many samples to make and describe; 0 does not open the source.
        json: Print one JSON object instead.
    """
    if samples < 0:
        raise ArgumentError(f"`--samples` {samples}: choose 0 or more")
    plan = read_plan(path)
    console = Terminal(highlight=False)
    count, facts, rows = _made(plan, samples) if samples else (None, {}, [])
    if json:
        types = {name: str(kind) for name, kind in plan.types().items()}
        found = {"plan": loads(plan.to_json()), "fingerprint": plan.fingerprint()}
        found |= {"columns": types, "yields": [*plan.yielded()], "samples": count}
        found |= {"facts": facts, "first": rows}
        console.out(dumps(found, indent=2, ensure_ascii=False), highlight=False)
        return
    console.print(plan.graph(), soft_wrap=True, markup=False)
    if not samples:
        return
    classes = facts.get("classes")
    known = f", {len(classes)} classes" if classes else ""
    console.print(f"\n{count:,} samples{known}", soft_wrap=True)
    for row in rows:
        console.print(f"\n{row['place']}", soft_wrap=True, markup=False)
        if "problem" in row:
            console.print(f"  corrupt: {row['problem']}", soft_wrap=True, markup=False)
            continue
        table = Table(box=None, pad_edge=False, show_header=False)
        for name, text in row["columns"].items():
            table.add_row(f"  {name}", text)
        console.for_tables().print(table)


def _made(plan: Any, samples: int) -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
    """The number of samples, the facts known about them, and a description of the first."""
    from hotgrid.data._executor._corrupt import CorruptError
    from hotgrid.data._executor._runner import Runner

    runner = Runner(plan)
    rows: list[dict[str, Any]] = []
    for index in range(min(samples, len(runner.samples))):
        row: dict[str, Any] = {"place": runner.samples.place(index)}
        try:
            made = runner.run(index)
            row["columns"] = {name: _described(value) for name, value in made.items()}
        except CorruptError as problem:
            row["problem"] = str(problem)
        rows.append(row)
    return len(runner.samples), runner.samples.facts, rows


def _described(value: Any) -> str:
    """A value in one line: small ones as they are, arrays by shape and range."""
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if hasattr(value, "shape") and value.shape:
        size = "x".join(map(str, value.shape))
        span = f", {value.min():.4g} to {value.max():.4g}" if value.size else ""
        mean = f", mean {value.mean():.4g}" if value.size else ""
        return f"{value.dtype} {size}{span}{mean}"
    text = value if isinstance(value, str) else dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 72 else text[:69] + "..."
