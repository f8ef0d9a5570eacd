"""One matcher for one or several contracts that share their names.

The native core answers the common case and returns None for everything else;
the readable solver then decides. Without the core the solver does it all.
"""

import operator
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any, SupportsIndex, TypeAlias

from hotgrid import _native
from hotgrid.errors import ArgumentError

from ._expression import names_in
from ._parse import Term
from ._solve import Mismatch, shown, solve

_LARGEST = 2**63 - 1

Given: TypeAlias = Mapping[str, SupportsIndex] | Iterable[tuple[str, SupportsIndex]]


class Bindings(dict[str, int]):
    """Names and the sizes bound to them: a dict that is true even when empty.

    A match is a match, also of a contract that names nothing, so
    `if contract.try_check(x):` works as expected.
    """

    __slots__ = ()

    def __bool__(self) -> bool:
        return True


class Matcher:
    """Contracts over shared names, and the plain Python way to match them."""

    __slots__ = ("groups", "names")

    def __init__(self, groups: tuple[tuple[Term, ...], ...]) -> None:
        self.groups = groups
        self.names = _names(groups)

    def decide(self, bindings: Any, *shapes: Any) -> Bindings | tuple[Mismatch, Bindings]:
        """The bindings, or what is wrong and what was bound until then."""
        sizes: list[tuple[int, ...] | None] = [read_shape(shape) for shape in shapes]
        return self._decided(bindings, sizes)

    def decide_present(
        self, bindings: Any, *shapes: Any
    ) -> Bindings | tuple[Mismatch, Bindings]:
        """As `decide`, but a shape that is None is not checked."""
        sizes = [None if shape is None else read_shape(shape) for shape in shapes]
        return self._decided(bindings, sizes)

    def _decided(
        self, bindings: Any, sizes: list[tuple[int, ...] | None]
    ) -> Bindings | tuple[Mismatch, Bindings]:
        known = read_bindings(bindings)
        problem = solve(self.groups, sizes, known)
        return known if problem is None else (problem, known)


def native_matcher(matcher: Matcher, check: Any = None, unpack: Any = None) -> Any:
    """The native form of a matcher, or None where the core is absent or it is beyond it.

    `check` and `unpack` are called when the native form is unsure; they must not
    hold on to what this returns.
    """
    factors = [abs(f) for terms in matcher.groups for term in terms for f, _ in term.terms]
    terms = sum(map(len, matcher.groups))
    fits = len(matcher.names) <= 64 and terms <= 64 and max(factors, default=0) <= _LARGEST
    if not (fits and _native.available()):
        return None
    slot = {name: i for i, name in enumerate(matcher.names)}
    groups = []
    for group in matcher.groups:
        rest = next((i for i, term in enumerate(group) if term.kind == "rest"), -1)
        steps = [
            (
                term.kind == "size",
                slot[term.label] if term.label else -1,
                [(f, [(slot[n], e) for n, e in monomial]) for f, monomial in term.terms],
            )
            for term in group
        ]
        groups.append((rest, steps))
    return _native.core().Matcher(list(matcher.names), groups, check, unpack)


def undecided(bindings: Any, *shapes: Any) -> None:
    """The replacement of the native match if there is none: never sure."""
    return


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
        sizes = tuple([_whole(size) for size in shape])
    except TypeError:
        raise ArgumentError(f"a shape consists of whole numbers, got {shape!r}") from None
    for size in sizes:
        if size < 0:
            listed = ", ".join(map(shown, sizes))
            raise ArgumentError(f"a size cannot be negative, got shape ({listed})")
    return sizes


def read_bindings(bindings: Given | None) -> Bindings:
    """A fresh copy of given bindings.

    Raises:
        ArgumentError: they are not names with whole numbers, or one is negative.
    """
    known = Bindings()
    if bindings is None:
        return known
    try:
        items = dict(bindings).items()
        for name, value in items:
            if not isinstance(name, str):
                raise TypeError
            known[name] = _whole(value)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"bindings are names with whole numbers such as {{'window': 4}}, got {bindings!r}"
        ) from None
    for name, size in known.items():
        if size < 0:
            raise ArgumentError(
                f"a size cannot be negative, got `{name}` = {shown(size)} in `bindings`"
            )
    return known


def expect_sizes(bindings: Any) -> None:
    """Raise for a negative size, which the native matcher would compute with.

    Anything else goes to `read_bindings` anyway.
    """
    try:
        negative = min(bindings.values(), default=0) < 0
    except (AttributeError, TypeError):
        return
    if negative:
        read_bindings(bindings)


def _whole(number: Any) -> int:
    # Integers are passed unchanged: under torch.compile they may be symbols, which
    # `operator.index` would pin to the value of the moment.
    return number if isinstance(number, int) else operator.index(number)


def _names(groups: tuple[tuple[Term, ...], ...]) -> tuple[str, ...]:
    """Every label and name once, in order of appearance."""
    found: list[str] = []
    for terms in groups:
        for term in terms:
            found += [term.label] if term.label else []
            found += names_in(term.expression)
    return tuple(dict.fromkeys(found))


if _native.available():
    # Registered at run time; type checkers do not see it.
    MutableMapping.register(_native.core().Bindings)  # pyright: ignore[reportAttributeAccessIssue]
