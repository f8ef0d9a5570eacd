"""The loop of a run: from event to event, without a host read in between."""

import math
import time
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NoReturn

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, UnstableError
from hotgrid.grid.forms import GridState
from hotgrid.grid.model import State, expect_callable, whole_number

from ._speed import Speed

CHECK_EVERY = 1000
# Seconds within which a stop request is noticed.
_STOP_WITHIN = 1.0


def goal_of(
    steps: int | None,
    duration: float | None,
    steps_in: Callable[[float], int],
    has_until: bool,
) -> int | None:
    """The number of steps to make, or None for as many as it takes."""
    if steps is not None and duration is not None:
        raise ArgumentError("give `steps` or `time`, not both")
    if steps is not None and (not isinstance(steps, Integral) or isinstance(steps, bool)):
        raise ArgumentError(f"`steps` must be a whole number, got {steps!r}")
    if duration is not None:
        if not isinstance(duration, Real) or not math.isfinite(duration):
            raise ArgumentError(f"`time` must be a finite number, got {duration!r}")
        steps = steps_in(duration)
    if steps is None and not has_until:
        raise ArgumentError("give `steps`, `time` or `until`")
    if steps is not None and steps < 0:
        raise ArgumentError(f"cannot run {steps} steps; time goes forward only")
    return None if steps is None else int(steps)


class Pace:
    """One run of a simulation.

    Arguments:
        simulation: What runs.
        goal: Steps to make, or None.
        check_every: Steps between two checks that all numbers are finite.
        until: Called at every such check and at the last step; true ends the run.
        stop: Called about every second; true on one rank ends the run on all of them.
        fresh: Whether no step was made before; the first one compiles.
    """

    def __init__(
        self,
        simulation: GridState,
        goal: int | None,
        check_every: int,
        until: Callable[[Any], bool] | None,
        stop: Callable[[], bool] | None = None,
        *,
        fresh: bool,
    ) -> None:
        if until is not None:
            expect_callable("until", until, "the simulation")
        if stop is not None:
            expect_callable("stop", stop, "nothing")
        self._simulation = simulation
        self._form = simulation._form
        self._goal = goal
        self._check_every = whole_number("check_every", check_every, 1)
        self._until = until
        self._stop = stop
        self._fresh = fresh
        self._stride = 1
        self._good: State = {}
        self._good_at = simulation.step_count
        self._good_now = True
        self._elsewhere = 0.0

    def go(self, tell: Callable[[int], None]) -> Speed:
        """Run to the end; `tell` is called with the number of steps so far."""
        simulation = self._simulation
        begin = time.perf_counter()
        self._form = simulation._ready()
        self._remember()
        startup = 0.0
        made = apart = 0
        self._elsewhere = 0.0
        more = self._goal != 0
        while more:
            # The very first step compiles; it is timed apart.
            first = not made and self._fresh
            steps = 1 if first else self._until_next_event(made)
            set_out = time.perf_counter()
            if simulation._follow():
                # Not across a change: the search for the first bad step has one set of values.
                self._form = simulation._ready()
                self._remember()
            self._advance(steps)
            made += steps
            if first:
                wait_for(simulation.device)
                startup = time.perf_counter() - begin
                apart = 1
            more = self._events(made, self._told_to_stop(steps, set_out))
            tell(made)
        simulation._follow()
        wait_for(simulation.device)
        seconds = time.perf_counter() - begin - startup - self._elsewhere
        cells = math.prod(simulation.size) * math.prod(simulation._setting.batch)
        return Speed(made, seconds, startup, cells, simulation.bytes_per_step(), apart)

    def _advance(self, steps: int) -> None:
        if self._good_now:
            self._keep_good()
        try:
            self._form.run(steps)
        except BaseException:
            # Interrupted in the middle, the number of steps made is unknown.
            self._form.restore(self._good)
            self._simulation.step_count = self._good_at
            raise
        self._simulation.step_count += steps

    def _until_next_event(self, made: int) -> int:
        now = self._simulation.step_count
        periods = [self._check_every, *[n for n, _ in self._simulation._callbacks]]
        ahead = [n - now % n for n in periods]
        if self._goal is not None:
            ahead.append(self._goal - made)
        if self._stop is not None:
            ahead.append(self._stride)
        change = self._simulation._schedule.next_change(now)
        if change is not None:
            ahead.append(change - now)
        return min(ahead)

    def _told_to_stop(self, steps: int, set_out: float) -> bool:
        """Whether to end the run, the same on every rank; checked only now and then."""
        if self._stop is None:
            return False
        wait_for(self._simulation.device)
        # Ranks must make the same steps, so they also agree on how many.
        quick = time.perf_counter() - set_out < _STOP_WITHIN / 4
        if steps == self._stride and self._form.everywhere(quick):
            self._stride *= 2
        return not self._form.everywhere(not self._stop())

    def _events(self, made: int, stopped: bool) -> bool:
        """Check and call what is due; return whether the run continues."""
        simulation = self._simulation
        more = made != self._goal and not stopped
        edits, now = simulation._edits, simulation.step_count
        due = [callback for period, callback in simulation._callbacks if now % period == 0]
        looking = now % self._check_every == 0 or not more
        # Callbacks save and draw: they do not see a state that is not finite.
        if looking or due:
            if not self._form.everywhere(finite(self._form.own())):
                self._unstable()
            self._remember()
        if looking and self._until is not None:
            # Called at the last step, too: it may count or store what it sees.
            enough = self._until(simulation)
            more = more and not enough
        if due:
            # What callbacks do is not the speed of the steps.
            wait_for(simulation.device)
            begin = time.perf_counter()
            for callback in due:
                callback(simulation)
            self._elsewhere += time.perf_counter() - begin
        if simulation._edits != edits:
            self._remember()
        return more

    def _remember(self) -> None:
        """Take the present state for good; it is copied when a step is about to change it."""
        self._good_now = True

    def _keep_good(self) -> None:
        own = self._form.own()
        if self._form.leaves_old:
            self._good = dict(own)
        else:
            # Into the old one: a second copy would be the largest thing in memory.
            for name, x in own.items():
                if name in self._good:
                    self._good[name].copy_(x)
                else:
                    self._good[name] = x.clone()
        self._good_at = self._simulation.step_count
        self._good_now = False

    def _unstable(self) -> NoReturn:
        """Repeat the steps since the last good state, and stop before the first bad one."""
        simulation, form = self._simulation, self._form
        step, last = self._good_at, self._good
        if not form.everywhere(finite(last)):
            name, cell = self._bad_cell(last)
            raise UnstableError(
                f"the field `{name}` of {type(simulation.model).__name__} was not finite when "
                f"the run began, at step {step}, first at cell {cell}",
                step=step,
                cell=cell,
                cause="the state that the run began with was not finite",
            )
        form.restore(last)
        while True:
            form.run(1)
            step += 1
            state = {name: x.clone() for name, x in form.own().items()}
            if not form.everywhere(finite(state)) or step > simulation.step_count:
                break
            last = state
        form.restore(last)
        simulation.step_count = step - 1
        name, cell = self._bad_cell(state)
        cause = simulation.model.cause(simulation.state)
        raise UnstableError(
            f"the field `{name}` of {type(simulation.model).__name__} is no longer finite "
            f"after step {step}, first at cell {cell}; the simulation holds the state of step "
            f"{step - 1}. Likely cause: {cause}",
            step=step,
            cell=cell,
            cause=cause,
        )

    def _bad_cell(self, own: State) -> tuple[str, tuple[int, ...]]:
        """The first on any rank, and the same on all of them."""
        name, cell = first_bad_cell(own, len(self._simulation.size))
        here = tuple(c + o for c, o in zip(cell, self._form.offset, strict=False))
        ranks = self._form.ranks
        replies = [(name, here)] if ranks is None else ranks.gather_json((name, here))
        # A rank whose numbers are all finite has no cell to report.
        name, found = next((each for each in replies if each[1]), replies[0])
        return name, tuple(found)


def finite(state: State) -> bool:
    """Whether every floating number of a state is finite: one sum, one host read a field."""
    floats = [x for x in state.values() if x.is_floating_point()]
    return all(_sum_is_finite(x) or bool(x.isfinite().all()) for x in floats)


def _sum_is_finite(x: Tensor) -> bool:
    """Whether the sum is; it may overflow where no number does, in half precision soon."""
    return math.isfinite(x.sum(dtype=torch.float32 if x.element_size() < 4 else None).item())


def first_bad_cell(state: State, rank: int) -> tuple[str, tuple[int, ...]]:
    """The field and the cell of the first number that is not finite."""
    for name, x in state.items():
        if x.is_floating_point() and not finite({name: x}):
            bad = (~torch.isfinite(x)).nonzero()
            return name, tuple(bad[0, -rank:].tolist()) if len(bad) else ()
    return next(iter(state)), ()


def wait_for(device: torch.device) -> None:
    """Wait until the device is idle."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
