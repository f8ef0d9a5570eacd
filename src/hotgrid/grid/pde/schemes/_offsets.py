"""Offsets of the cells beside a cell."""


def along(rank: int, dim: int, by: int) -> tuple[int, ...]:
    """The offset of the cell `by` cells further along one dim.

    Example:
        >>> along(3, 1, -1)
        (0, -1, 0)
    """
    return tuple(by * (each == dim) for each in range(rank))
