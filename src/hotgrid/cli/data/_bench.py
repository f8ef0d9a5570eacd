"""`hotgrid data bench`: how fast a plan makes batches."""

from dataclasses import asdict
from json import dumps
from pathlib import Path

from rich.table import Table

from hotgrid.cli._terminal import Terminal
from hotgrid.errors import ArgumentError

from ._read import read_plan


def bench(
    path: Path,
    /,
    *,
    batch: int = 32,
    workers: int | None = None,
    seconds: float = 5.0,
    json: bool = False,
) -> None:
    """Measure how fast a plan makes batches, and what takes the time.

    Args:
        path: The JSON file of the plan.
        batch: Rows of a batch.
        workers: How many threads; by default one for every core.
        seconds: How long to measure.
        json: Print one JSON object instead.
    """
    if not 0 < seconds <= 3600:
        raise ArgumentError(f"`--seconds` must be above 0 and at most 3600, got {seconds}")
    from hotgrid.data import plan_speed

    found = plan_speed(read_plan(path), batch, workers=workers, seconds=seconds)
    console = Terminal(highlight=False)
    if json:
        console.out(dumps(asdict(found), indent=2), highlight=False)
        return
    console.print(
        f"{found.samples:,.0f} samples/s, {found.megabytes:,.0f} MB/s of tensors; the first "
        f"batch after {found.first:.2f} s",
        soft_wrap=True,
    )
    if found.corrupt:
        console.print(f"{found.corrupt} corrupt samples", soft_wrap=True)
    total = sum(found.steps.values()) or 1.0
    table = Table("step", "ms a sample", "share", box=None, pad_edge=False)
    for name, each in found.steps.items():
        table.add_row(name, f"{each:.3f}", f"{100 * each / total:.0f} %")
    console.for_tables().print(table)
