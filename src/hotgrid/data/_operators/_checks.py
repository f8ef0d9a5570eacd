"""Settings that several operators have."""

from hotgrid.errors import ArgumentError


def require_sizes(**sizes: int) -> None:
    """Raise unless all sizes are 1 or more, and not absurd."""
    for name, size in sizes.items():
        if type(size) is not int or not 1 <= size <= 1 << 16:
            raise ArgumentError(f"`{name}` is {size!r}; choose a whole number up to 65536")


def require_range(name: str, given: tuple[float, float], highest: float = float("inf")) -> None:
    """Raise unless it is two positive numbers in ascending order."""
    if len(given) != 2 or not 0 < given[0] <= given[1] <= highest:
        top = "" if highest == float("inf") else f", at most {highest}"
        raise ArgumentError(f"`{name}` {given} is not two positive numbers, ascending{top}")
