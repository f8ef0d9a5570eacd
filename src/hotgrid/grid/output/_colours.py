"""How the numbers of a view become colours."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hotgrid.grid.model import Model, coded_colours

if TYPE_CHECKING:
    from numpy.typing import NDArray

SOLID = 0.62
"""The grey of solid cells, from black to white."""
SOLID_LEVEL = 255
"""The level that stands for a solid cell in `Colours`."""
Kind = Literal["states", "signed", "plain", "coded"]
_MAPS: dict[Kind, str] = {"states": "binary", "signed": "RdBu_r", "plain": "inferno"}
# A field is signed when its smaller side is at least this share of its larger one;
# below that it is round-off or a small overshoot.
_SIGNED_FROM = 0.02
# Few cells at a wall can hold most of the range; the map then spans the others.
_MOST_CELLS = 99.5
_LEAST_SHARE = 0.05
# How much of the way the range of a film shrinks in a frame, and how much of the range
# that is shown must be in use; each change of it redraws the colour bar.
_FADE = 0.1
_USED = 0.8


@dataclass(frozen=True)
class Colours:
    """A colour map and the range it spans.

    Attributes:
        kind: Two states, numbers around zero (diverging colours, symmetric limits), plain, or
            numbers that are colours.
        low: The number of the first colour.
        high: The number of the last colour.
        beyond: Whether numbers are outside the limits.
        map: A colour map of matplotlib in place of the one that suits the kind.
    """

    kind: Kind
    low: float
    high: float
    beyond: bool = False
    map: str | None = None

    def colour_map(self) -> Any:
        """The colour map of matplotlib, with a grey for solid cells."""
        from matplotlib import colormaps
        from matplotlib.colors import ListedColormap

        if self.kind == "coded":
            codes = coded_colours().numpy()
            found: Any = ListedColormap(np.pad(codes, ((0, SOLID_LEVEL - len(codes)), (0, 0))))
        else:
            found = colormaps[self.map or _MAPS[self.kind]]
        return found.with_extremes(bad=str(SOLID))

    def followed(self, now: "Colours") -> "Colours":
        """The range for the next frame of a film: it grows at once and shrinks slowly.

        A wave that passes through zero must not make the colours flicker.
        """
        kinds = {self.kind, now.kind}
        kind: Kind = "signed" if "signed" in kinds else "plain" if len(kinds) > 1 else now.kind
        low = min(now.low, self.low + _FADE * (now.low - self.low))
        high = max(now.high, self.high + _FADE * (now.high - self.high))
        if kind == "signed":
            high = max(-low, high)
            low = -high
        return Colours(kind, low, high, self.beyond or now.beyond, now.map)

    def within(self, low: float, high: float) -> "Colours":
        """The colours over limits that someone has chosen."""
        kind: Kind = self.kind
        if kind != "states":
            kind = "signed" if low == -high else "plain"
        return replace(self, kind=kind, low=low, high=high)

    def levels(self, numbers: np.ndarray) -> "NDArray[np.uint8]":
        """Numbers in 8 bits: 0 to 254 along the colour map, 255 where they are NaN."""
        share = (numbers.astype(np.float64) - self.low) / (self.high - self.low)
        found = np.clip(np.floor(np.nan_to_num(share) * SOLID_LEVEL), 0, SOLID_LEVEL - 1)
        return np.where(np.isnan(numbers), SOLID_LEVEL, found).astype(np.uint8)

    def palette(self) -> "NDArray[np.uint8]":
        """The red, green and blue of every level, `[256, 3]`."""
        colours = self.colour_map()(np.linspace(0, 1, SOLID_LEVEL))[:, :3]
        return (255 * np.vstack([colours, [[SOLID] * 3]])).round().astype(np.uint8)

    def suits(self, other: "Colours") -> bool:
        """Whether a picture in these colours shows the other range well."""
        return (
            self.kind == other.kind
            and self.low <= other.low
            and other.high <= self.high
            and other.high - other.low >= _USED * (self.high - self.low)
        )


CODED = Colours("coded", 0.0, SOLID_LEVEL - 1.0)
"""The colours of views whose numbers are colours themselves."""


def colours_for(model: Model, view: str, numbers: np.ndarray) -> Colours:
    """The colours for a view: those that suit its numbers, unless they are colours."""
    return CODED if view in model.coloured else colours_of(numbers)


def colours_of(numbers: np.ndarray) -> Colours:
    """The colours that suit an array; numbers that are not finite do not count."""
    whole = numbers.dtype.kind in "bui"
    seen = numbers[np.isfinite(numbers)].astype(np.float64)
    if seen.size == 0:
        return Colours("plain", 0.0, 1.0)
    low, high = float(seen.min()), float(seen.max())
    if whole and low >= 0 and high <= 1:
        return Colours("states", 0.0, 1.0)
    if low < 0 < high and min(-low, high) >= _SIGNED_FROM * max(-low, high):
        largest = max(-low, high)
        usual = float(np.percentile(np.abs(seen), _MOST_CELLS, method="higher"))
        limit = usual if usual >= _LEAST_SHARE * largest else largest
        return Colours("signed", -limit, limit, beyond=limit < largest)
    if high - low <= 1e-6 * max(abs(low), abs(high)):
        # All the same, but for round-off: noise must not fill the whole map.
        half = 0.5 * max(abs(low), abs(high)) or 0.5
        return Colours("plain", low - half, high + half)
    return Colours("plain", low, high)
