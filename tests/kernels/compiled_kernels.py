"""Stand-ins for kernels that Triton has compiled: they note what they are launched with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Compiled:
    """As much of a compiled kernel as a launch needs.

    Attributes:
        log: All launches: the way that was taken, the kernel, and what it was given.
        number: Which kernel it is.
    """

    log: list[tuple[Any, ...]]
    number: int
    function: str = field(default_factory=lambda: "handle")
    packed_metadata: str = "packed"

    def run(self, *given: Any) -> None:
        self.log.append(("straight", self.number, *given))

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *given: self.log.append(("plainly", self.number, grid, *given))


@dataclass
class Jit:
    """What `triton.jit` would make; a kernel is compiled for every call."""

    log: list[tuple[Any, ...]] = field(default_factory=list)
    made: int = 0
    kind: Callable[..., Any] = Compiled

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def launch(*given: Any, **options: Any) -> Any:
            self.made += 1
            self.log.append(("compiled", self.made, grid, options))
            return self.kind(self.log, self.made)

        return launch
