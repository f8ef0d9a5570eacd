"""Whole arrays, shifted: the form of the GPU, of gradients, and the plain reference."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from hotgrid.config import logger
from hotgrid.grid.model import (
    Field,
    Input,
    Look,
    State,
    VectorModel,
    Whole,
    faces,
    is_local,
    seen_beyond,
)
from hotgrid.tensors import shift
from hotgrid.tensors._torch_private import fake_tensors

from ._form import CELLS_OF_A_BUSY_GPU, Form, Setting, compile_step, planes_of, stepped
from ._phase import Phase, fusing
from ._two_buffers import writing_step
from .kernel._planes import without_stacks
from .vectors._vector_step import whole_vector_step

# Before a recording, since the start or a change of parameters.
_PLAIN_STEPS = 3
# A step with a phase launches many times as many kernels as a local one.
_LAUNCHES_OF_A_PHASE = 16
# Torch stacks up to this many planes on a GPU in a second kernel, which reads all of them again
# for each one of them.
_MOST_STACKED = 8


def shifting(kind: Field | Input) -> Look:
    """Look by shifting the whole plane; inputs are periodic at the ends."""
    boundary = kind.boundary if isinstance(kind, Field) else "periodic"

    def look(plane: Tensor, offset: tuple[int, ...]) -> Tensor:
        moved = {dim - len(offset): o for dim, o in enumerate(offset) if o}
        if not moved:
            return plane
        if boundary == "periodic":
            return torch.roll(plane, [-o for o in moved.values()], list(moved))
        if isinstance(boundary, int | float):
            return shift(plane, list(moved.values()), list(moved), boundary=boundary)
        return seen_beyond(plane, offset, faces(kind.name, boundary, len(offset)))

    return look


def whole_step(
    setting: Setting,
    fields: Sequence[Tensor],
    fixed: Sequence[Tensor],
    params: Sequence[Tensor],
) -> list[Tensor]:
    """One step over whole arrays, `[*batch, components, *space]` in and out."""
    model = setting.model
    if isinstance(model, VectorModel):
        return whole_vector_step(setting, model, fields, fixed, params)
    planes = stepped(
        setting,
        dict(zip([field.name for field in model.fields], fields, strict=True)),
        dict(zip([known.name for known in model.inputs], fixed, strict=True)),
        dict(zip(setting.params, params, strict=True)),
        {kind.name: shifting(kind) for kind in (*model.fields, *model.inputs)},
    )
    return [torch.stack(components, -setting.rank - 1) for components in planes]


class RollForm(Form):
    """Every step makes new arrays from shifted old ones."""

    name = "roll"
    leaves_old = True
    live_params = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._writes = _writes_planes(setting)
        self._begun = False
        # A phase alone is run as it is: torch does not compile complex numbers.
        self._step = self._compiled_step() if is_local(setting.model) else None
        self._phase: Phase | None = None
        if setting.phased:
            whole = Whole(setting.size, setting.device, fusing(setting))
            self._phase = Phase(setting, whole)
        self._fields: list[Tensor] = []
        self._fixed = [setting.inputs[known.name] for known in setting.model.inputs]
        self._params = list(setting.params.values())

    def _compiled_step(self) -> Callable[..., Any]:
        setting = self.setting
        if self._writes:
            return compile_step(_writing(setting), setting)

        def step(
            fields: Sequence[Tensor], fixed: Sequence[Tensor], params: Sequence[Tensor]
        ) -> list[Tensor]:
            return whole_step(setting, fields, fixed, params)

        return compile_step(step, setting)

    @property
    def compiled(self) -> bool:
        """Whether there are local steps, and they are compiled."""
        return self._step is not None and super().compiled

    @staticmethod
    def drawback(setting: Setting) -> str:
        """Compiled on a CPU it is slower than padded buffers."""
        if setting.phased:
            return ""
        if setting.compiled and setting.device.type == "cpu":
            return "compiled for a CPU, shifts along a row are not vectorised"
        return ""

    def load(self, state: State) -> None:
        """Take over a state; it is not copied, because no step writes into it."""
        self._fields = [state[field.name] for field in self.setting.model.fields]

    def read(self) -> State:
        """The present state."""
        names = [field.name for field in self.setting.model.fields]
        return dict(zip(names, self._fields, strict=True))

    def advance(self, steps: int) -> None:
        """Advance by a number of steps."""
        with torch.no_grad():
            for _ in range(steps):
                if self._step is not None:
                    self._fields = self._stepped()
                if self._phase is not None:
                    self._fields = self._phase(self._fields, self._fixed, self._params)

    def _take_apart(self) -> None:
        """Compile the step plane by plane if it stacks planes.

        Not earlier: what a step keeps for later, it makes when it is checked.
        """
        self._begun = True
        if self.setting.device.type != "cuda":
            return
        apart = planes_apart(self.setting, _writing(self.setting))
        if apart is not None:
            self._writes, self._step = True, compile_step(apart, self.setting)

    def _stepped(self) -> list[Tensor]:
        if not self._begun:
            self._take_apart()
        if not self._writes:
            return self._step(self._fields, self._fixed, self._params)
        after = [torch.empty_like(x) for x in self._fields]
        outs = [[planes_of(x, self.setting.rank) for x in after]]
        self._step(self._fields, outs, self._fixed, self._params)
        return after


def _writing(setting: Setting) -> Callable[..., None]:
    """A step over whole arrays that writes into planes."""
    kinds = (*setting.model.fields, *setting.model.inputs)
    return writing_step(setting, [{kind.name: shifting(kind) for kind in kinds}])


def planes_apart(setting: Setting, step: Callable[..., object]) -> Callable[..., object] | None:
    """A `writing_step` plane by plane, if it stacks planes; None otherwise.

    Torch computes stacked planes by several kernels, and keeps what is between them.
    """
    if not setting.compiled or isinstance(setting.model, VectorModel):
        return None
    mode, known = fake_tensors(), setting.model.inputs
    with mode:
        fields, after = (
            [
                torch.empty(
                    (*setting.batch, field.components, *setting.size),
                    dtype=setting.kept_as(field),
                    device=setting.device,
                )
                for field in setting.model.fields
            ]
            for _ in range(2)
        )
        outs = [[planes_of(x, setting.rank) for x in after]]
    fixed = [mode.from_tensor(setting.inputs[each.name]) for each in known]
    params = [mode.from_tensor(x) for x in setting.params.values()]
    return without_stacks(step, fields, outs, fixed, params, len(setting.batch))


def _writes_planes(setting: Setting) -> bool:
    """Whether a step writes into planes that it is given, instead of stacking its own."""
    few = any(1 < field.components <= _MOST_STACKED for field in setting.model.fields)
    return few and setting.compiled and not isinstance(setting.model, VectorModel)


class GraphForm(RollForm):
    """Steps in one launch, recorded once: for grids too small to fill a GPU.

    One compiled call costs about 80 us on the host; a recorded graph of many steps
    costs that once. It needs buffers that stay where they are, so the recording
    starts and ends in the same ones.

    A step with a phase is dozens of calls, so each is replayed alone. It holds the tables
    of its parameters, and is recorded again where they have changed. A phase that waits for
    the GPU, such as by `item`, cannot be recorded: its steps run as in `roll`.
    """

    name = "graph"
    leaves_old = False
    batch_of_steps = 64

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        if setting.phased:
            self.batch_of_steps = 1
        self._graph: torch.cuda.CUDAGraph | None = None
        # Torch refers to a recording that failed as long as the process lives.
        self._failed: torch.cuda.CUDAGraph | None = None
        self._refused = False
        self._home: list[Tensor] = []
        self._plain_left = _PLAIN_STEPS
        self._versions = self._present_versions()

    @staticmethod
    def obstacle(setting: Setting) -> str:
        """It records CUDA graphs."""
        return "" if setting.device.type == "cuda" else "it records CUDA graphs and needs a GPU"

    @staticmethod
    def drawback(setting: Setting) -> str:
        """It is for compiled steps that are shorter than their launch."""
        if not setting.compiled:
            return "it gains only where steps are compiled"
        most = CELLS_OF_A_BUSY_GPU * (_LAUNCHES_OF_A_PHASE if setting.phased else 1)
        if setting.cells >= most:
            return f"a step of {setting.cells:,} cells takes longer than its launch"
        return ""

    def load(self, state: State) -> None:
        """Take over a state by copying it into the recorded buffers."""
        if self._graph is None:
            super().load({name: x.clone() for name, x in state.items()})
            return
        for field, home in zip(self.setting.model.fields, self._home, strict=True):
            home.copy_(state[field.name])
        self._fields = self._home

    def advance(self, steps: int) -> None:
        """Advance by a number of steps, as many as possible by replaying."""
        if self._versions != self._present_versions():
            self._versions = self._present_versions()
            self._graph, self._plain_left = None, _PLAIN_STEPS
        plain = min(steps, self._plain_left)
        super().advance(plain)
        self._plain_left -= plain
        steps -= plain
        while steps >= self.batch_of_steps:
            graph = self._recorded()
            if graph is None:
                break
            if self._fields is not self._home:
                for home, field in zip(self._home, self._fields, strict=True):
                    home.copy_(field)
                self._fields = self._home
            graph.replay()
            steps -= self.batch_of_steps
        super().advance(steps)

    def _present_versions(self) -> list[int]:
        """The versions of parameters whose tables a recording holds; writes increase them."""
        if not self.setting.phased:
            return []
        return [x._version for x in self._params if not x.is_inference()]

    def _recorded(self) -> "torch.cuda.CUDAGraph | None":
        """The recording, made if there is none; None where that is impossible."""
        if self._graph is None and not self._refused:
            self._refused = self.setting.phased and self._waits()
            if not self._refused:
                self._record()
        return self._graph

    def _waits(self) -> bool:
        """Whether a step waits for the GPU."""
        start, before = self._fields, torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                super().advance(1)
            finally:
                torch.cuda.set_sync_debug_mode(before)
        self._fields = start
        return any("synchronizing CUDA operation" in str(each.message) for each in said)

    def _record(self) -> None:
        # The plain steps before have compiled everything and warmed up every kernel.
        torch.cuda.synchronize()
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        self._home = [field.clone() for field in self._fields]
        self._fields = self._home
        try:
            # Other threads may continue working meanwhile.
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                super().advance(self.batch_of_steps)
                made = _apart(self._fields, self._home)
                for home, field in zip(self._home, made, strict=True):
                    home.copy_(field)
            self._graph = graph
        except RuntimeError as problem:
            # It leaves its own stream set.
            torch.cuda.set_stream(stream)
            self._failed, self._refused = graph, True
            logger("compile").warning(
                "steps of %s are launched one by one, because they cannot be recorded: %s",
                type(self.setting.model).__name__,
                (str(problem).splitlines() or [""])[0],
            )
        # Recording ran nothing: the state is still the one it started from.
        self._fields = self._home


def _apart(made: Sequence[Tensor], home: Sequence[Tensor]) -> list[Tensor]:
    """Fields that can be copied home in any order: a step may return one field as another."""
    held = {x.untyped_storage().data_ptr() for x in home}
    return [
        x if x is own or x.untyped_storage().data_ptr() not in held else x.clone()
        for x, own in zip(made, home, strict=True)
    ]
