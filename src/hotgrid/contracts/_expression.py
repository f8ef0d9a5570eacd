"""One dimension of a contract: a small expression tree and its printing.

A tree is kept for messages; the solver works on the same expression as a
polynomial with integer coefficients over the names, in which `p*p` and `p^2`
are one thing and `a - a` is nothing.
"""

from dataclasses import dataclass

# One product of powers, e.g. (("h", 1), ("p", 2)); names sorted.
Monomial = tuple[tuple[str, int], ...]
# Terms `coefficient * monomial`, no zero coefficients, no repeated monomials.
# Tuples all the way down: torch.compile reads them as constants.
Polynomial = tuple[tuple[int, Monomial], ...]

LARGEST_POLYNOMIAL = 256
LARGEST_EXPONENT = 64
LARGEST_FACTOR = 2**63 - 1


class TooLargeError(Exception):
    """An expression expands to more products than any real contract has."""


@dataclass(frozen=True)
class Name:
    """A named size."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Integer:
    """A size written as a number."""

    value: int

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Sum:
    """`a + b + ...`; `a - b` is the sum of a and the negation of b."""

    parts: tuple["Expression", ...]

    def __str__(self) -> str:
        text = str(self.parts[0])
        for part in self.parts[1:]:
            text += f"-{part.inner}" if isinstance(part, Negation) else f"+{part}"
        return f"({text})"


@dataclass(frozen=True)
class Product:
    """`a * b * ...`."""

    parts: tuple["Expression", ...]

    def __str__(self) -> str:
        return f"({'*'.join(map(str, self.parts))})"


@dataclass(frozen=True)
class Negation:
    """`-a`."""

    inner: "Expression"

    def __str__(self) -> str:
        return f"(-{self.inner})"


@dataclass(frozen=True)
class Power:
    """`a ^ 3`."""

    base: "Expression"
    exponent: int

    def __str__(self) -> str:
        return f"({self.base}^{self.exponent})"


Expression = Name | Integer | Sum | Product | Negation | Power


def polynomial(expression: Expression) -> Polynomial:
    """The expression as a polynomial over its names.

    Raises:
        TooLargeError: it would have more than `LARGEST_POLYNOMIAL` products.
    """
    match expression:
        case Name(name):
            return ((1, ((name, 1),)),)
        case Integer(value):
            return _collected([(value, ())])
        case Negation(inner):
            return tuple((-factor, monomial) for factor, monomial in polynomial(inner))
        case Sum(parts):
            return _collected([term for part in parts for term in polynomial(part)])
        case Product(parts):
            product: Polynomial = ((1, ()),)
            for part in parts:
                product = _multiplied(product, polynomial(part))
            return product
        case Power(base, exponent):
            power: Polynomial = ((1, ()),)
            inner = polynomial(base)
            for _ in range(exponent):
                power = _multiplied(power, inner)
            return power


def names_in(expression: Expression | None) -> list[str]:
    """The names in an expression, in order of appearance."""
    match expression:
        case Name(name):
            return [name]
        case Sum(parts) | Product(parts):
            return list(dict.fromkeys(name for part in parts for name in names_in(part)))
        case Negation(inner) | Power(inner, _):
            return names_in(inner)
        case _:
            return []


def _collected(terms: list[tuple[int, Monomial]]) -> Polynomial:
    total: dict[Monomial, int] = {}
    for factor, monomial in terms:
        total[monomial] = total.get(monomial, 0) + factor
    if len(total) > LARGEST_POLYNOMIAL or any(map(_is_large, total.values(), total)):
        raise TooLargeError
    return tuple((factor, monomial) for monomial, factor in total.items() if factor)


def _is_large(factor: int, monomial: Monomial) -> bool:
    exponents = [exponent for _, exponent in monomial]
    return abs(factor) > LARGEST_FACTOR or max(exponents, default=0) > LARGEST_EXPONENT


def _multiplied(left: Polynomial, right: Polynomial) -> Polynomial:
    if len(left) * len(right) > LARGEST_POLYNOMIAL * LARGEST_POLYNOMIAL:
        raise TooLargeError
    terms: list[tuple[int, Monomial]] = []
    for factor, monomial in left:
        for other_factor, other in right:
            powers = dict(monomial)
            for name, exponent in other:
                powers[name] = powers.get(name, 0) + exponent
            terms.append((factor * other_factor, tuple(sorted(powers.items()))))
    return _collected(terms)
