"""Control of a live run between steps, besides what users call."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from hotgrid.cluster import Communicator
from hotgrid.errors import ArgumentError
from hotgrid.grid.forms import Form, ParameterSchedule, Setting
from hotgrid.grid.model import Model

from ._simulation import Simulation
from ._snapshot import saved_parameters


@dataclass(frozen=True)
class Moment:
    """The state that this rank stored at one moment, for undo.

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
        """Make steps, with the planned changes of parameters; whether any took place."""
        simulation, changed = self.simulation, False
        while steps > 0:
            form = simulation._ready()
            change = simulation._schedule.next_change(simulation.step_count)
            now = steps if change is None else min(steps, change - simulation.step_count)
            form.run(now)
            simulation.step_count += now
            changed |= simulation.step_count == change
            steps -= now
        simulation._follow()
        return changed

    def restart(self, start: Model, plan: ParameterSchedule, seed: int | None = None) -> None:
        """Go to step 0 of another start; None keeps the seed. Painted cells are removed."""
        simulation = self.simulation
        self._begin_with(start)
        simulation._schedule = plan
        if seed is not None:
            simulation.seed = seed
        if self.painted_solid:
            simulation._set_solid(None)
        simulation.reset()

    def load(self, path: Path) -> None:
        """Load a file of the same model and grid, with the parameters that it started with.

        Raises:
            ArgumentError: It is of another model or grid. The simulation is unchanged.
        """
        simulation, now, saved = self.simulation, self.start, saved_parameters(path)
        if saved.keys() == now.parameters.keys() and saved != now.parameters:
            self._begin_with(now.changed(**saved))
        try:
            simulation.load(path)
        except ArgumentError:
            self._begin_with(now)
            raise

    def _begin_with(self, start: Model) -> None:
        """Take another model for the one at step 0, with the inputs that it has."""
        simulation = self.simulation
        if start is simulation._start:
            return
        parts = simulation._part_inputs(start)
        simulation._start, simulation._start_inputs = start, parts(simulation._own)
        simulation._start_parts = None if simulation._layout is None else parts

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
