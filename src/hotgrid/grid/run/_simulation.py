"""`Simulation`: a model that runs on a grid, on a device."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from hotgrid.cluster import all_or_raise
from hotgrid.errors import ArgumentError
from hotgrid.grid.forms import FormExplanation, GridState, ParameterSchedule, explained
from hotgrid.grid.model import checked_path
from hotgrid.grid.output import LivePicture, Picture, can_play, draw
from hotgrid.progress import Progress

from ._pace import CHECK_EVERY, Pace, goal_of
from ._snapshot import (
    SOLID,
    digest,
    digest_of_parts,
    read_snapshot,
    snapshot_path,
    write_snapshot,
)
from ._speed import Speed, speed_note


class Simulation(GridState):
    """A model running on a grid.

    Arguments:
        model: What is run.
        size: The grid, one number for each dim; by default the model's own.
        state: Fields to start from, by name, `[*space]` or `[components, *space]`;
            those left out come from the model's initial state.
        seed: Seeds the initial state.
        device: Where it runs; by default the GPU if there is one.
        mesh: How the grid is split over ranks, such as `"2x2"`; every rank makes the same
            simulation. See `hotgrid.cluster`.
        dtype: The floating type of arithmetic.
        storage: The floating type fields are kept in; by default `dtype`.
        batch: How many independent runs go side by side in one kernel; None is one
            run without a batch dim.
        inputs: Static inputs that replace the model's own, by name.
        form: How it runs: `"roll"`, `"padded"`, `"strips"`, `"graph"`, or a form that the
            model has of its own; by default the fastest. Where several may be, they are
            timed before the first step, and the winner is stored; see `explain_form`.
        compiled: Whether steps are compiled; by default as in the settings.
        depth: With a mesh, the steps between two exchanges of margins; by default what the
            planner finds best.
        overlap: With a mesh, whether messages are sent while the interior is computed; by
            default on GPUs.
        communicator: With a mesh, the ranks; by default those that were started together.

    Example:
        >>> from hotgrid.grid import pde
        >>> sim = Simulation(pde.Heat(), size=(32, 32), compiled=False)
        >>> sim.run(10).steps
        10

    Raises:
        ArgumentError: An argument does not match the model; the message names it.
    """

    speed: Speed | None = None
    """How fast the last run was; None before the first."""

    def run(
        self,
        steps: int | None = None,
        *,
        until: Callable[["Simulation"], bool] | None = None,
        time: float | None = None,
        check_every: int = CHECK_EVERY,
        stop: Callable[[], bool] | None = None,
        progress: bool | None = None,
    ) -> Speed:
        """Advance by steps, for a time, or until a condition holds.

        Arguments:
            steps: How many steps; with `until`, the most.
            until: Called when the step count is a multiple of `check_every`, and after the
                last step; true ends the run.
            time: For how long, in the units of the model; rounded up to whole steps.
            check_every: Steps between two checks that all numbers are finite.
            stop: Called about every second, between two steps; true ends the run. With a
                mesh, one rank that returns true ends it on all of them, after the same step.
            progress: Show a progress bar; by default on a terminal.

        Returns:
            How fast it was; also kept as `speed`.

        Raises:
            ArgumentError: Not exactly one of `steps` and `time` is given, or one is negative.
            UnstableError: The state is no longer finite. The simulation then holds
                the last finite state.
        """
        steps_in = partial(self._clock().steps_in, since=self.step_count)
        goal = goal_of(steps, time, steps_in, until is not None)
        fresh = self.speed is None
        pace = Pace(self, goal, check_every, until, stop, fresh=fresh)
        shown = progress if self._form.is_primary else False
        name, note = type(self.model).__name__, speed_note(self, fresh=fresh)
        with Progress(name, goal, unit="steps", note=note, show=shown) as bar:
            self.speed = pace.go(bar.update)
        return self.speed

    def show(self, view: str | None = None) -> Picture | LivePicture:
        """A picture of the state, which a notebook displays; `.save(path)` writes it.

        In a notebook where anywidget is installed (`pip install hotgrid[notebook]`) it is live,
        with buttons to play, pause and step; `draw` gives a still one there, too. So does this
        where the grid is cut over ranks.
        """
        if self._form.ranks is None and can_play():
            return LivePicture(self, view, lambda steps: self.run(steps, progress=False))
        return draw(self, view)

    def fork(self) -> "Simulation":
        """A second simulation that continues from here independently."""
        twin = object.__new__(Simulation)
        # Both read the same tensors of parameters from now on.
        self._shared_params = True
        twin.__dict__.update(self.__dict__)
        twin._callbacks = []
        twin.speed = None
        twin._form = self._form.fresh()
        twin._form.restore({name: x.clone() for name, x in self._form.own().items()})
        return twin

    def save(self, path: str | Path) -> Path:
        """Write state, steps and painted solid cells into one safetensors file, atomically.

        With a mesh the whole state is gathered, and the first rank writes it;
        `SimulationCheckpoints` lets every rank write its own part.

        Returns:
            The path of the file.
        """
        path = checked_path("path", path)
        state = {name: x.contiguous().cpu() for name, x in self._form.read().items()}
        if self._solid is not None:
            state[SOLID] = self._solid.cpu()
        if not self._form.is_primary:
            return snapshot_path(path)
        return write_snapshot(path, state, self.identity(), self.step_count, self.changes)

    def load(self, path: str | Path) -> None:
        """Continue from a file that `save` wrote, for the same model and grid.

        Raises:
            ArgumentError: The file is damaged or of another model, grid or type.
        """
        path, ranks = checked_path("path", path), self._form.ranks
        read = lambda: read_snapshot(path, self.identity())
        # A rank that cannot read it must not leave the others with another state.
        state, step_count, changes = read() if ranks is None else all_or_raise(ranks, read)
        found = {name: x.to(self.device) for name, x in state.items()}
        solid = found.pop(SOLID, None)
        if solid is not None or self._solid is not None:
            self._set_solid(solid)
        self._form.load(found)
        self._resumed_at(step_count, changes)

    def _resumed_at(self, step_count: int, changes: Mapping[str, str]) -> None:
        """Take over step count and changes of parameters of a state that was loaded."""
        self._edits += 1
        self.step_count = step_count
        plan = ParameterSchedule()
        for name, text in changes.items():
            plan = plan.with_changes(name, text)
        self._follow(plan)

    def identity(self) -> dict[str, str]:
        """The facts that a saved state must agree with to be loaded, as text, by name.

        The seed is not part of it: it decides the start, which a saved state replaces.
        Parameters are those of the start; changes are saved beside it.

        Example:
            >>> from hotgrid.grid import pde
            >>> Simulation(pde.Heat(), size=(8, 8), compiled=False).identity()["size"]
            '8x8'
        """
        return {
            "model": type(self._setting.model).__qualname__,
            "size": "x".join(map(str, self.size)),
            "batch": str(self._setting.batch[0] if self._setting.batch else "none"),
            "storage": str(self._setting.storage),
            "dtype": str(self._setting.dtype),
            "inputs": self._digest_of_inputs(),
            "parameters": repr(sorted(self._start.parameters.items())),
            "choices": self._start.choices(),
        }

    def _digest_of_inputs(self) -> str:
        """That of the whole inputs of the start, also where a rank has a part of them."""
        if self._start_parts is None:
            return digest(self._start_inputs)
        return digest_of_parts(self._start_inputs, self._setting.size, self._start_parts)


def explain_form(simulation: Simulation) -> FormExplanation:
    """Time every form that can run a simulation, from its present state.

    Compiling them takes a while; the simulation is unchanged.

    Arguments:
        simulation: What is run, without a mesh.

    Raises:
        ArgumentError: It has a mesh.

    Example:
        >>> from hotgrid.grid import pde
        >>> sim = Simulation(pde.Heat(), size=(16, 16), device="cpu", compiled=False)
        >>> found = explain_form(sim)
        >>> found.chosen, found.obstacles
        ('roll', {'graph': 'it records CUDA graphs and needs a GPU'})
    """
    from hotgrid.kernels import copy_bandwidth

    form = simulation._form
    if form.ranks is not None:
        raise ArgumentError("`explain_form` takes a simulation without a `mesh`")
    moved = simulation.bytes_per_step()
    limit = moved / copy_bandwidth(simulation.device).bytes_per_second
    return explained(simulation._setting, form.read(), moved, limit)
