"""Life on hexagons: six neighbours around a cell."""

from pathlib import Path

from hotgrid.errors import ArgumentError

from ._life import Life
from ._patterns import Pattern, find_pattern
from ._rules import Rule


class HexLife(Life):
    """Two-state automata on hexagons, stored on a square grid.

    Rows are shifted by half a cell against each other, so that a cell touches those above,
    below, left, right, upper left and lower right. Pictures show the square grid.

    Arguments:
        rule: A rule that ends in `H`; by default that of the pattern, else `B2/S34H`.
        topology: `"torus"` or `"plane"`.
        packed: Whether 32 cells share a word, as for `Life`.
        pattern: The pattern in the middle at the start, as for `Life`.
        density: The share of living cells of a random start.

    Example:
        >>> HexLife("B2/S34H").rule.most
        6

    Raises:
        ArgumentError: An argument is wrong; the message names it.
    """

    def __init__(
        self,
        rule: str | Rule | None = None,
        *,
        topology: str | None = None,
        packed: bool | None = None,
        pattern: str | Path | Pattern | None = None,
        density: float = 0.15,
    ) -> None:
        found = None if pattern is None else find_pattern(pattern)
        if rule is None and not (found and found.rule):
            rule = "B2/S34H"
        super().__init__(
            rule,
            topology=topology,  # pyright: ignore[reportArgumentType]
            packed=packed,
            pattern=found,
            density=density,
        )
        if self.rule.neighbourhood != "hexagonal":
            raise ArgumentError(
                f"the rule {self.rule} is not for hexagons; it must end in `H`, as `B2/S34H`"
            )
