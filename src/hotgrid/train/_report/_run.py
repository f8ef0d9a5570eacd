"""`read_run`: a training run, read from its folder."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotgrid.errors import DamagedError

from ._events import curves, read_events

# Values of which the highest is the best, for runs that do not say so.
_HIGHER = ("accuracy", "a second", "MFU", "return")


@dataclass(frozen=True)
class RunSummary:
    """A training run as its folder describes it.

    Attributes:
        folder: The folder.
        facts: The module, ranks, device and groups it began with, and whether the lowest or
            the highest of a value is its best.
        asked: Everything that determines the results, from `run.toml`.
        curves: Points (step, value) by name, such as `train/loss`.
        events: All events.
        step: The last step that was logged.
        status: `finished`, `early stopping`, `stopped`, `ended by a fault` or `not ended`.
    """

    folder: Path
    facts: dict[str, Any]
    asked: dict[str, str]
    curves: dict[str, list[tuple[int, float]]]
    events: list[dict[str, Any]]
    step: int
    status: str

    def best(self, name: str) -> tuple[int, float]:
        """Return the step and the value at which a curve is best."""
        better = self.facts.get("better", {}).get(name)
        highest = name.endswith(_HIGHER) if better is None else better == "highest"
        return (max if highest else min)(self.curves[name], key=lambda point: point[1])


def read_run(folder: str | Path) -> RunSummary:
    """Read a run from its folder; nothing in it is executed, and torch is not needed.

    Raises:
        StoreError: There is no training run in the folder.
        DamagedError: Its files are damaged.
    """
    folder = Path(folder)
    events = read_events(folder)
    start = next((each for each in events if each["event"] == "start"), {})
    last = events[-1] if events else {}
    status = {"end": last.get("why"), "fault": "ended by a fault"}.get(last.get("event", ""))
    wanted = [each["steps"] for each in events if "steps" in each]
    better: dict[str, str] = {}
    for said in (each.get("better") for each in events):
        better |= said if isinstance(said, dict) else {}
    asked: dict[str, str] = {}
    try:
        record = tomllib.loads((folder / "run.toml").read_text(encoding="utf-8"))
        asked = {str(name): str(value) for name, value in record.get("asked", {}).items()}
    except FileNotFoundError:
        pass
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise DamagedError(f"`{folder / 'run.toml'}` cannot be read: {problem}") from None
    return RunSummary(
        folder=folder,
        facts={
            **{k: v for k, v in start.items() if k not in ("event", "step")},
            **({"steps": wanted[-1]} if wanted else {}),
            "better": better,
        },
        asked=asked,
        curves=curves(events),
        events=events,
        step=max((each["step"] for each in events), default=0),
        status=str(status or "not ended"),
    )
