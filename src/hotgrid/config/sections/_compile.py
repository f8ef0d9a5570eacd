"""The section `[compile]`."""

from dataclasses import dataclass, field
from typing import Literal

from hotgrid.config._places import CachePlace, PlaceWord
from hotgrid.config._rules import OneOf, Whole, WordOrFile
from hotgrid.config._section import Section, about

Switch = Literal["auto", "on", "off"]


@dataclass(frozen=True, kw_only=True)
class Compile(Section):
    """How step functions are compiled; owned by `hotgrid.grid`.

    Example:
        >>> Compile(enabled="off").max_fusion_size
        512
    """

    enabled: Switch = field(
        default="auto",
        metadata=about(
            OneOf(Switch),
            "Compile steps: auto if a compiler works, on always, off never.",
        ),
    )
    cache: CachePlace = field(
        default="global",
        metadata=about(
            WordOrFile(PlaceWord),
            "Where compiled code is kept for the next process; none stores nothing.",
        ),
    )
    max_fusion_size: int = field(
        default=512,
        metadata=about(
            Whole(1, 65536),
            "Operations Inductor may fuse into one kernel; its default is 64.",
        ),
    )
