"""Limits of explicit steps that depend on the number of dims."""

from hotgrid.errors import ArgumentError
from hotgrid.grid.model import Model


def expect_stable(model: Model, limit: float, rank: int, *names: str) -> None:
    """Raise `ArgumentError` where a parameter is above the limit of stable steps."""
    for name in names:
        value = model.parameters[name]
        if value > limit:
            raise ArgumentError(
                f"`{name}` must be at most {limit:.4g} for steps to be stable in {rank} dims, "
                f"got {value:g}"
            )
