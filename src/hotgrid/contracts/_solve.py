"""The readable matcher: what a contract means, in plain Python.

It is the oracle the native matcher is tested against, what runs where the
native core is absent, what `torch.compile` traces, and what finds the words
for a mismatch.

Every size of a shape gives one equation, `polynomial(names) == size`, and so
does every label. Equations are visited left to right, again and again: one
with no unknown name left is checked, one with a single unknown is solved, the
others wait for more to be known. When all that is left waits, unknowns that
appear only linearly are eliminated together. What still waits is reported.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ._expression import Polynomial
from ._parse import Term
from ._roots import whole_roots

Bindings = dict[str, int]


@dataclass(frozen=True)
class Equation:
    """`terms == size`, read off dimension `dimension` of shape number `group`."""

    group: int
    dimension: int
    term: Term
    terms: Polynomial
    size: int


@dataclass(frozen=True)
class Mismatch:
    """Why a shape does not meet its contract."""

    group: int
    reason: str
    dimension: int | None = None
    term: Term | None = None


def solve(
    groups: Sequence[tuple[Term, ...]],
    shapes: Sequence[tuple[int, ...] | None],
    bindings: Bindings,
) -> Mismatch | None:
    """Check shapes against contracts that share their names; adds to `bindings`.

    A shape that is None is not checked. Returns what is wrong, or None.
    """
    pending: list[Equation] = []
    for group, (terms, shape) in enumerate(zip(groups, shapes, strict=True)):
        if shape is not None:
            problem = _align(group, terms, shape, pending)
            if problem is not None:
                return problem
    while pending:
        waiting: list[Equation] = []
        for equation in pending:
            settled, problem = _settle(equation, bindings)
            if problem is not None:
                return problem
            if not settled:
                waiting.append(equation)
        if len(waiting) == len(pending):
            progress = _eliminate(waiting, bindings)
            if isinstance(progress, Mismatch):
                return progress
            if not progress:
                return _stuck(waiting[0], bindings)
        pending = waiting
    return None


def _align(
    group: int, terms: tuple[Term, ...], shape: tuple[int, ...], out: list[Equation]
) -> Mismatch | None:
    rest = next((i for i, term in enumerate(terms) if term.kind == "rest"), None)
    rank, wanted = len(shape), len(terms)
    if rest is None and rank != wanted:
        return Mismatch(group, f"the contract has {_count(wanted)}, the shape has {rank}")
    if rest is not None and rank < wanted - 1:
        return Mismatch(
            group, f"the contract has at least {_count(wanted - 1)}, the shape has {rank}"
        )
    for place, term in enumerate(terms):
        if term.kind == "rest":
            continue
        after = rest is not None and place > rest
        dimension = rank - (wanted - place) if after else place
        if term.label is not None:
            label: Polynomial = ((1, ((term.label, 1),)),)
            out.append(Equation(group, dimension, term, label, shape[dimension]))
        if term.kind == "size":
            out.append(Equation(group, dimension, term, term.terms, shape[dimension]))
    return None


def _settle(equation: Equation, bindings: Bindings) -> tuple[bool, Mismatch | None]:
    """Check or solve one equation if at most one of its names is unknown."""
    known, unknown = _substituted(equation, bindings)
    if not unknown:
        if known == 0:
            return True, None
        return False, _differs(equation, known, bindings)
    names = {name for _, monomial in unknown for name, _ in monomial}
    if len(names) > 1:
        return False, None
    name = names.pop()
    if len(unknown) == 1 and unknown[0][1][0][1] == 1:
        # Not divmod: torch.compile cannot take it of a symbolic size.
        quotient = -known // unknown[0][0]
        roots = [quotient] if quotient * unknown[0][0] == -known and quotient >= 0 else []
    else:
        roots = _roots_of(known, unknown)
    if not roots:
        return False, _unsolvable(equation, name, known, unknown, bindings)
    if len(roots) > 1:
        return False, None
    bindings[name] = roots[0]
    return True, None


def _roots_of(known: int, unknown: Polynomial) -> list[int]:
    coefficients = [known] + [0] * max(monomial[0][1] for _, monomial in unknown)
    for factor, monomial in unknown:
        coefficients[monomial[0][1]] += factor
    return whole_roots(coefficients)


def _substituted(equation: Equation, bindings: Bindings) -> tuple[int, Polynomial]:
    """The equation with the known names put in: a number and what is still unknown.

    Products that became zero are removed, so `h*p` with p = 0 no longer needs h.
    """
    known = -equation.size
    unknown: dict[tuple[tuple[str, int], ...], int] = {}
    for factor, monomial in equation.terms:
        value = factor
        left: list[tuple[str, int]] = []
        for name, exponent in monomial:
            if name in bindings:
                value = value * bindings[name] ** exponent
            else:
                left.append((name, exponent))
        if not left:
            known = known + value
        elif value != 0:
            unknown[tuple(left)] = unknown.get(tuple(left), 0) + value
    return known, tuple((value, left) for left, value in unknown.items() if value != 0)


def _eliminate(waiting: list[Equation], bindings: Bindings) -> bool | Mismatch:
    """Bind what the linear equations among those waiting determine together."""
    solved: list[tuple[str, dict[str, Fraction], Equation]] = []
    for equation in waiting:
        known, unknown = _substituted(equation, bindings)
        if any(len(left) != 1 or left[0][1] != 1 for _, left in unknown):
            continue
        row = {"": Fraction(known), **{left[0][0]: Fraction(v) for v, left in unknown}}
        for name, other, _ in solved:
            row = _without(row, name, other)
        pivot = next((name for name in row if name and row[name] != 0), None)
        if pivot is not None:
            solved = [(name, _without(other, pivot, row), e) for name, other, e in solved]
            solved.append((pivot, row, equation))
        elif row[""] != 0:
            reason = "this contradicts the other dimensions"
            return Mismatch(equation.group, reason, equation.dimension, equation.term)
    progress = False
    for name, row, equation in solved:
        if any(value != 0 for other, value in row.items() if other not in ("", name)):
            continue
        value = -row[""] / row[name]
        if value.denominator != 1 or value < 0:
            parts = [shown(value.numerator), shown(value.denominator)]
            found = "/".join(parts[: 1 if value.denominator == 1 else 2])
            reason = f"together with the other dimensions, `{name}` would have to be {found}"
            return Mismatch(equation.group, reason, equation.dimension, equation.term)
        bindings[name] = int(value)
        progress = True
    return progress


def _without(
    row: dict[str, Fraction], name: str, other: dict[str, Fraction]
) -> dict[str, Fraction]:
    scale = row.get(name, Fraction(0)) / other[name]
    names = dict.fromkeys([*row, *other])
    return {n: row.get(n, Fraction(0)) - scale * other.get(n, Fraction(0)) for n in names}


def _differs(equation: Equation, known: int, bindings: Bindings) -> Mismatch:
    terms, size = equation.terms, equation.size
    if len(terms) == 1 and terms[0][0] == 1 and [e for _, e in terms[0][1]] == [1]:
        name = terms[0][1][0][0]
        reason = f"`{name}` is {shown(bindings[name])}, but this size is {shown(size)}"
    elif not any(monomial for _, monomial in terms):
        reason = f"this size is {shown(size)}, not {shown(known + size)}"
    else:
        value = shown(known + size)
        reason = f"{equation.term.expression} is {value}, but this size is {shown(size)}"
    return Mismatch(equation.group, reason, equation.dimension, equation.term)


def _unsolvable(
    equation: Equation, name: str, known: int, unknown: Polynomial, bindings: Bindings
) -> Mismatch:
    given = [n for n in _names(equation) if n in bindings]
    where = f" with {', '.join(f'{n} = {shown(bindings[n])}' for n in given)}" if given else ""
    reason = f"no whole number `{name}` gives {shown(equation.size)}{where}"
    if len(unknown) == 1 and unknown[0][1][0][1] == 1 and known % unknown[0][0] == 0:
        reason = f"`{name}` would have to be {shown(-known // unknown[0][0])}{where}"
    return Mismatch(equation.group, reason, equation.dimension, equation.term)


def _stuck(equation: Equation, bindings: Bindings) -> Mismatch:
    known, unknown = _substituted(equation, bindings)
    names = list(dict.fromkeys(name for _, left in unknown for name, _ in left))
    if len(names) == 1:
        roots = " or ".join(map(shown, _roots_of(known, unknown)))
        reason = f"`{names[0]}` could be {roots}; give it in `bindings`"
    else:
        listed = " and ".join([", ".join(f"`{n}`" for n in names[:-1]), f"`{names[-1]}`"])
        reason = f"{listed} are unknown; give all but one of them in `bindings`"
    return Mismatch(equation.group, reason, equation.dimension, equation.term)


def _names(equation: Equation) -> list[str]:
    return list(dict.fromkeys(n for _, monomial in equation.terms for n, _ in monomial))


def shown(number: int) -> str:
    """A size in a message; Python refuses to write very long ones."""
    long = abs(number) >= 10**40
    return f"a number of {number.bit_length():,} bits" if long else f"{number}"


def _count(dimensions: int) -> str:
    return f"{dimensions} dimension{'' if dimensions == 1 else 's'}"
