"""What a live run does with a simulation between steps, besides what users call."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from hotgrid.cluster import Communicator
from hotgrid.errors import ArgumentError
from hotgrid.grid.forms import Form, ParameterSchedule, Setting
from hotgrid.grid.model import Model

from ._simulation import Simulation


@dataclass(frozen=True)
class Moment:
    """What this rank stored at one moment, for undo.

    Attributes:
        own: The fields of the cells that this rank stores.
        solid: The solid cells that were painted.
    """

    own: dict[str, Tensor]
    solid: Tensor | None


class LiveControl:
    """Steers a simulation: steps without checks or callbacks, new starts, undo.

    Args:
        simulation: What is steered.

    Example:
        >>> from hotgrid.grid import pde
        >>> sim = Simulation(pde.Heat(), size=(8, 8), compiled=False)
        >>> control = LiveControl(sim)
        >>> control.advance(5)
        False
        >>> sim.step_count
        5
    """

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation

    @property
    def form(self) -> Form:
        """The form that holds the fields now; changes of the simulation may replace it."""
        return self.simulation._form

    @property
    def setting(self) -> Setting:
        """How the simulation is set up: dtype, storage, batch."""
        return self.simulation._setting

    @property
    def ranks(self) -> Communicator | None:
        """The ranks that the grid is cut over."""
        return self.form.ranks

    @property
    def start(self) -> Model:
        """The model as it is at step 0."""
        return self.simulation._start

    @property
    def plan(self) -> ParameterSchedule:
        """The planned changes of parameters."""
        return self.simulation._schedule

    @property
    def edits(self) -> int:
        """How often the state was changed other than by steps."""
        return self.simulation._edits

    @property
    def painted_solid(self) -> bool:
        """Whether solid cells were painted."""
        return self.simulation._solid is not None

    def advance(self, steps: int) -> bool:
        """Make steps, with the planned changes of parameters; whether any is planned."""
        simulation, planned = self.simulation, False
        while steps > 0:
            form = simulation._ready()
            change = simulation._schedule.next_change(simulation.step_count)
            now = steps if change is None else min(steps, change - simulation.step_count)
            planned |= change is not None
            form.run(now)
            simulation.step_count += now
            steps -= now
        simulation._follow()
        return planned

    def restart(self, start: Model, plan: ParameterSchedule, seed: int | None = None) -> None:
        """Go to step 0 of another start; None keeps the seed. Painted cells are removed."""
        simulation = self.simulation
        simulation._start, simulation._schedule = start, plan
        if seed is not None:
            simulation.seed = seed
        if self.painted_solid:
            simulation._set_solid(None)
        simulation.reset()

    def load(self, path: Path, starts: Sequence[Model]) -> None:
        """Load a file that was saved from one of several starts: the first that fits it.

        Raises:
            ArgumentError: It fits none. The simulation is unchanged.
        """
        simulation, now, refused = self.simulation, self.start, None
        for start in starts:
            simulation._start = start
            try:
                simulation.load(path)
            except ArgumentError as problem:
                refused = problem
            else:
                return
        simulation._start = now
        if refused is not None:
            raise refused

    def moment(self) -> Moment:
        """Copy what this rank stores."""
        own = {name: x.clone() for name, x in self.form.own().items()}
        return Moment(own, self.simulation._solid)

    def return_to(self, moment: Moment) -> None:
        """Set what this rank stores to what it was; the step stays."""
        simulation = self.simulation
        if moment.solid is not simulation._solid:
            simulation._set_solid(moment.solid)
        simulation._form.restore(moment.own)
        simulation._edits += 1

    def rewound(self, step: int) -> None:
        """Call after the fields were set to those of an earlier step."""
        self.simulation.step_count = step
        self.simulation._edits += 1
