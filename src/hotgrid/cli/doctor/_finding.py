"""One line of a diagnosis: what was checked, its state, and what to do."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "broken"]


@dataclass(frozen=True)
class Finding:
    """One finding about the machine. These fields are the objects of `doctor --json`.

    Attributes:
        section: The part of the report that it belongs to.
        name: The name of the check; unique within its section.
        value: The result, in short.
        state: `ok`; `note` for something optional that is missing; `broken`.
        detail: More about it: where it came from, or the error text.
        way_out: What to do about it; never empty unless the state is `ok`.
    """

    section: str
    name: str
    value: str
    state: State = "ok"
    detail: str = ""
    way_out: str = ""


def not_seen(section: str, name: str, error: Exception) -> Finding:
    """Return the finding for a check that raised an exception."""
    return Finding(
        section,
        name,
        "check failed",
        state="broken",
        detail=f"{type(error).__name__}: {error}",
        way_out="fix what the error names; if it is a bug in hotgrid, please report it",
    )
