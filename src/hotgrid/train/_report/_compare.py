"""`compare_runs`: the values of several runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._run import RunSummary


def compare_runs(runs: Sequence[RunSummary]) -> dict[str, Any]:
    """Return the differences between runs, and their values.

    Returns:
        `settings` has each setting that is not the same in all runs, with its value in
        every run. `values` has for each name the last and the best value of every run,
        None where a run has none.

    Example:
        `compare_runs([read_run("a"), read_run("b")])["values"]["valid/loss"]`
    """
    settings: dict[str, list[str | None]] = {}
    for name in sorted({name for run in runs for name in run.asked}):
        values = [run.asked.get(name) for run in runs]
        if len(set(values)) > 1:
            settings[name] = values
    names = dict.fromkeys(name for run in runs for name in run.curves)
    return {
        "runs": [str(run.folder) for run in runs],
        "steps": [run.step for run in runs],
        "status": [run.status for run in runs],
        "settings": settings,
        "values": {
            name: {
                "last": [
                    run.curves[name][-1][1] if name in run.curves else None for run in runs
                ],
                "best": [run.best(name)[1] if name in run.curves else None for run in runs],
            }
            for name in names
        },
    }
