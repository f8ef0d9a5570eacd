"""The section `[memory]`."""

from dataclasses import dataclass, field

from hotgrid.config._rules import Number
from hotgrid.config._section import Section, about


@dataclass(frozen=True, kw_only=True)
class Memory(Section):
    """How much memory hotgrid may plan with; owned by `hotgrid.grid`.

    Example:
        >>> Memory(limit=0.5).limit
        0.5
    """

    limit: float = field(
        default=0.9,
        metadata=about(Number(0.01, 1.0), "Share of a device's memory that a plan may use."),
    )
