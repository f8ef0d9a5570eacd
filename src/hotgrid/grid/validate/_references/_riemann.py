"""Exact solutions of broken dams and shock tubes, to compare with."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Profile = NDArray[np.float64]


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """The zero of an increasing function, by bisection to full precision."""
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return low


def dam_break(x: Profile, time: float, left: float, right: float, gravity: float) -> Profile:
    """The depth after a dam at 0 broke between still waters, left deeper: Stoker 1957."""
    c_left = math.sqrt(gravity * left)

    def gap(h: float) -> float:
        by_bore = (h - right) * math.sqrt(0.5 * gravity * (h + right) / (h * right))
        return by_bore - 2 * (c_left - math.sqrt(gravity * h))

    h = _root(gap, right, left)
    u = 2 * (c_left - math.sqrt(gravity * h))
    bore = h * u / (h - right)
    s = x / time
    fan = (2 * c_left - s) ** 2 / (9 * gravity)
    places = [s < -c_left, s < u - math.sqrt(gravity * h), s < bore]
    return np.select(places, [np.full_like(s, left), fan, np.full_like(s, h)], right)


def shock_tube(
    x: Profile,
    time: float,
    left: tuple[float, float],
    right: tuple[float, float],
    gamma: float,
) -> Profile:
    """The density after a wall at 0 vanished between gases at rest, left denser: Sod 1978.

    Args:
        x: Places.
        time: Since then.
        left: Density and pressure on the left.
        right: The same on the right, with less pressure.
        gamma: Ratio of specific heats.
    """
    (rho_l, p_l), (rho_r, p_r) = left, right
    c_l, c_r = math.sqrt(gamma * p_l / rho_l), math.sqrt(gamma * p_r / rho_r)
    power = (gamma - 1) / (2 * gamma)

    def gap(p: float) -> float:
        by_shock = (
            (p / p_r - 1) * c_r * math.sqrt(2 / (gamma * ((gamma + 1) * p / p_r + gamma - 1)))
        )
        return by_shock - 2 * c_l / (gamma - 1) * (1 - (p / p_l) ** power)

    p = _root(gap, p_r, p_l)
    u = 2 * c_l / (gamma - 1) * (1 - (p / p_l) ** power)
    shock = c_r * math.sqrt(1 + (gamma + 1) / (2 * gamma) * (p / p_r - 1))
    inner = rho_l * (p / p_l) ** (1 / gamma)
    ratio = (gamma - 1) / (gamma + 1)
    behind = rho_r * (p / p_r + ratio) / (ratio * p / p_r + 1)
    s = x / time
    fan = rho_l * (2 / (gamma + 1) - ratio * s / c_l).clip(0) ** (2 / (gamma - 1))
    tail = u - c_l * (p / p_l) ** power
    places = [s < -c_l, s < tail, s < u, s < shock]
    return np.select(places, [np.full_like(s, rho_l), fan, inner, behind], rho_r)
