"""The section `[autotune]`."""

from dataclasses import dataclass, field
from typing import Literal

from hotgrid.config._places import CachePlace, PlaceWord
from hotgrid.config._rules import Number, OneOf, Whole, WordOrFile
from hotgrid.config._section import Section, about

AutotuneLevel = Literal["minimal", "balanced", "extensive", "full"]
"""How much the tuner tries."""


@dataclass(frozen=True, kw_only=True)
class Autotune(Section):
    """How candidates are timed and winners stored; owned by `hotgrid.kernels`.

    Example:
        >>> Autotune(level="full").samples
        10
    """

    level: AutotuneLevel = field(
        default="balanced",
        metadata=about(
            OneOf(AutotuneLevel),
            "How many candidates are tried, and how finely sizes are distinguished.",
        ),
    )
    cache: CachePlace = field(
        default="project",
        metadata=about(
            WordOrFile(PlaceWord),
            "Where winners are stored; none tunes again in every process.",
        ),
    )
    warmups: int = field(
        default=3,
        metadata=about(Whole(0, 1000), "Runs of a candidate before timing starts."),
    )
    samples: int = field(
        default=10, metadata=about(Whole(1, 10_000), "Timed runs of a candidate.")
    )
    stop_at_roofline: float = field(
        default=0.9,
        metadata=about(
            Number(0.1, 1.0),
            "Stop looking when a candidate reaches this share of the hardware limit.",
        ),
    )
