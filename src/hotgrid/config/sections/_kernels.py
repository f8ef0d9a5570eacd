"""The section `[kernels]`."""

from dataclasses import dataclass, field
from typing import Literal

from hotgrid.config._rules import OneOf
from hotgrid.config._section import Section, about

CheckMode = Literal["enforce", "validate", "auto"]


@dataclass(frozen=True, kw_only=True)
class Kernels(Section):
    """How kernels treat bad accesses and bad numbers; owned by `hotgrid.kernels`.

    Example:
        >>> Kernels().check_mode
        'auto'
    """

    check_mode: CheckMode = field(
        default="auto",
        metadata=about(
            OneOf(CheckMode),
            "enforce guards every access, validate also reports, auto trusts the kernels.",
        ),
    )
