"""Which of torch's implementations of an optimizer is called."""

from typing import Literal, get_args

from hotgrid.errors import ArgumentError, near

Implementation = Literal["fused", "foreach", "plain"]


def expect_implementation(name: str | None) -> None:
    """Do nothing if torch has such an implementation."""
    known = get_args(Implementation)
    if name is not None and name not in known:
        raise ArgumentError(
            f"`implementation` is {name!r}; expected one of {', '.join(known)}"
            f"{near(name, known)}"
        )


def fused_and_foreach(name: Implementation | None) -> tuple[bool, bool]:
    """The two flags as torch takes them."""
    return name in (None, "fused"), name == "foreach"
