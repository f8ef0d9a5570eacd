"""Life: cells that are born, stay and die by the number of their living neighbours."""

from collections.abc import Mapping
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.model import Field, Model, Neighbours, Planes, expect_flag

from ._cells import CellModel
from ._patterns import Pattern, find_pattern
from ._rules import TOPOLOGIES, Neighbourhood, Rule, Topology, parted
from ._words import CELLS_PER_WORD, PackedCounts, PackedLife, PackedWindow

_OLDEST = 32767


class Life(CellModel):
    """Two-state automata on the square grid: the Game of Life and related rules.

    If possible, a grid is stored and stepped as 32 cells per word, which is many times
    faster and gives the same cells.

    Arguments:
        rule: A rule as `Rule.parse` reads it; by default that of the pattern, else B3/S23.
        neighbourhood: `"moore"` (8 neighbours), `"von_neumann"` (4) or `"hexagonal"` (6);
            by default as given by the rule.
        topology: `"torus"` joins opposite edges; a `"plane"` is surrounded by dead cells. The
            others join edges with a twist; hexagons cannot have those. By default as the bounds
            of the rule or of the pattern say, else a torus.
        packed: Whether 32 cells share a word; by default if the columns are a multiple of
            32, and there is neither age nor noise.
        pattern: The pattern in the middle at the start: itself, by name, or a file that
            ends in `.rle` or `.cells`; by default cells at random.
        density: The share of living cells of a random start.
        age: Whether to count, in the field `age` (int16), at the ends of how many steps
            in a row a cell has been alive.
        noise: The probability with which a cell, after the rule, is flipped in a step.
            Each cell then has a random number of its own, in the field `random` (int32).

    Example:
        >>> life = Life("B36/S23", topology="plane")
        >>> str(life.rule)
        'B36/S23'

    Raises:
        ArgumentError: An argument is wrong; the message names it.
    """

    def __init__(
        self,
        rule: str | Rule | None = None,
        *,
        neighbourhood: Neighbourhood | None = None,
        topology: Topology | None = None,
        packed: bool | None = None,
        pattern: str | Path | Pattern | None = None,
        density: float = 0.3,
        age: bool = False,
        noise: float = 0.0,
    ) -> None:
        found = None if pattern is None else find_pattern(pattern)
        given = (own_rule(found, Rule) or "B3/S23") if rule is None else rule
        bounds = None
        if isinstance(given, str):
            given, bounds = parted(given)
        self.rule = checked_rule(given, 2, neighbourhood)
        if self.rule.neighbourhood != "hexagonal":
            self.topologies = tuple(TOPOLOGIES)
        super().__init__(topology, density, noise, bounds=bounds, pattern=found)
        if packed is not None:
            expect_flag("packed", packed)
        self.packed = packed
        expect_flag("age", age)
        self.age = age
        if age:
            self.fields = (
                *self.fields,
                Field("age", dtype=torch.int16, boundary=self.boundary),
            )

    def faster(self, size: tuple[int, ...]) -> Model:
        """The packed model if it can run a grid of this size, else this model.

        Raises:
            ArgumentError: `packed` is True and it cannot.
        """
        if not packs(self, size, self.packed):
            return self
        if self.rule.neighbourhood == "moore":
            return PackedLife(self.rule, self.boundary)
        return PackedWindow(self.rule.table(), self.boundary)

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One generation."""
        after = self.with_noise(counted(state["cells"], self.rule), state)
        if not self.age:
            return {**after}
        older = state["age"][0, 0].clamp(max=_OLDEST - 1) + 1
        return {**after, "age": older * after["cells"]}


class Life3D(CellModel):
    """Two-state automata on the cubic grid, by default with 26 neighbours.

    Arguments:
        rule: A rule as `Rule.parse` reads it, counts separated by commas, or as ranges.
        neighbourhood: `"moore"` (26 neighbours) or `"von_neumann"` (6); by default as the
            given by the rule.
        topology: `"torus"` joins opposite edges; a `"plane"` is surrounded by dead cells.
        packed: Whether 32 cells share a word; by default if the columns are a multiple of
            32, and there is no noise.
        density: The share of living cells at the start.
        noise: The probability with which a cell, after the rule, is turned over in a step.

    Example:
        >>> str(Life3D("B6/S5..7").rule)
        'B6/S5..7'
        >>> str(Life3D(Rule(birth=[4], survival=[5], rank=3)).rule)
        'B4/S5'

    Raises:
        ArgumentError: An argument is wrong; the message names it.
    """

    ranks = (3,)
    size = (64, 64, 64)

    def __init__(
        self,
        rule: str | Rule = "B5/S4,5",
        *,
        neighbourhood: Neighbourhood | None = None,
        topology: Literal["torus", "plane"] = "torus",
        packed: bool | None = None,
        density: float = 0.2,
        noise: float = 0.0,
    ) -> None:
        super().__init__(topology, density, noise)
        self.rule = checked_rule(rule, 3, neighbourhood)
        if packed is not None:
            expect_flag("packed", packed)
        self.packed = packed

    def faster(self, size: tuple[int, ...]) -> Model:
        """The packed model if it can run a grid of this size, else this model.

        Raises:
            ArgumentError: `packed` is True and it cannot.
        """
        return (
            PackedCounts(self.rule, self.boundary) if packs(self, size, self.packed) else self
        )

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """One generation."""
        return {**self.with_noise(counted(state["cells"], self.rule), state)}


def packs(model: CellModel, size: tuple[int, ...], wanted: bool | None) -> bool:
    """Return whether 32 cells of a model share a word.

    Raises:
        ArgumentError: Packing was requested and is impossible.
    """
    obstacle = ""
    if any(field.name == "age" for field in model.fields):
        obstacle = "ages do not fit into bits; leave out `age`"
    elif len(model.fields) > 1:
        obstacle = "random numbers do not fit into bits; leave out `noise`"
    elif size[-1] % CELLS_PER_WORD:
        obstacle = f"the {size[-1]} columns are not a multiple of {CELLS_PER_WORD}"
    if obstacle and wanted:
        raise ArgumentError(f"`packed` is True, but {obstacle}")
    return not obstacle and wanted is not False


def own_rule(found: Pattern | None, kind: type[Any]) -> Any:
    """The rule of a pattern, which must be one of a kind; None if it has none."""
    if found is None or found.rule is None or isinstance(found.rule, kind):
        return found and found.rule
    raise ArgumentError(
        f"the pattern {found.name or 'without a name'} was made for the rule {found.rule}, "
        f"which this model does not run; choose another model, or pass a `rule`"
    )


def checked_rule(rule: str | Rule, rank: int, neighbourhood: Neighbourhood | None) -> Rule:
    """A rule that is text or a rule already, for a number of dims."""
    if not isinstance(rule, Rule):
        return Rule.parse(rule, rank, neighbourhood)
    if rule.rank != rank or neighbourhood not in (None, rule.neighbourhood):
        raise ArgumentError(
            f"the rule {rule} is one of {rule.around}; a rule of {rank} dims"
            + (f" with `neighbourhood` {neighbourhood!r}" if neighbourhood else "")
            + " is needed"
        )
    return rule


def counted(cells: Neighbours, rule: Rule) -> Tensor:
    """The cells of the next generation, `[*space]`."""
    n = reduce(add, [cells[offset] for offset in rule.offsets()])
    return decided(n, cells[(0,) * rule.rank], rule)


def decided(n: Tensor, cell: Tensor, rule: Rule) -> Tensor:
    """Whether cells live next, 0 or 1, from their counts and whether they live now.

    Arithmetic stays in bytes where it can, and avoids `&` and `|` between comparisons:
    on a CPU those leave the vector unit.
    """
    born, stays = rule.mask(alive=False), rule.mask(alive=True)
    if rule.most > 8:
        table = cell.to(torch.int32) * (stays - born) + born
        return ((table >> n) & 1).to(torch.uint8)
    if (born, stays) == (0b1000, 0b1100):
        return ((n | cell) == 3).to(torch.uint8)
    # A byte holds the answers for 0 to 7; 8 reads the one for 0, turned over if it differs.
    after = _either(cell, born, stays) >> (n & 7)
    born_turned, stays_turned = (born ^ (born >> 8)) & 1, (stays ^ (stays >> 8)) & 1
    if rule.most == 8 and (born_turned or stays_turned):
        after = after ^ ((n >> 3) & _either(cell, born_turned, stays_turned))
    return after & 1


def _either(cell: Tensor, dead: int, alive: int) -> Tensor:
    """For every cell the low byte of one number or the other."""
    # Not by a product: vector units have none for bytes.
    return ((0 - cell) & ((dead ^ alive) & 255)) ^ (dead & 255)
