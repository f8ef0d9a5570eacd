"""Reading a plan, with the encodings of hotgrid for its operator `tokenise`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hotgrid.errors import ArgumentError

if TYPE_CHECKING:
    from hotgrid.data import Plan


def read_plan(path: Path) -> Plan:
    """The plan in a file, its types checked.

    Raises:
        ArgumentError: It is not a plan, or its types do not fit.
    """
    from hotgrid.data import Plan, Tokenise, set_encoder
    from hotgrid.tokens import get_encoding, list_encoding_names

    plan = Plan.read(path)
    for step in plan.steps:
        name = step.config.get("encoder")
        if step.operator == Tokenise.name and name in list_encoding_names():
            set_encoder(str(name), get_encoding(str(name)).encode_ordinary)
    try:
        plan.yielded()
    except ArgumentError as problem:
        raise ArgumentError(f"`{path}`: {problem}") from None
    return plan
