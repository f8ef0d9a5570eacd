"""Polar zones: instructions around the north pole, questions and answers around the south."""

import math
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType

import torch
from torch import Tensor

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError, near

ZONES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"instruction": (0.0, 15.0), "content": (15.0, 165.0), "qa": (165.0, 180.0)}
)
"""By name, the polar angles in degrees from which and to which a zone goes."""

# Points keep this share of a zone's height away from its sides, for rounding.
_MARGIN = 1e-6

ZoneRule = Callable[[str, str], str]
"""Returns the zone for the name of a document and the label of one of its views."""


def zone_of(theta: float) -> str:
    """Return the zone at a polar angle in radians; both sides of `content` belong to it.

    Raises:
        ArgumentError: The angle is not from 0 to pi.
    """
    if not 0 <= theta <= math.pi:
        raise ArgumentError(f"`theta` is {theta}; expected 0 to pi radians")
    if theta < math.radians(ZONES["content"][0]):
        return "instruction"
    return "qa" if theta > math.radians(ZONES["content"][1]) else "content"


@checked(units="n 3", returns="n 3")
def into_zone(units: Tensor, zone: str) -> Tensor:
    """Map directions of the whole sphere into a zone, equal areas to equal areas.

    Args:
        units: Vectors of length 1.
        zone: One of `ZONES`.

    Raises:
        ArgumentError: There is no such zone.
    """
    expect_zone(zone)
    low, high = (math.cos(math.radians(each)) for each in reversed(ZONES[zone]))
    # Areas on a sphere are in proportion to heights.
    height = (low + high) / 2 + (high - low) / 2 * (1 - _MARGIN) * units[:, 2].clamp(-1, 1)
    found = units.clone()
    found[:, 2] = height
    across = torch.hypot(units[:, 0], units[:, 1])
    wide = (1 - height.square()).clamp(min=0).sqrt()
    # At a pole, and where only a few bits are left, every longitude is as good as another.
    limits = torch.finfo(units.dtype)
    known = across > limits.tiny / limits.eps
    found[:, 0] = (units[:, 0] / across).where(known, units.new_ones(())) * wide
    found[:, 1] = (units[:, 1] / across).where(known, units.new_zeros(())) * wide
    return found


def expect_zone(zone: str) -> None:
    """Refuse what is not a zone."""
    if zone not in ZONES:
        raise ArgumentError(
            f"there is no zone `{zone}`{near(zone, ZONES)} (there are {', '.join(ZONES)})"
        )


def zone_rule(rules: Iterable[str]) -> ZoneRule:
    """Return what decides about zones.

    Args:
        rules: `ZONE` for everything, or `ZONE=PATTERN` for documents with such a name and
            views with such a label, or such a column before the `/` of their label. The first
            that fits decides; else it is `content`.

    Raises:
        ArgumentError: A rule has no zone, or no pattern.
    """
    known = []
    for rule in rules:
        zone, equals, pattern = rule.partition("=")
        expect_zone(zone)
        if equals and not pattern:
            raise ArgumentError(f"`{rule}` has no pattern; write, for example, `{zone}=faq/*`")
        known.append((zone, pattern if equals else "*"))

    def decide(name: str, label: str) -> str:
        # The view of a column is called `prompt/text`, that of a list `images/0/image`.
        parts = label.split("/")
        found = [name, *("/".join(parts[: end + 1]) for end in range(len(parts)))]
        for zone, pattern in known:
            if any(fnmatchcase(each, pattern) for each in found):
                return zone
        return "content"

    return decide
