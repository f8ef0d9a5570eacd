"""`Brush`: what can be painted into a state by hand."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Brush:
    """Something that can be painted into a running simulation.

    Attributes:
        name: How a stroke asks for it.
        label: What a person reads.
        kind: `states` for whole numbers, such as cells that are on or off, `number` for a
            value, `solid` for walls.
        low: The smallest value.
        high: The largest value.
        value: The value when none is chosen.
        radius: The radius in cells when none is chosen.

    Example:
        >>> Brush("u", "Heat").kind
        'number'
    """

    name: str
    label: str
    kind: Literal["states", "number", "solid"] = "number"
    low: float = 0.0
    high: float = 1.0
    value: float = 1.0
    radius: float = 3.0
