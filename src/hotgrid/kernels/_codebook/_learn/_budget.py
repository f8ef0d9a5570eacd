"""A size for a whole model: which form each layer gets so that all of them fit."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hotgrid.errors import ArgumentError

from ._fit import Recipe
from ._searched import SearchedLayer

_BEYOND = 1e6  # an error beyond the limit outweighs all others


class _Step(NamedTuple):
    """Another form for one layer: the error that it adds to all, and the bytes it saves."""

    error: float
    saved: int
    at: int
    recipe: Recipe

    @property
    def price(self) -> float:
        return self.error / self.saved


def within_bytes(layers: Sequence[SearchedLayer], budget: float, limit: float) -> list[Recipe]:
    """Return a form for each layer, so that all together take at most `budget` bytes.

    Every layer starts in its most exact form. The step down that adds least error for each
    byte it saves is taken until all fit; on the way, single steps after which all fit are
    remembered, and the best end is taken. Then the bytes left go to the layers that
    gain most by it. Errors add as squares. Only forms that may be chosen are learned.

    Raises:
        ArgumentError: The smallest forms of all layers do not fit.
    """
    least = sum(each.least for each in layers)
    if least > budget:
        raise ArgumentError(_too_small(layers, budget, least))
    chosen = [each.widest for each in layers]
    total = sum(map(SearchedLayer.bytes, layers, chosen))
    added, ends = 0.0, []
    while total > budget:
        steps = [
            _step(layer, at, now, smaller, limit)
            for at, (layer, now) in enumerate(zip(layers, chosen, strict=True))
            for smaller in layer.widest_of_forms(layer.bytes(now) - 1)
        ]
        if last := [each for each in steps if total - each.saved <= budget]:
            best = min(last, key=lambda each: each[:3])
            ends.append((added + best.error, len(ends), _after(chosen, best)))
        step = min(steps, key=lambda each: each.price)
        chosen, total, added = _after(chosen, step), total - step.saved, added + step.error
    chosen = min([*ends, (added, len(ends), chosen)], key=lambda end: end[:2])[2]
    return _filled(layers, chosen, budget, limit)


def _filled(
    layers: Sequence[SearchedLayer], chosen: list[Recipe], budget: float, limit: float
) -> list[Recipe]:
    """Forms that have been tried and are more exact, as long as they fit."""
    while True:
        left = budget - sum(map(SearchedLayer.bytes, layers, chosen))
        steps = [
            _step(layer, at, now, other, limit)
            for at, (layer, now) in enumerate(zip(layers, chosen, strict=True))
            for other in layer.tried
        ]
        fits = [each for each in steps if each.error < 0 and -each.saved <= left]
        if not fits:
            return chosen
        chosen = _after(chosen, min(fits, key=lambda each: each[:3]))


def _step(layer: SearchedLayer, at: int, now: Recipe, to: Recipe, limit: float) -> _Step:
    error = _weighed(layer.error(to), limit) - _weighed(layer.error(now), limit)
    return _Step(error, layer.bytes(now) - layer.bytes(to), at, to)


def _after(chosen: Iterable[Recipe], step: _Step) -> list[Recipe]:
    return [step.recipe if at == step.at else each for at, each in enumerate(chosen)]


def _weighed(error: float, limit: float) -> float:
    if not math.isfinite(error):
        return _BEYOND**2
    return error**2 if error <= limit else error**2 + _BEYOND


def _too_small(layers: Sequence[SearchedLayer], budget: float, least: int) -> str:
    shown = [f"{each.shown} {each.least:,}" for each in layers[:8]]
    if len(layers) > 8:
        shown.append(f"{len(layers) - 8} more")
    return (
        f"`target` of {budget:,.0f} bytes is too small: the smallest forms of all layers take "
        f"{least:,} bytes, of which {', '.join(shown)}"
    )
