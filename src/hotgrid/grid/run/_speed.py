"""How fast a run was, compared with what the hardware can do."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

from hotgrid.grid.forms import GridState


@dataclass(frozen=True)
class Speed:
    """How fast a run was.

    Attributes:
        steps: Steps made.
        seconds: Time they took, all but the start-up.
        startup_seconds: The very first step, and compiling it where steps are compiled;
            in the first run alone.
        cells: Cells of the grid, all runs of a batch together.
        bytes_per_step: Bytes that one step must read and write.
        startup_steps: Steps that went into the start-up and are not in `seconds`.

    Example:
        >>> Speed(10, 2.0, 0.0, 1_000_000, 8_000_000).mlups
        5.0
    """

    steps: int
    seconds: float
    startup_seconds: float
    cells: int
    bytes_per_step: int
    startup_steps: int = 0

    @property
    def steps_per_second(self) -> float:
        """Steps a second, without the start-up; zero when there was nothing else."""
        timed = self.steps - self.startup_steps
        return timed / self.seconds if timed and self.seconds else 0.0

    @property
    def mlups(self) -> float:
        """Million cells updated a second."""
        return self.cells * self.steps_per_second / 1e6

    @property
    def bytes_per_second(self) -> float:
        """The memory traffic that the steps cannot do without, a second."""
        return self.bytes_per_step * self.steps_per_second


def speed_note(simulation: GridState, *, fresh: bool) -> Callable[[float], str]:
    """The note of a progress bar for a rate in steps a second; a `fresh` one compiles first."""
    from hotgrid.kernels import kept_bandwidth

    # Measuring would take longer than many runs; a long run does it at its end.
    copy = functools.cache(kept_bandwidth)

    def note(rate: float) -> str:
        if not rate:
            return "compiling" if fresh and simulation.compiled else ""
        moved = rate * simulation.bytes_per_step()
        cells = math.prod(simulation.size) * math.prod(simulation._setting.batch)
        speed = f"{rate:,.0f} steps/s  {rate * cells / 1e6:,.0f} MLUPS  {moved / 1e9:,.1f} GB/s"
        limit = copy(simulation.device)
        return f"{speed} = {moved / limit.bytes_per_second:.0%} of copy" if limit else speed

    return note
