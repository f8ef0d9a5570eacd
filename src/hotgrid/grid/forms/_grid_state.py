"""`GridState`: the fields of a model on a grid, in the form that steps them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from hotgrid.config import current
from hotgrid.errors import ArgumentError, near
from hotgrid.grid.model import (
    Field,
    Model,
    SeenState,
    State,
    checked_device,
    checked_model,
    checked_size,
    expect_callable,
    expect_flag,
    given_tensors,
    observed,
    parameters_read,
    pictured,
    whole_number,
)

from ._choice import chosen_form
from ._clock import Clock
from ._form import Form, Setting
from ._memory import check_memory
from ._schedule import ParameterSchedule, alike
from .check import check_step, constants_of
from .cut import cut_form, laid_out
from .parts._own_fields import OwnFields
from .parts._part_inputs import PartInputs, whole_block
from .parts._parts import look_here, observe_parts, paint_here

if TYPE_CHECKING:
    from hotgrid.cluster import Communicator, Mesh


class GridState:
    """The fields of a model on a grid, and the form that steps them.

    `Simulation` adds runs, callbacks, saving and pictures; its arguments are described there.
    """

    def __init__(
        self,
        model: Model,
        size: Sequence[int] | None = None,
        state: Mapping[str, Tensor] | None = None,
        seed: int = 0,
        device: str | torch.device | None = None,
        mesh: "Mesh | str | Sequence[int] | None" = None,
        *,
        dtype: torch.dtype = torch.float32,
        storage: torch.dtype | None = None,
        batch: int | None = None,
        inputs: Mapping[str, Tensor] | None = None,
        form: str | None = None,
        compiled: bool | None = None,
        depth: int | None = None,
        overlap: bool | None = None,
        communicator: "Communicator | None" = None,
    ) -> None:
        model = checked_model(model)
        self.size = checked_size(model, size)
        self.seed = whole_number("seed", seed, 0, 2**64 - 1)
        self.step_count = 0
        self.device = checked_device(device)
        for name, kind in (("dtype", dtype), ("storage", storage or dtype)):
            if not (isinstance(kind, torch.dtype) and kind.is_floating_point):
                raise ArgumentError(
                    f"`{name}` must be a floating type, such as torch.float32, got {kind!r}"
                )
        if batch is not None:
            batch = whole_number("batch", batch, 1)
        self._layout = None
        if mesh is not None:
            self._layout = laid_out(mesh, communicator, self.device, len(self.size))
        parts = self._layout[0].shape if self._layout else ()
        check_memory(model, self.size, self.device, storage or dtype, batch, parts)
        self._edits = 0
        self._callbacks: list[tuple[int, Callable[[Any], object]]] = []
        for name, flag in (("compiled", compiled), ("overlap", overlap)):
            if flag is not None:
                expect_flag(name, flag)
        for name, value in (("depth", depth), ("overlap", overlap)):
            if mesh is None and value is not None:
                raise ArgumentError(f'`{name}` {value!r} needs a `mesh`, such as `mesh="2x2"`')
        self._kinds = (dtype, storage or dtype, () if batch is None else (batch,))
        self._replaced = given_tensors("inputs", {} if inputs is None else inputs)
        self._enabled = current().compile.enabled != "off" if compiled is None else compiled
        self._wanted = (form, depth, overlap)
        self._solid: Tensor | None = None
        self._time: Clock | None = None
        self._build(model)
        self._start, self._start_inputs = model, self._setting.inputs
        self._start_parts = self._setting.part_inputs
        self._schedule = ParameterSchedule()
        # The caller may still write into what was given.
        given = given_tensors("state", {} if state is None else state)
        self._given = {name: x.clone() for name, x in given.items()}
        self.reset()

    def _build(self, model: Model) -> None:
        """Make the setting and the form that run a model, without a state."""
        dtype, storage, batch = self._kinds
        running = model.fitted(self.size)
        stored = running.stored_size(self.size)
        self._own = whole_block(stored)
        if self._layout is not None:
            self._own = self._layout[0].block(self._layout[1].rank, stored)
        part_inputs = self._part_inputs(model)
        with parameters_read(model) as read:
            inputs = part_inputs(self._own)
        self.model = model
        self._setting = Setting(
            model=running,
            size=stored,
            batch=batch,
            device=self.device,
            dtype=dtype,
            storage=storage,
            inputs=inputs,
            params={
                name: torch.tensor(value, dtype=dtype, device=self.device)
                for name, value in model.parameters.items()
            },
            compiled=self._enabled,
            part_inputs=None if self._layout is None else part_inputs,
        )
        self._own_fields = OwnFields(self._setting, self._own, self.size)
        form, depth, overlap = self._wanted
        if self._layout is None:
            self._form = chosen_form(self._setting, form)
        else:
            self._form = cut_form(self._setting, *self._layout, depth, overlap, form)
        self._checked = False
        self._read_by_inputs = frozenset(read)
        self._constants: frozenset[str] = frozenset()
        self._shared_params = False

    def _part_inputs(self, model: Model) -> PartInputs:
        """The static inputs of a model on the device, as they are kept, of any box."""
        return PartInputs(model, self._replaced, self.size, self.device, self._kinds[1])

    @property
    def form(self) -> str:
        """The name of the form that runs it; `undecided` where the first step is to choose."""
        return self._form.name

    @property
    def form_name(self) -> str:
        """The same as `form`."""
        return self.form

    @property
    def compiled(self) -> bool:
        """Whether its steps are compiled, or will be by the first of them."""
        return self._form.compiled

    @property
    def time(self) -> float:
        """The time that has passed, in the units of the model."""
        return self._clock().at(self.step_count)

    def _clock(self) -> Clock:
        """The time at each step, as long as start and planned changes stay the same."""
        now = self._time
        if now is None or now.start is not self._start:
            now = Clock(self._start, self._schedule)
        elif now.plan is not self._schedule:
            now = Clock(self._start, self._schedule, now.known)
        self._time = now
        return now

    @property
    def state(self) -> State:
        """A copy of the fields, `[*space]` or `[components, *space]`, batch first."""
        seen = {
            field.name: self._seen(field, x).clone()
            for field, x in zip(self.model.fields, self._form.read().values(), strict=True)
        }
        return self._setting.model.shown(seen)

    @state.setter
    def state(self, fields: Mapping[str, Tensor]) -> None:
        kept = self._own_fields.kept(self.model, fields)
        self._edits += 1
        self._form.load({**{k: x.clone() for k, x in self._form.read().items()}, **kept})

    def reset(self) -> None:
        """Go back to the state it started from."""
        self.step_count = 0
        # The start is made by the model as it was then.
        self._follow()
        own = self._own_fields
        given = own.kept(self.model, self._given)
        lacking = [f.name for f in self._setting.model.fields if f.name not in given]
        given = {name: own.part(x) for name, x in given.items()}
        if lacking:
            notice = self._form.is_primary and not self._edits
            given |= own.begin(self.model, lacking, self.seed, notice=notice)
        self._form.restore(given)
        self._edits += 1

    def step(self) -> None:
        """Advance by one step."""
        self._ready().run(1)
        self.step_count += 1

    def set(self, **parameters: float) -> None:
        """Change parameters from the present step on; `changes` records it.

        Steps that read a parameter from `params` take the new value at once. Where a step, an
        input or an attribute was made from the old value, the step is built again.

        Example:
            >>> from hotgrid.grid import pde
            >>> sim = Simulation(pde.Heat(rate=0.1), size=(8, 8), compiled=False)
            >>> sim.set(rate=0.2)
            >>> sim.changes
            {'rate': '0.2 @ 0'}

        Raises:
            ArgumentError: A parameter is unknown or its value is out of bounds.
        """
        values = self.model.changed(**parameters).parameters
        plan, start = self._schedule, self._start.parameters
        for name in parameters:
            plan = plan.with_value(name, values[name], self.step_count, start[name])
        self._follow(plan)

    def schedule(self, **changes: "str | Sequence[tuple[int, float]]") -> None:
        """Plan changes of parameters: at a step, or as a ramp between two steps.

        Arguments:
            changes: For each parameter a text such as `"400 @ 2000"`, `"400 @ 2000..3000"`
                for a ramp, several joined by `->`; or a list of pairs (step, value).

        Example:
            >>> from hotgrid.grid import pde
            >>> sim = Simulation(pde.Heat(rate=0.1), size=(8, 8), compiled=False)
            >>> sim.schedule(rate="0.2 @ 10 -> 0.05 @ 20..30")
            >>> sim.run(25).steps, sim.model.rate
            (25, 0.125)

        Raises:
            ArgumentError: A parameter is unknown, a value is out of bounds, or the changes are
                not in the order of their steps.
        """
        plan = self._schedule
        for name, given in changes.items():
            known = len(plan.changes.get(name, ()))
            plan = plan.with_changes(name, given)
            past = [each for each in plan.changes[name][known:] if each.since < self.step_count]
            if past:
                raise ArgumentError(
                    f'`{name}` cannot change at "{past[0]}": the run is at step '
                    f"{self.step_count} already; plan later steps, or use `set` for now"
                )
            for change in plan.changes[name]:
                # Refused now, not after hours when its step has come.
                checked_size(self._start.changed(**{name: change.value}), self.size)
        self._follow(plan)

    @property
    def changes(self) -> dict[str, str]:
        """The changes of parameters, planned or made by `set`, as `schedule` reads them."""
        return self._schedule.texts()

    def _follow(self, plan: ParameterSchedule | None = None) -> bool:
        """Give parameters the values of the present step; whether any value changed."""
        plan = self._schedule if plan is None else plan
        values = plan.values(self._start.parameters, self.step_count)
        now = self.model.parameters
        changed = {name: value for name, value in values.items() if value != now[name]}
        if changed:
            self._retune(changed)
        self._schedule = plan
        return bool(changed)

    def _retune(self, changed: Mapping[str, float]) -> None:
        model = self.model.changed(**changed)
        checked_size(model, self.size)
        live = (
            self._checked
            and self._form.live_params
            and not self._shared_params
            and not self._constants & {*changed}
            and alike(model.fitted(self.size), self._setting.model)
        )
        if live and self._read_by_inputs & {*changed}:
            inputs = self._part_inputs(model)(self._own)
            live = self._form.everywhere(alike(inputs, dict(self._setting.inputs)))
        if live:
            self.model = model
            for name, value in changed.items():
                self._setting.params[name].fill_(value)
            return
        self._rebuild(model)

    def _rebuild(self, model: Model) -> None:
        """Go on with another model from the present state."""
        own = {name: x.clone() for name, x in self._form.own().items()}
        self._build(model)
        self._form.restore(own)

    def _ready(self) -> Form:
        """The form that runs it, chosen and with its step checked."""
        self._follow()
        if not self._checked:
            check_step(self.model, self._setting, self._form.own())
            self._constants |= constants_of(self.model)
            self._checked = True
        self._form = self._form.settled()
        return self._form

    def every(self, steps: int, callback: Callable[[Self], object]) -> None:
        """Call `callback(simulation)` every N steps of later runs.

        Raises:
            ArgumentError: `steps` is below one, or the callback cannot be called.
        """
        steps = whole_number("steps", steps, 1)
        expect_callable("callback", callback, "the simulation")
        self._callbacks.append((steps, callback))

    def observe(self) -> dict[str, Any]:
        """Every observable of the model as a number, or a list of them for a batch."""
        watched, found = self.model.observables(), observe_parts(self)
        left = {name: each for name, each in watched.items() if name not in found}
        for state in self._looks() if left else ():
            for name, each in left.items():
                found.setdefault(name, []).append(observed(self.model, name, each(state)))
        runs = slice(None) if self._setting.batch else 0
        return {name: found[name][runs] for name in watched}

    def view(self, name: str | None = None) -> Tensor:
        """One picture of the state, `[*space]` on the CPU; by default the model's own.

        Raises:
            ArgumentError: The model has no such view.
        """
        views = self.model.views()
        if not views:
            raise ArgumentError(f"{type(self.model).__name__} has no views; write a `@view`")
        name = name or self.model.picture or next(iter(views))
        if name not in views:
            raise ArgumentError(
                f"{type(self.model).__name__} has no view `{name}`{near(name, views)} "
                f"(its views are {', '.join(views)})"
            )
        runs = [pictured(self.model, name, views[name](state)) for state in self._looks()]
        return torch.stack(runs) if self._setting.batch else runs[0]

    def look(self, name: str) -> Tensor:
        """A view of the first run on its device, `[*space]`; valid until the next step.

        Unlike `view` nothing is copied first. With a mesh all ranks must call it.
        """
        return self.model.views()[name](SeenState(self._first_run(self._form.read())))

    def look_here(self, name: str) -> tuple[Tensor, tuple[int, ...]]:
        """A view of the cells that are stored here, `[*cells]`, and the first of them.

        With a mesh all ranks must call it, and their cells make up the grid. A view whose
        reach is not known is computed whole, and is all on the first rank.
        """
        return look_here(self, name)

    def _first_run(self, stored: State) -> State:
        """Fields as users see them, of the first run, from fields as they are stored."""
        shown = self._shown(stored)
        return {k: x[0] for k, x in shown.items()} if self._setting.batch else shown

    def _shown(self, stored: State) -> State:
        """Fields as users see them, from fields as they are stored."""
        fields = {
            field.name: self._seen(field, x)
            for field, x in zip(self.model.fields, stored.values(), strict=True)
        }
        return self._setting.model.shown(fields)

    def paint(self, brush: str, mask: Tensor, value: float) -> None:
        """Paint into the state, between two steps.

        Arguments:
            brush: The name of one of the model's `brushes`.
            mask: Where, bool `[*space]`.
            value: What; for solid cells, 0 removes what was painted before.

        Raises:
            ArgumentError: The model has no such brush, the value is not a finite number of
                its dtype, or the mask is not of its grid.
        """
        known = {each.name: each for each in self.model.brushes()}
        if brush not in known:
            raise ArgumentError(
                f"{type(self.model).__name__} has no brush `{brush}`{near(brush, known)} "
                f"(its brushes are {', '.join(known) or 'none'})"
            )
        most = torch.finfo(self._setting.storage).max
        if not isinstance(value, Real) or not abs(value) <= most:
            raise ArgumentError(
                f"cannot paint {value!r} with the brush `{brush}`; expected a number of at "
                f"most {most:.3g}"
            )
        if mask.shape != self.size or mask.dtype != torch.bool:
            raise ArgumentError(
                f"`mask` must be bool of the shape {self.size}, got {mask.dtype} of "
                f"{tuple(mask.shape)}"
            )
        if known[brush].kind == "solid":
            mask = mask.to(self.device)
            now = torch.zeros_like(mask) if self._solid is None else self._solid
            self._set_solid(now & ~mask if value == 0 else now | mask)
        elif self._setting.batch:
            raise ArgumentError("painting into a batch of runs is not possible")
        else:
            paint_here(self, brush, mask, value)

    def _set_solid(self, solid: Tensor | None) -> None:
        """Replace the solid cells that were painted; None removes them all."""
        self._solid = solid
        if solid is not None:
            self._rebuild(self.model.with_solid(solid))
        else:
            # Not without cells: the boundary would remain, and cost its share of each step.
            self._rebuild(self._start.changed(**self.model.parameters))

    def cells(self) -> Tensor:
        """The cells of a cellular automaton, `[*space]` uint8: 1 is alive.

        Raises:
            ArgumentError: The model has no such cells.
        """
        read = getattr(self.model, "cells", None)
        if read is None:
            raise ArgumentError(
                f"{type(self.model).__name__} has no cells that live or die; use `state`"
            )
        return read(self.state).cpu()

    def bytes_per_step(self) -> int:
        """Bytes that one step must read and write: fields twice, inputs once."""
        setting = self._setting
        fields = sum(
            2 * setting.cells * field.components * setting.kept_as(field).itemsize
            for field in setting.model.fields
        )
        fixed = sum(
            math.prod(setting.size) * known.components * setting.kept_as(known).itemsize
            for known in setting.model.inputs
        )
        return fields + fixed

    def _looks(self, stored: State | None = None) -> Iterator[SeenState]:
        """The present state of every run, one after the other; or that of a stored part."""
        state = self.state if stored is None else self._shown(stored)
        for run in range(math.prod(self._setting.batch)):
            yield SeenState({k: x[run] if self._setting.batch else x for k, x in state.items()})

    def _seen(self, field: Field, x: Tensor) -> Tensor:
        """As users see a field: without the dim of a single component."""
        return x.squeeze(-self._setting.rank - 1) if field.components == 1 else x
