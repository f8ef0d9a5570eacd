"""Whole arrays, shifted: the form of the GPU, of gradients, and the plain reference."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

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

from ._form import CELLS_OF_A_BUSY_GPU, Form, Setting, compile_step, planes_of, stepped
from ._phase import Phase, fusing
from ._two_buffers import writing_step
from ._vector_step import whole_vector_step

# Torch stacks up to so many planes on a GPU in a second kernel, which reads all of them again
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
            kinds = (*setting.model.fields, *setting.model.inputs)
            looks = {kind.name: shifting(kind) for kind in kinds}
            return compile_step(writing_step(setting, [looks]), setting)

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

    def run(self, steps: int) -> None:
        """Advance by a number of steps."""
        with torch.no_grad():
            for _ in range(steps):
                if self._step is not None:
                    self._fields = self._stepped()
                if self._phase is not None:
                    self._fields = self._phase(self._fields, self._fixed, self._params)

    def _stepped(self) -> list[Tensor]:
        if not self._writes:
            return self._step(self._fields, self._fixed, self._params)
        after = [torch.empty_like(x) for x in self._fields]
        outs = [[planes_of(x, self.setting.rank) for x in after]]
        self._step(self._fields, outs, self._fixed, self._params)
        return after


def _writes_planes(setting: Setting) -> bool:
    """Whether a step writes into planes that it is given, instead of stacking its own."""
    few = any(1 < field.components <= _MOST_STACKED for field in setting.model.fields)
    return few and setting.compiled and not isinstance(setting.model, VectorModel)


class GraphForm(RollForm):
    """Many steps in one launch, recorded once: for grids too small to fill a GPU.

    One compiled call costs about 80 us on the host; a recorded graph of many steps
    costs that once. It needs buffers that stay where they are, so the recording
    starts and ends in the same ones.
    """

    name = "graph"
    leaves_old = False
    batch_of_steps = 64

    @property
    def live_params(self) -> bool:
        """Not with a phase: a recording holds the tables that it was made with."""
        return not self.setting.phased

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._home: list[Tensor] = []

    @staticmethod
    def obstacle(setting: Setting) -> str:
        """It records CUDA graphs."""
        return "" if setting.device.type == "cuda" else "it records CUDA graphs and needs a GPU"

    @staticmethod
    def drawback(setting: Setting) -> str:
        """It is for compiled steps that are shorter than their launch."""
        if not setting.compiled:
            return "it gains only where steps are compiled"
        if setting.cells >= CELLS_OF_A_BUSY_GPU:
            return f"a step of {setting.cells:,} cells takes longer than its launch"
        return ""

    def load(self, state: State) -> None:
        """Take over a state by copying it into the recorded buffers."""
        if self._graph is None:
            super().load({name: x.clone() for name, x in state.items()})
            self._home = self._fields
            return
        for field, home in zip(self.setting.model.fields, self._home, strict=True):
            home.copy_(state[field.name])
        self._fields = self._home

    def run(self, steps: int) -> None:
        """Advance by a number of steps, as many as possible by replaying."""
        if steps >= self.batch_of_steps and self._graph is None:
            self._record()
        while steps >= self.batch_of_steps and self._graph is not None:
            if self._fields is not self._home:
                for home, field in zip(self._home, self._fields, strict=True):
                    home.copy_(field)
                self._fields = self._home
            self._graph.replay()
            steps -= self.batch_of_steps
        super().run(steps)

    def _record(self) -> None:
        start = self._fields
        super().run(3)  # compiles, and warms up every kernel outside of the recording
        torch.cuda.synchronize()
        self._home = [field.clone() for field in start]
        self._fields = self._home
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            super().run(self.batch_of_steps)
            for home, field in zip(self._home, self._fields, strict=True):
                home.copy_(field)
        self._graph = graph
        # Recording ran nothing: the state is still the one it started from.
        self._fields = self._home
