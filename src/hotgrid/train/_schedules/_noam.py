"""The schedule of the first transformer."""

from dataclasses import dataclass

from hotgrid.errors import ArgumentError

from ._schedule import StepSchedule


@dataclass(frozen=True)
class Noam(StepSchedule):
    """Linear warm-up, then the inverse square root: Vaswani et al. 2017, section 5.3.

    `scale * width**-0.5 * min(n**-0.5, n * warmup**-1.5)` with `n = step + 1`.

    Example:
        >>> rate = Noam(width=512, warmup=4000)
        >>> rate(3999) == max(rate(step) for step in range(0, 8000))
        True
    """

    width: int
    warmup: int
    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width < 1 or self.warmup < 1:
            raise ArgumentError(f"`width` and `warmup` of {self} must be 1 or more")

    def at(self, step: int) -> float:
        """Return the value."""
        n = step + 1
        return self.scale * self.width**-0.5 * min(n**-0.5, n * self.warmup**-1.5)
