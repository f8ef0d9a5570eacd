"""Bounds of a grid in a rule, as Golly writes them: `B3/S23:T30,20`."""

import re
from dataclasses import dataclass
from typing import Literal

from hotgrid.errors import ArgumentError

Topology = Literal["torus", "plane", "klein", "klein_sideways", "cross_surface", "sphere"]
"""How the edges of a grid are joined."""
TOPOLOGIES: dict[Topology, str] = {
    "torus": "opposite edges are joined",
    "plane": "surrounded by dead cells",
    "klein": "a Klein bottle: top and bottom are joined with a twist",
    "klein_sideways": "a Klein bottle: left and right are joined with a twist",
    "cross_surface": "both pairs of edges are joined with a twist",
    "sphere": "the top is joined to the left side, the bottom to the right side",
}
"""Every topology in a few words."""

_FORM = re.compile(r"([TPKCS])(\d+)(\*?)(?:,(\d+)(\*?))?", re.IGNORECASE)
_LETTERS: dict[tuple[str, bool, bool], Topology] = {
    ("T", False, False): "torus",
    ("P", False, False): "plane",
    ("K", True, False): "klein",
    ("K", False, True): "klein_sideways",
    ("C", False, False): "cross_surface",
    ("S", False, False): "sphere",
}
_KNOWN = "`T30,20`, `P30,20`, `K30*,20`, `K30,20*`, `C30,20` and `S30`"


@dataclass(frozen=True)
class Bounds:
    """A grid of limited size, and how its edges are joined.

    Attributes:
        topology: How the edges are joined.
        size: Rows and columns.

    Example:
        >>> Bounds.parse("K30*,20")
        Bounds(topology='klein', size=(20, 30))
        >>> str(Bounds("sphere", (30, 30)))
        'S30'
    """

    topology: Topology
    size: tuple[int, int]

    @classmethod
    def parse(cls, text: str) -> "Bounds":
        """Read what follows the colon of a rule.

        Raises:
            ArgumentError: It is not a bounded grid, or one that is not supported.
        """
        found = _FORM.fullmatch(text.strip())
        if found is None:
            raise ArgumentError(
                f"`:{text}` is not the bounds of a grid: {_KNOWN} are read, columns first; "
                "shifted edges (`T30+5,20`) are not supported"
            )
        letter, columns, rows = found[1].upper(), int(found[2]), int(found[4] or found[2])
        topology = _LETTERS.get((letter, bool(found[3]), bool(found[5])))
        if topology is None:
            raise ArgumentError(
                f"`:{text}`: one side of a Klein bottle has a `*`, and no other grid has one; "
                f"{_KNOWN} are read"
            )
        if not (rows and columns):
            raise ArgumentError(
                f"`:{text}` is unbounded along a side; every grid here is bounded: write the "
                "number of cells instead of 0"
            )
        if topology == "sphere" and rows != columns:
            raise ArgumentError(f"`:{text}`: a sphere is square, as `:S{columns}`")
        return cls(topology, (rows, columns))

    def __str__(self) -> str:
        [(letter, wide, high)] = [
            key for key, name in _LETTERS.items() if name == self.topology
        ]
        rows, columns = self.size
        if letter == "S":
            return f"S{columns}"
        return f"{letter}{columns}{'*' * wide},{rows}{'*' * high}"


def parted(text: str) -> tuple[str, Bounds | None]:
    """A rule and its bounds, if it has some."""
    rule, colon, bounds = text.partition(":")
    return rule, Bounds.parse(bounds) if colon else None
