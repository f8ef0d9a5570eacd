"""`Aspect`: how a picture shows a simulation."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Aspect:
    """How a picture shows a simulation; settings that are left out are chosen automatically.

    Attributes:
        view: One of the model's views; by default the model's own choice.
        colours: A colour map of matplotlib; by default one that suits the numbers. Views whose
            numbers are colours keep theirs.
        limits: The numbers of the first and the last colour; by default those of the view.
        axis: In three dims, the axis that the slice is at right angles to.
        slice: In three dims, which slice; by default the middle.

    Example:
        >>> Aspect("u", "viridis", (0.0, 1.0)).slice_of((16, 16, 16))
        8
    """

    view: str | None = None
    colours: str | None = None
    limits: tuple[float, float] | None = None
    axis: int = 0
    slice: int | None = None

    def places(self, size: Sequence[int], most: int) -> list[range]:
        """The places along each axis of the cells that are drawn, at most so many of each."""
        found = [range(0, n, -(-n // most)) for n in size]
        if len(size) == 3:
            at = self.slice_of(size)
            found[self.axis] = range(at, at + 1)
        return found

    def slice_of(self, size: Sequence[int]) -> int:
        """Which slice of three dims is shown."""
        last = size[self.axis] - 1
        return size[self.axis] // 2 if self.slice is None else min(max(self.slice, 0), last)
