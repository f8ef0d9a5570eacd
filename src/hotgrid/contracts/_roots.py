"""Whole-number roots of a polynomial in one unknown, exactly.

Coefficients are listed from the constant up. Sizes are counts, so only roots
of zero or more are of interest.
"""

from collections.abc import Sequence
from itertools import pairwise


def whole_roots(coefficients: Sequence[int]) -> list[int]:
    """Every whole number x >= 0 with c[0] + c[1]*x + c[2]*x^2 + ... == 0, ascending.

    The highest coefficient must not be zero and the degree at least one.
    """
    lowest, highest = coefficients[0], coefficients[-1]
    degree = len(coefficients) - 1
    if not any(coefficients[1:-1]):
        power = -lowest // highest
        if power * highest != -lowest or power < 0:
            return []
        root = whole_power_root(power, degree)
        return [root] if root**degree == power else []
    # Cauchy: no root is larger than this.
    limit = 2 + max(abs(c) for c in coefficients[:-1]) // abs(highest)
    points = _monotone_points(coefficients, limit)
    found = {x for x in points if _value(coefficients, x) == 0}
    for low, high in pairwise(points):
        root = _sign_change(coefficients, low, high)
        if root is not None and _value(coefficients, root) == 0:
            found.add(root)
    return sorted(found)


def whole_power_root(value: int, degree: int) -> int:
    """The largest whole x with x^degree <= value, for value >= 0 and degree >= 1."""
    if degree == 1:
        return value
    high = 1
    while high**degree <= value:
        high *= 2
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        if middle**degree <= value:
            low = middle
        else:
            high = middle
    return low


def _value(coefficients: Sequence[int], x: int) -> int:
    total = 0
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def _monotone_points(coefficients: Sequence[int], limit: int) -> list[int]:
    """Points from 0 to limit between which the polynomial only rises or only falls.

    It turns where its derivative changes sign, and between the points where the
    derivative itself is monotone that happens at most once.
    """
    if len(coefficients) == 2:
        return [0, limit]
    slope = [i * c for i, c in enumerate(coefficients)][1:]
    points = set(outer := _monotone_points(slope, limit))
    for low, high in pairwise(outer):
        turn = _sign_change(slope, low, high)
        if turn is not None:
            points |= {turn, min(turn + 1, limit)}
    return sorted(points)


def _sign_change(coefficients: Sequence[int], low: int, high: int) -> int | None:
    """The last whole point in [low, high] before a monotone polynomial crosses zero."""
    below, above = _value(coefficients, low), _value(coefficients, high)
    if below == 0:
        return low
    if above == 0:
        return high
    if (below < 0) == (above < 0):
        return None
    while low + 1 < high:
        middle = (low + high) // 2
        if (_value(coefficients, middle) < 0) == (below < 0):
            low = middle
        else:
            high = middle
    return low if _value(coefficients, high) else high
