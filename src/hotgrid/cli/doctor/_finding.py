"""One line of a diagnosis: what was looked at, how it stands, and the way out."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "broken"]


@dataclass(frozen=True)
class Finding:
    """What one look at the machine found. These fields are the objects of `doctor --json`.

    Attributes:
        section: Which part of the report it belongs to.
        name: What was looked at; unique within its section.
        value: What was found, in a few words.
        state: `ok`; `note` for something that may be missing at a cost; `broken`.
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
    """Return what to report when looking at something raised an exception."""
    return Finding(
        section,
        name,
        "could not look",
        state="broken",
        detail=f"{type(error).__name__}: {error}",
        way_out="correct what the error names; if hotgrid is at fault, please report it",
    )
