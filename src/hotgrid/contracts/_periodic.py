"""Periodic checks: often at first, when things go wrong, then rarely."""

import sys
from types import CodeType
from typing import Any

from hotgrid.errors import ArgumentError

from ._contract import Contract, as_contract, traced_as
from ._matcher import Given

_FIRST_CALLS = 10


class Schedule:
    """Which calls of many are due.

    The first ten are, then every second, fourth, eighth... call, until one in
    `longest`. Threads may share one: a race shifts a check by a call or two.

    Arguments:
        longest: the longest distance between two calls that are due.

    Example:
        >>> schedule = Schedule()
        >>> [call for call in range(50) if schedule.due()]
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 24, 40]
    """

    __slots__ = ("_hits", "_period", "_skip", "longest")

    def __init__(self, longest: int = 1000) -> None:
        if longest < 1:
            raise ArgumentError(f"`longest` must be at least 1, got {longest}")
        self.longest = longest
        self._hits = 0
        self._period = 1
        self._skip = 0

    def due(self) -> bool:
        """Count one call, and return whether it is due."""
        if self._skip:
            self._skip -= 1
            return False
        self._advance()
        return True

    def _advance(self) -> None:
        self._hits += 1
        if self._hits > _FIRST_CALLS:
            self._period = min(2 * self._period, self.longest)
        self._skip = self._period - 1


class PeriodicContract(Schedule):
    """A contract that is checked on a thinning schedule.

    For outputs in hot loops: a wrong shape shows in the first calls or not at
    all. Inputs are better unpacked every time, since the sizes are needed.
    Under `torch.compile` the check costs nothing and always happens.

    Arguments:
        contract: a contract, or its text.
        longest: the longest distance between two checks, in calls.

    Example:
        >>> result = PeriodicContract("batch tokens width")
        >>> result.check((2, 3, 4)) is None
        True
    """

    __slots__ = ("contract",)

    def __init__(self, contract: str | Contract, longest: int = 1000) -> None:
        super().__init__(longest)
        self.contract = as_contract(contract)

    def _traced_check(self, shape: Any, bindings: Given | None = None) -> None:
        self.contract.check(shape, bindings)

    @traced_as(_traced_check)
    def check(self, shape: Any, bindings: Given | None = None) -> None:
        """Check the shape if this call is due.

        Raises:
            ContractError: the call was due and the shape does not match.
        """
        # `due` written out: calling it would cost as much as the check it saves.
        if self._skip:
            self._skip -= 1
            return
        self._advance()
        self.contract.check(shape, bindings)


# One schedule for each calling line, as long as its code exists.
_call_sites: dict[tuple[CodeType, int], Schedule] = {}


def _traced_assert(
    contract: str | Contract,
    shape: Any,
    bindings: Given | None = None,
    longest: int = 1000,
) -> None:
    as_contract(contract).check(shape, bindings)


@traced_as(_traced_assert)
def assert_shape_periodically(
    contract: str | Contract,
    shape: Any,
    bindings: Given | None = None,
    longest: int = 1000,
) -> None:
    """As `assert_shape`, on a thinning schedule kept for each place it is called from.

    Example:
        >>> for _ in range(100):
        ...     assert_shape_periodically("b c", (2, 3))

    Raises:
        ContractError: this call was due and the shape does not match.
    """
    caller = sys._getframe(1)
    site = (caller.f_code, caller.f_lasti)
    schedule = _call_sites.get(site)
    if schedule is None:
        schedule = _call_sites.setdefault(site, Schedule(longest))
    if schedule.due():
        as_contract(contract).check(shape, bindings)
