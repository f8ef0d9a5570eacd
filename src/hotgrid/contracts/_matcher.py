"""One matcher for one or several contracts that share their names.

The native core answers the common case and returns None for everything else;
the readable solver then decides. Without the core the solver does it all.
"""

import operator
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from hotgrid import _native
from hotgrid.errors import ArgumentError

from ._expression import names_in
from ._parse import Term
from ._solve import Mismatch, solve

_LARGEST = 2**63 - 1


class Bindings(dict[str, int]):
    """Names and the sizes bound to them: a dict that is true even when empty.

    A match is a match, also of a contract that names nothing, so
    `if contract.try_check(x):` means what it says.
    """

    __slots__ = ()

    def __bool__(self) -> bool:
        return True


class Matcher:
    """Contracts over shared names, ready to be matched.

    `fast(bindings, *shapes)` is the native match, or a function that always
    leaves the decision to `decide`.
    """

    __slots__ = ("fast", "groups", "names", "native")

    def __init__(self, groups: tuple[tuple[Term, ...], ...]) -> None:
        self.groups = groups
        self.names = _names(groups)
        self.native = _native_matcher(groups, self.names)
        self.fast = self.native.match if self.native else _undecided

    def decide(self, bindings: Any, *shapes: Any) -> Bindings | tuple[Mismatch, Bindings]:
        """The bindings, or what is wrong and what was bound until then."""
        sizes = [None if shape is None else read_shape(shape) for shape in shapes]
        known = read_bindings(bindings)
        problem = solve(self.groups, sizes, known)
        return known if problem is None else (problem, known)


def read_shape(shape: Any) -> tuple[int, ...]:
    """The sizes of a tensor, or of anything that lists sizes.

    Raises:
        ArgumentError: it has no shape, or one that is not made of sizes.
    """
    given = shape
    if not isinstance(shape, tuple | list):
        shape = getattr(shape, "shape", None)
        if shape is None:
            raise ArgumentError(
                f"expected a tensor or a shape such as (2, 3), got {given!r} "
                f"of type {type(given).__name__}"
            )
    try:
        sizes = tuple([operator.index(size) for size in shape])
    except TypeError:
        raise ArgumentError(f"a shape is made of whole numbers, got {shape!r}") from None
    for size in sizes:
        if size < 0:
            raise ArgumentError(f"a size cannot be negative, got shape {sizes}")
    return sizes


def read_bindings(
    bindings: Mapping[str, int] | Iterable[tuple[str, int]] | None,
) -> Bindings:
    """A fresh copy of given bindings.

    Raises:
        ArgumentError: they are not names with whole numbers.
    """
    known = Bindings()
    if bindings is None:
        return known
    try:
        items = dict(bindings).items()
        for name, value in items:
            known[name] = operator.index(value)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"bindings are names with whole numbers such as {{'window': 4}}, got {bindings!r}"
        ) from None
    return known


def _undecided(bindings: Any, *shapes: Any) -> None:
    return None


def _names(groups: tuple[tuple[Term, ...], ...]) -> tuple[str, ...]:
    """Every label and name once, in order of appearance."""
    found: list[str] = []
    for terms in groups:
        for term in terms:
            found += [term.label] if term.label else []
            found += names_in(term.expression)
    return tuple(dict.fromkeys(found))


def _native_matcher(groups: tuple[tuple[Term, ...], ...], names: tuple[str, ...]) -> Any:
    """The native matcher, or None where it is absent or the contract is beyond it."""
    factors = [abs(f) for terms in groups for term in terms for f, _ in term.terms]
    fits = len(names) <= 64 and sum(map(len, groups)) <= 64 and max(factors, default=0) <= _LARGEST
    if not (fits and _native.available()):
        return None
    slot = {name: i for i, name in enumerate(names)}
    specs = []
    for terms in groups:
        rest = next((i for i, term in enumerate(terms) if term.kind == "rest"), -1)
        steps = [
            (
                term.kind == "size",
                slot[term.label] if term.label else -1,
                [(f, [(slot[n], e) for n, e in monomial]) for f, monomial in term.terms],
            )
            for term in terms
        ]
        specs.append((rest, steps))
    return _native.core().Matcher(list(names), specs)


if _native.available():
    MutableMapping.register(_native.core().Bindings)
