"""Water-filling: points go to shells, heavier ones farther out, until all are equally full."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError

MOST_SHELLS = 1 << 20


class Placement(NamedTuple):
    """Where points are.

    Attributes:
        shells: The shell of each point, 0 is the innermost.
        radii: Its radius.
    """

    shells: Tensor
    radii: Tensor


@checked(prominence="n", entropies="n", returns="n")
def log_weights(
    prominence: Tensor, entropies: Tensor | None = None, *, temperature: float = 0.5
) -> Tensor:
    """Return `2 ln p - H / temperature`, the logarithm of `p ** 2 * exp(-H / temperature)`.

    The weight itself underflows for small temperatures; only its order matters here, and the
    logarithm keeps it.

    Args:
        prominence: The prominence of each point, from 0.
        entropies: In nats; None leaves them out.
        temperature: How much entropies count.

    Raises:
        ArgumentError: The temperature is not above 0, or a prominence is below 0.
    """
    if not temperature > 0:
        raise ArgumentError(f"`temperature` is {temperature}; expected above 0")
    if bool((prominence < 0).any()):
        raise ArgumentError(f"`prominence` has {prominence.min():g}; expected values from 0")
    found = 2 * prominence.double().log()
    return found if entropies is None else found - entropies.double() / temperature


def shell_radii(shells: int, inner: float, outer: float) -> Tensor:
    """Return the radii of shells at equal distances, in float64.

    Raises:
        ArgumentError: There is no shell, or the radii do not grow.
    """
    if not 1 <= shells <= MOST_SHELLS or not 0 < inner <= outer < math.inf:
        raise ArgumentError(
            f"{shells} shells from radius {inner} to {outer}; expected at least one, at most "
            f"{MOST_SHELLS:,}, and 0 < inner <= outer"
        )
    return torch.linspace(inner, outer, shells, dtype=torch.float64)


def capacities(count: int, radii: Tensor) -> Tensor:
    """Return how many of `count` points each shell takes, in proportion to its area.

    They are whole numbers with the sum `count`.
    """
    share = radii.square().cumsum(0) / radii.square().sum()
    ends = (share * count).round().long()
    ends[-1] = count
    return torch.diff(ends, prepend=ends.new_zeros(1))


@checked(weights="n")
def place(
    weights: Tensor, *, shells: int = 256, inner: float = 32.0, outer: float = 512.0
) -> Placement:
    """Fill shells with points: each to its capacity, the heaviest in the outermost.

    This is the state in which no shell is fuller than another and no two points of
    different shells would gain by changing places. Of equal weights the later is farther
    out.

    Args:
        weights: One for each point, on any scale that keeps the order, such as `log_weights`.
        shells: How many.
        inner: The radius of the innermost.
        outer: The radius of the outermost.

    Raises:
        ArgumentError: Shells or radii are invalid, or a weight is not a number.
    """
    if bool(weights.isnan().any()):
        raise ArgumentError("`weights` has values that are not numbers")
    radii = shell_radii(shells, inner, outer).to(weights.device)
    filled = torch.repeat_interleave(capacities(len(weights), radii))
    found = torch.empty_like(filled)
    found[weights.argsort(stable=True)] = filled
    return Placement(found, radii[found])


@checked(weights="n")
def relax(
    weights: Tensor,
    *,
    shells: int = 256,
    inner: float = 32.0,
    outer: float = 512.0,
    steps: int = 10_000,
) -> tuple[Placement, int]:
    """Reach the state of `place` by moves between neighbouring shells only (osmosis).

    Points begin spread over shells by their weight. In each step, in even and odd pairs of
    shells in turn, points move to the neighbour until the boundary between both is where the
    capacities of all shells inside it put it, or a shell is empty. The lightest move in
    and the heaviest move out, so shells stay in order.

    Args:
        weights: One for each point.
        shells: How many.
        inner: The radius of the innermost.
        outer: The radius of the outermost.
        steps: The most steps.

    Returns:
        The placement, and how many steps were made.

    Raises:
        ArgumentError: Shells or radii are invalid, or a weight is not a number.
    """
    if bool(weights.isnan().any()):
        raise ArgumentError("`weights` has values that are not numbers")
    count = len(weights)
    radii = shell_radii(shells, inner, outer).to(weights.device)
    wanted = capacities(count, radii).cumsum(0)[:-1]
    order = weights.argsort(stable=True)
    # In order, shells are intervals of ranks: their boundaries are all there is to know.
    first = (_shares(weights) * shells).long().clamp(max=shells - 1)
    ends = torch.bincount(first, minlength=shells).cumsum(0)[:-1]
    made = 0
    while made < steps and not torch.equal(ends, wanted):
        walls = torch.cat([ends.new_zeros(1), ends, ends.new_full((1,), count)])
        moved = torch.minimum(torch.maximum(wanted, walls[:-2]), walls[2:])
        turn = torch.arange(shells - 1, device=ends.device) % 2 == made % 2
        ends, made = torch.where(turn, moved, ends), made + 1
    sizes = torch.diff(ends, prepend=ends.new_zeros(1), append=ends.new_full((1,), count))
    found = torch.empty_like(order)
    found[order] = torch.repeat_interleave(sizes)
    return Placement(found, radii[found]), made


def _shares(weights: Tensor) -> Tensor:
    """Where weights lie between the least and the largest finite one, from 0 to 1."""
    known = weights[weights.isfinite()].double()
    if not len(known):
        return torch.zeros_like(weights, dtype=torch.float64)
    # Halves: the difference of two large numbers need not be finite.
    low, high = known.min() / 2, known.max() / 2
    span = torch.where(high > low, high - low, torch.ones_like(high))
    return ((weights.double() / 2).clamp(low, high) - low) / span
