"""Padded buffers: the form of the CPU.

A shift along the last dim of a whole array is not vectorized on a CPU, a slice of
a padded one is. The slice is taken of the plane laid out flat, so that a step is one
long loop without rows; at the ends of a row it reads the next one, inside the margin,
where it does not matter. Steps invalidate the margin from the outside, and it is refreshed
every `depth` steps. Compiled steps are launched by the native core where it is available.
"""

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from hotgrid import _native
from hotgrid.grid.forms._form import NOT_PHASED, Setting, compile_step, planes_of
from hotgrid.grid.forms._two_buffers import Looks, TwoBufferForm, Views, writing_step
from hotgrid.grid.forms.kernel._kept_kernels import PieceTrial
from hotgrid.grid.forms.kernel._launch import launch_of
from hotgrid.grid.forms.kernel._planes import in_planes
from hotgrid.grid.forms.kernel._tape import put_back
from hotgrid.grid.model import FieldFace, Look, State, beyond

from ._padding import (
    best_depth,
    computed_cells,
    end_cells,
    fits_inside,
    fitting_depth,
    margin_of,
    piece_of,
)
from ._quiet import loud_pieces, quiet_setting
from ._sweep import sweep_of

_TRACING = threading.Lock()
# The share of pieces with walls above which a quiet step is not worth compiling.
_MOST_LOUD = 0.75
# Cells of all steps in one call to the core, which cannot be interrupted: some milliseconds.
_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class _Step:
    """A step out of one buffer into the other, as torch makes it.

    Attributes:
        call: The function itself, compiled or not.
        lines: The fields of both buffers, laid out flat.
        outs: Where it writes, in both buffers.
        fixed: The inputs.
        params: The parameters.
    """

    call: Callable[..., object]
    lines: list[list[Tensor]]
    outs: list[Views]
    fixed: list[Tensor]
    params: list[Tensor]

    def make(self, old: int) -> None:
        """Make the step out of that buffer."""
        with torch.no_grad():
            self.call(self.lines[old], self.outs[1 - old], self.fixed, self.params)


class PaddedForm(TwoBufferForm):
    """Grids with a margin that holds what cells see beyond the ends."""

    name = "padded"

    def __init__(self, setting: Setting, depth: int | None = None) -> None:
        model = setting.model
        self.depth = fitting_depth(setting, depth) if depth else best_depth(setting)
        margin = margin_of(setting, self.depth)
        self._by_hand = setting.device.type == "cpu" and _native.available()
        swept = setting.compiled and self._by_hand
        self._piece = piece_of(setting, margin) if swept else 0
        super().__init__(setting, margin, tail=self._piece)
        self._lines = [[self._line(flat) for flat in flats] for flats in self._flats]
        self._fixed = {
            known.name: self._extended(setting.inputs[known.name]) for known in model.inputs
        }
        # For the core: it would call Python to take a tensor, and lose a Ctrl-C there.
        self._ends = [[_bits(x) for x in flats] for flats in self._flats if self._by_hand]
        self._all_periodic = all(field.boundary == "periodic" for field in model.fields)
        self._clean = 0
        self._whole: _Step | None = None
        self._kernel: Any = None
        self._sweep: Any = None
        # Seconds of steps after which a quiet step is compiled.
        self._patience = math.inf
        if not swept:
            self._whole = self._stepping(setting, self._cells)

    @staticmethod
    def obstacle(setting: Setting) -> str:
        """The grid must be large enough to be its own margin."""
        if setting.phased:
            return NOT_PHASED
        if fits_inside(setting, 1):
            return ""
        return (
            f"it needs at least {setting.model.radius} cells, the radius of "
            f"{type(setting.model).__name__}, in every dim of `size` {setting.size}"
        )

    @staticmethod
    def drawback(setting: Setting) -> str:
        """It is for compiled steps on a CPU."""
        if setting.compiled and setting.device.type == "cpu":
            return ""
        return "it gains only where steps are compiled for a CPU"

    def load(self, state: State) -> None:
        """Copy a state into the interior."""
        super().load(state)
        self._clean = 0

    def touched(self) -> None:
        """The margin no longer repeats the grid."""
        self._clean = 0

    @property
    def swept(self) -> bool:
        """Whether the native core launches the kernel of the steps; known after the first."""
        return self._sweep is not None

    @property
    def on_torch_threads(self) -> bool:
        """Not where the native core launches the kernel.

        What torch does then, copies at the ends, has fewer numbers than loading the state,
        which has started its threads.
        """
        return not self.swept

    def advance(self, steps: int) -> None:
        """Advance by a number of steps, refreshing the margin when it is used up."""
        while steps > 0:
            if self._clean == 0:
                if self._rounds and steps >= self.depth:
                    steps -= self._run_rounds(steps)
                    continue
                self._refresh()
                self._clean = self.depth
            now = min(steps, self._clean)
            self._advance(now)
            self._clean -= now
            steps -= now

    def _run_rounds(self, steps: int) -> int:
        """Make whole rounds of steps, each after a refresh; return how many steps."""
        most = max(1, _AT_ONCE // (self._cells * self.depth))
        now = min(steps // self.depth, most) * self.depth
        begin = time.perf_counter()
        self._sweep.rounds(self._now, now, self.depth)
        self._now = (self._now + now) % 2
        self._wait_for_quiet(time.perf_counter() - begin)
        return now

    def _wait_for_quiet(self, seconds: float) -> None:
        self._patience -= seconds
        if self._patience < 0:
            self._hush()

    @property
    def _rounds(self) -> bool:
        """Whether the core refreshes margins too."""
        return self._sweep is not None and self._all_periodic

    @property
    def _cells(self) -> int:
        """How many cells are between the ends that a step leaves out."""
        return computed_cells(self._padded_size, self.setting.model.radius)

    @property
    def _first(self) -> int:
        """The first of these cells: as far as a step looks."""
        return end_cells(self._padded_size, self.setting.model.radius)

    def _advance(self, steps: int) -> None:
        if self._whole is None and self._sweep is None:
            self._begin()
        if self._sweep is not None:
            begin = time.perf_counter()
            self._sweep.run(self._now, steps)
            self._now = (self._now + steps) % 2
            self._wait_for_quiet(time.perf_counter() - begin)
            return
        for _ in range(steps):
            self._whole.make(self._now)  # pyright: ignore[reportOptionalMemberAccess]
            self._now = 1 - self._now

    def _begin(self) -> None:
        """Get a kernel for the core to launch, or compile the whole grid if there is none."""
        self._kernel, seconds = self._kernel_of(self.setting)
        if self._kernel is None:
            self._piece = 0
            setting = replace(self.setting, compiled=self.compiled)
            self._whole = self._stepping(setting, self._cells)
            return
        self._sweep = self._swept()
        if self.setting.model.quiet() is not None:
            self._patience = seconds
            self._hush(compiling=False)

    def _hush(self, compiling: bool = True) -> None:
        """Use the quiet step for the pieces where it is valid.

        Compiling it takes as long as the model itself took. Long runs repay that; short
        ones never wait.
        """
        setting = quiet_setting(self.setting)
        marks = loud_pieces(
            [self._fixed[x.name] for x in self.setting.model.inputs if x.quiet_at_zero],
            first=self._first,
            cells=self._cells,
            piece=self._piece,
        )
        worth_it = marks.sum() <= _MOST_LOUD * len(marks)
        quiet = self._kernel_of(setting, compiling)[0] if setting and worth_it else None
        if quiet is not None:
            self._sweep = self._swept(quiet, marks)
        if quiet is not None or compiling or not worth_it:
            self._patience = math.inf

    def _swept(self, quiet: Any = None, marks: Tensor | None = None) -> Any:
        sweep = sweep_of(
            self._kernel,
            quiet,
            marks,
            cells=self._cells,
            numbers=sum(field.components for field in self.setting.model.fields),
            piece=self._piece,
            reach=self._first,
        )
        for planes in zip(*self._ends, strict=True):
            sweep.keep(*planes, self._padded_size, self.margin)
        return sweep

    def _stepping(self, setting: Setting, cells: int) -> _Step:
        """A step of a number of first cells, compiled if the setting says so."""
        kinds = (*setting.model.fields, *setting.model.inputs)
        look = _slicing(self._padded_size, setting.model.radius, cells)
        here, rank = (0,) * setting.rank, setting.rank
        outs: list[Views] = [
            [[[look(x, here) for x in planes_of(buffer, rank)] for buffer in buffers]]
            for buffers in self._lines
        ]
        looks: list[Looks] = [{kind.name: look for kind in kinds}]
        call = compile_step(writing_step(setting, looks), setting)
        fixed = [self._fixed[known.name] for known in setting.model.inputs]
        return _Step(call, self._lines, outs, fixed, self._params)

    def _kernel_of(self, setting: Setting, compiling: bool = True) -> tuple[Any, float]:
        """The kernel that the core launches for a piece, and the seconds it took to compile."""
        # Ranks may be threads, and torch traces for one of them at a time.
        with _TRACING:
            return self._found_kernel(setting, compiling)

    def _found_kernel(self, setting: Setting, compiling: bool) -> tuple[Any, float]:
        step = self._stepping(replace(setting, compiled=False), self._piece)
        outs = [[x for views in step.outs[1 - old][0] for x in views] for old in (0, 1)]
        moving = [*self._flats[0], *self._flats[1], *self._fixed.values()]
        buffers = [*moving, *self._params]
        trial = PieceTrial(step.make, outs, buffers, self._piece, 2 * self._first)
        launch, seconds = trial.known() or (None, 0.0)
        if launch is None and compiling and not trial.in_vain:
            begin = time.perf_counter()
            with put_back(outs[0]):
                args = (step.lines[0], step.outs[1], step.fixed, step.params)
                call = in_planes(step.call, *args) or step.call
            self._step = compile_step(call, setting, threads=1)
            launch = launch_of(replace(step, call=self._step).make, outs, moving)
            seconds = time.perf_counter() - begin
            if launch is not None:
                trial.keep(launch, seconds)
            elif self.compiled:
                trial.give_up()
        return (None if launch is None else launch.kernel()), seconds

    def _extended(self, x: Tensor) -> Tensor:
        """An input with its periodic margin, laid out flat."""
        flat = self._room(x.shape[: -self.setting.rank], x.dtype)
        out = self._shaped(flat)
        self._inside(out).copy_(x)
        _fill(out, self.margin, (("periodic", "periodic"),) * self.setting.rank)
        return self._line(flat)

    def _line(self, flat: Tensor) -> Tensor:
        """Flat planes as `[*leading, *1, cells]`: they keep the rank of the grid."""
        return flat.unflatten(-1, (*[1] * (self.setting.rank - 1), -1))

    def _refresh(self) -> None:
        for k, field in enumerate(self.setting.model.fields):
            if field.boundary == "periodic" and self._by_hand:
                ends = self._ends[self._now][k]
                _native.core().join_ends(ends, self._padded_size, self.margin)
            else:
                buffer = self._buffers[self._now][k]
                _fill(buffer, self.margin, field.faces(self.setting.rank))


def _slicing(size: Sequence[int], radius: int, cells: int) -> Look:
    """Look by slicing planes of that padded size, laid out flat."""
    strides = [math.prod(size[k + 1 :]) for k in range(len(size))]
    begin = end_cells(size, radius)

    def look(plane: Tensor, offset: tuple[int, ...]) -> Tensor:
        there = begin
        for o, stride in zip(offset, strides, strict=True):
            there += o * stride
        return plane.narrow(-1, there, cells)

    return look


def _bits(x: Tensor) -> Any:
    """The memory of a tensor as a NumPy array, which does not have all of torch's types."""
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return x.view(kinds[x.element_size()]).numpy()


def _fill(
    buffer: Tensor, margin: Sequence[int], sides: Sequence[tuple[FieldFace, FieldFace]]
) -> None:
    """Write the margin, one dim after the other: corners come right."""
    for dim, (m, (low, high)) in enumerate(zip(margin, sides, strict=True), -len(margin)):
        n = buffer.shape[dim]
        inside = buffer.narrow(dim, m, n - 2 * m)
        buffer.narrow(dim, 0, m).copy_(beyond(inside, dim, m, low, high=False))
        buffer.narrow(dim, n - m, m).copy_(beyond(inside, dim, m, high, high=True))
