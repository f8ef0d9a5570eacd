"""The list of checks, and running them one after the other."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from math import nan

from hotgrid.errors import ArgumentError, UnstableError, near
from hotgrid.grid.model import checked_device

from ._check import Check, Terms
from ._checks._cavity import CAVITY
from ._checks._cells import CELLS
from ._checks._channels import CHANNELS
from ._checks._collisions import COLLISIONS
from ._checks._cylinder import CYLINDER
from ._checks._flows import FLOWS
from ._checks._fourier import FOURIER
from ._checks._gases import GASES
from ._checks._laws import LAWS
from ._checks._lenia import LENIA
from ._checks._life import LIFE
from ._checks._neural import NEURAL
from ._checks._pde import PDE
from ._checks._phases import PHASES
from ._checks._thermal import THERMAL
from ._row import Row

CHECKS = (
    *LIFE,
    *CELLS,
    *GASES,
    *LENIA,
    *NEURAL,
    *PDE,
    *LAWS,
    *FOURIER,
    *FLOWS,
    *COLLISIONS,
    *PHASES,
    *THERMAL,
    *CHANNELS,
    *CAVITY,
    *CYLINDER,
)


def validate(
    quick: bool = False,
    device: str | None = None,
    only: Collection[str] = (),
    starting: Callable[[str], None] = lambda name: None,
) -> Iterator[Row]:
    """Compare models with known results on this device; yields rows as they are computed.

    Arguments:
        quick: Only what two CPU cores do in minutes, on coarser grids.
        device: Where to compute; by default the GPU if there is one.
        only: The names of the checks to run, as `check_names` gives them or as their rows
            begin; by default all.
        starting: Called with the name of each check before it is made.

    Example:
        >>> from hotgrid.grid.validate import validate
        >>> [row.passed for row in validate(quick=True, device="cpu", only=["glider"])]
        [True]

    Raises:
        ArgumentError: There is no such device or check, or a requested one is not quick.
    """
    checked_device(device)
    return _rows(chosen(CHECKS, quick, only), Terms(quick, device), starting)


def check_names(quick: bool = False) -> list[str]:
    """The names of all checks, or of the quick ones.

    Example:
        >>> "glider" in check_names(quick=True)
        True
    """
    return [check.name for check in CHECKS if check.quick or not quick]


def chosen(checks: Sequence[Check], quick: bool, only: Collection[str]) -> list[Check]:
    """The checks to make, in their order."""
    wanted: list[Check] = []
    for name in only:
        # As it is written in the table: `Gosper gun`.
        plain = "-".join(name.lower().replace("_", " ").split())
        found = [check for check in checks if plain in (check.name, *check.aliases)]
        if not found:
            known = [check.name for check in checks]
            raise ArgumentError(
                f"there is no check `{name}`{near(plain, known)} (there are {', '.join(known)})"
            )
        if quick and not any(check.quick for check in found):
            raise ArgumentError(f"`{name}` is not a quick check; leave out `quick` to run it")
        wanted += found
    return [
        check
        for check in checks
        if (check.quick or not quick) and (not only or check in wanted)
    ]


def _rows(
    checks: Sequence[Check], terms: Terms, starting: Callable[[str], None]
) -> Iterator[Row]:
    for check in checks:
        starting(check.name)
        begin = time.perf_counter()
        for row in _guarded(check, terms):
            now = time.perf_counter()
            yield replace(row, seconds=now - begin)
            begin = time.perf_counter()


def _guarded(check: Check, terms: Terms) -> Iterator[Row]:
    """The rows of a check; a simulation that blows up is a row that fails."""
    try:
        yield from check.rows(terms)
    except UnstableError as problem:
        yield Row(check.name, nan, nan, nan, nan, False, source="", setting=str(problem))
