"""Whole numbers on the command line: nothing is rounded silently."""

from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter, Token


def read_whole_number(kind: Any, tokens: Sequence[Token]) -> int:
    """The integer value of a command-line argument."""
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"`{text}` is not a whole number.") from None


WholeNumber = Annotated[int | None, Parameter(converter=read_whole_number)]
"""An option that is a whole number, or is not given."""
