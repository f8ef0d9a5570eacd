"""Sizes in bytes on the command line."""

import re
from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter, Token

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def read_size(kind: Any, tokens: Sequence[Token]) -> int:
    """The number of bytes in a size such as `64MiB`."""
    text = tokens[0].value
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text)
    if not found or found[2].upper() not in _UNITS:
        raise ValueError(f"`{text}` is not a size such as 4096, 512KiB or 64MB.")
    return round(float(found[1]) * _UNITS[found[2].upper()])


Size = Annotated[int | None, Parameter(converter=read_size)]
"""An option that is a size in bytes, or is not given."""
