"""The section `[kernels]`."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hotgrid.config._rules import ListOf, OneOf, Rule
from hotgrid.config._section import Section, about

CheckMode = Literal["enforce", "validate", "auto"]


class _Pair(Rule):
    """An op and one of its candidates, `OP=NAME`; whether they exist is not known here."""

    expected = "OP=CANDIDATE such as topk=sort"

    def accept(self, value: object, folder: Path | None = None) -> object:
        """Return the text unchanged."""
        if isinstance(value, str) and re.fullmatch(r"[a-z]\w*=[a-z][\w-]*", value):
            return value
        raise self._refused(value)


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
            "enforce guards every access, validate also checks results, auto trusts kernels.",
        ),
    )
    choose: tuple[str, ...] = field(
        default=(),
        metadata=about(
            ListOf(_Pair()), "Candidates named by hand, such as topk=sort; they are not timed."
        ),
    )
