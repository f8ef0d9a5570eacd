"""The outcome of a run, for people and for programs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._simulation import Simulation
from ._speed import Speed


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run.

    Attributes:
        simulation: Its final state.
        speed: How fast it was.
        observables: The observables at the end.
        files: What was written.
        copy_bandwidth: That of the device, in bytes a second; None when no step was made, or
            when it is not known and the run was too short to measure it.
        is_primary: Whether this process reports it.
        stopped: Whether it was stopped before its end.
    """

    simulation: Simulation
    speed: Speed
    observables: dict[str, Any]
    files: list[Path]
    copy_bandwidth: float | None
    is_primary: bool = True
    stopped: bool = False

    @property
    def share(self) -> float | None:
        """The share of the copy bandwidth that the steps reached; None if that is not known."""
        return self.copy_bandwidth and self.speed.bytes_per_second / self.copy_bandwidth

    def plain(self) -> dict[str, Any]:
        """The object of `run --json`."""
        simulation, speed = self.simulation, self.speed
        return {
            "model": type(simulation.model).__name__,
            "size": list(simulation.size),
            "device": str(simulation.device),
            "form": simulation.form,
            "seed": simulation.seed,
            "parameters": simulation.model.parameters,
            "step": simulation.step_count,
            "time": simulation.time,
            "stopped": self.stopped,
            "observables": self.observables,
            "speed": {
                "steps": speed.steps,
                "seconds": speed.seconds,
                "startup_seconds": speed.startup_seconds,
                "steps_per_second": speed.steps_per_second,
                "mlups": speed.mlups,
                "gigabytes_per_second": speed.bytes_per_second / 1e9,
                "copy_gigabytes_per_second": self.copy_bandwidth and self.copy_bandwidth / 1e9,
                "share_of_copy": self.share,
            },
            "files": [str(path) for path in self.files],
        }
