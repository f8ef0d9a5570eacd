"""How a model is run: what all forms share, and the code that torch compiles.

A form owns the buffers. It takes a state in, advances it by any number of steps
and gives the state back. Which one is used is decided in `_form_choice`; every form
gives the same numbers.
"""

import math
import os
import re
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hotgrid.cluster import Block, take
from hotgrid.config import cache_folder, current, logger
from hotgrid.errors import ArgumentError, MissingPartError, near
from hotgrid.grid.model import (
    Field,
    Input,
    Look,
    Model,
    Neighbours,
    State,
    VectorModel,
    has_phase,
    said_step,
)
from hotgrid.kernels import denormals_as_zero
from hotgrid.tensors._torch_private import dynamo

if TYPE_CHECKING:
    from hotgrid.cluster import Communicator

# Fewer cells are not worth waking a thread, least of all on a busy machine.
CELLS_PER_THREAD = 4096
# Below this many cells a GPU waits for the host, not for its memory.
CELLS_OF_A_BUSY_GPU = 1 << 21
# Setting threads takes up to 50 us, as long as some steps of a smaller grid.
_CELLS_WITHOUT_DENORMALS = 1 << 14
NOT_PHASED = "the model has a phase on whole arrays, which `roll` and `graph` run"
"""The obstacle of forms that keep fields otherwise than whole."""
_CACHE_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
_COMPILER_ERROR = re.compile(r"No space left|cannot find|\berror: ")


@dataclass(frozen=True)
class Setting:
    """The facts about a simulation that a form needs.

    Attributes:
        model: The model.
        size: The grid.
        batch: Leading dims of independent runs; empty for one run.
        device: Where it runs.
        dtype: The floating type of arithmetic.
        storage: The floating type in which fields are kept between steps.
        inputs: The static inputs, `[components, *space]` each, on the device.
        params: The parameters as 0-d tensors on the device.
        compiled: Whether steps are compiled.
        with_phase: Whether a step ends with the phase of a model that has one; on a cut grid
            it is made apart from the steps of blocks.
        part_inputs: The inputs of a box of the grid, where it is cut over ranks; `inputs`
            are then those of the cells that this rank owns. None if `inputs` are whole.
    """

    model: Model
    size: tuple[int, ...]
    batch: tuple[int, ...]
    device: torch.device
    dtype: torch.dtype
    storage: torch.dtype
    inputs: Mapping[str, Tensor]
    params: Mapping[str, Tensor]
    compiled: bool
    with_phase: bool = True
    part_inputs: Callable[[Block], State] | None = None

    def inputs_in(self, block: Block) -> State:
        """The inputs of a box of the grid, `[components, *block.size]` each."""
        if self.part_inputs is not None:
            return self.part_inputs(block)
        return {name: take(x, block) for name, x in self.inputs.items()}

    @property
    def phased(self) -> bool:
        """Whether a step ends with a phase on whole arrays."""
        return self.with_phase and has_phase(self.model)

    @property
    def rank(self) -> int:
        """The number of space dims."""
        return len(self.size)

    @property
    def cells(self) -> int:
        """How many cells a step computes."""
        return math.prod(self.size) * math.prod(self.batch)

    def kept_as(self, field: Field | Input) -> torch.dtype:
        """The type a field is stored in."""
        return field.dtype or self.storage


class Form(ABC):
    """One way to run a model."""

    name: str
    # Whether every step makes new tensors, and does not change those of `own`.
    leaves_old: bool = False
    # Whether steps read the tensors of `setting.params` each time they run.
    live_params: bool = False
    # What is called for a step, where that is a function which may have been compiled.
    _step: Any = None

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    @property
    def compiled(self) -> bool:
        """Whether steps are compiled, or will be by the first of them."""
        return self.setting.compiled and not self.in_vain

    @property
    def in_vain(self) -> bool:
        """Whether it turned out that its steps cannot be compiled here."""
        return isinstance(self._step, FirstCall) and self._step.is_plain

    @staticmethod
    def obstacle(setting: Setting) -> str:
        """Why this form cannot run a setting; empty where it can."""
        return ""

    @staticmethod
    def drawback(setting: Setting) -> str:
        """Why it cannot be the fastest for a setting that it can run; empty where it may be.

        Such a form is not timed, and not chosen unless it is named.
        """
        return ""

    @property
    def on_torch_threads(self) -> bool:
        """Whether threads of torch compute the steps, not only those of the native core."""
        return True

    def settled(self) -> "Form":
        """The form that runs the next steps; usually itself."""
        return self

    @abstractmethod
    def load(self, state: State) -> None:
        """Take over a state, `[*batch, components, *space]` for every field."""

    @abstractmethod
    def read(self) -> State:
        """The present state, `[*batch, components, *space]`; not to be written to."""

    @abstractmethod
    def advance(self, steps: int) -> None:
        """Advance by a number of steps, without waiting for the device."""

    def run(self, steps: int) -> None:
        """The same, on large grids with denormal numbers as zero where a processor computes."""
        # By the cells of the whole grid, so that every mesh and batch gives the same bits.
        if math.prod(self.setting.size) < _CELLS_WITHOUT_DENORMALS:
            return self.advance(steps)
        with denormals_as_zero(self.setting.device, self.on_torch_threads):
            return self.advance(steps)

    def fresh(self) -> "Form":
        """Another form of this kind, with buffers of its own."""
        return type(self)(self.setting)

    def touched(self) -> None:  # noqa: B027  most keep nothing beside the state
        """Call after writing into tensors from `read`."""

    def own(self) -> State:
        """The part of the state that is stored here; read-only."""
        return self.read()

    def part(self, reach: int, joined: Sequence[bool]) -> tuple[State, Block]:
        """The cells stored here and a margin around them, with their box.

        A collective call where the grid is cut. Margins are at cut sides only, and across the
        edges of the grid along `joined` axes.
        """
        size = self.setting.size
        return self.own(), Block((0,) * len(size), size, size)

    def restore(self, own: State) -> None:
        """Restore what `own` returned."""
        self.load(own)

    def everywhere(self, here: bool) -> bool:
        """Whether something is true here and on all other ranks of the grid."""
        return here

    @property
    def offset(self) -> tuple[int, ...]:
        """The first cell of this part of the grid."""
        return (0,) * self.setting.rank

    @property
    def ranks(self) -> "Communicator | None":
        """The ranks that share the grid; None if it is whole."""
        return None

    @property
    def is_primary(self) -> bool:
        """True in the process that prints and writes."""
        return True


def planes_of(x: Tensor, rank: int) -> list[Tensor]:
    """The components of `[..., components, *space]`, as views."""
    return list(x.unbind(-rank - 1))


def handles(
    setting: Setting,
    stored: Mapping[str, Tensor],
    fixed: Mapping[str, Tensor],
    look: Mapping[str, Look],
) -> tuple[dict[str, Neighbours], dict[str, Neighbours]]:
    """The handles that a step is called with, in the type of arithmetic.

    A step may name dims, so it must not see the batch dim. The runs of a batch are stored
    one after another along the first dim of space; steps work cell by cell and do not notice.
    """
    model, rank = setting.model, setting.rank

    def handle(kind: Field | Input, x: Tensor) -> Neighbours:
        planes = planes_of(x, rank)
        if kind.dtype is None and setting.storage != setting.dtype:
            planes = [plane.to(setting.dtype) for plane in planes]
        seen = _joined_runs(setting, look[kind.name]) if setting.batch else look[kind.name]
        return Neighbours(planes, seen, rank, model.radius)

    return (
        {field.name: handle(field, stored[field.name]) for field in model.fields},
        {known.name: handle(known, fixed[known.name]) for known in model.inputs},
    )


def _joined_runs(setting: Setting, look: Look) -> Look:
    def joined(plane: Tensor, offset: tuple[int, ...]) -> Tensor:
        seen = look(plane, offset)
        return seen.expand(*setting.batch, *seen.shape[-setting.rank :]).flatten(0, 1)

    return joined


def stepped(
    setting: Setting,
    stored: Mapping[str, Tensor],
    fixed: Mapping[str, Tensor],
    params: Mapping[str, Tensor],
    look: Mapping[str, Look],
) -> list[list[Tensor]]:
    """One step: for every field its components, `[..., *space]` each, in stored type."""
    state, inputs = handles(setting, stored, fixed, look)
    result = setting.model.step(state, inputs, params)
    if not isinstance(result, Mapping):
        raise ArgumentError(
            f"{said_step(setting.model)} must return a dict from the names of its "
            f"fields to tensors, got {type(result).__name__}"
        )
    planes = [
        _components(setting, field, result, state[field.name].part(0).here.shape)
        for field in setting.model.fields
    ]
    names = [field.name for field in setting.model.fields]
    for name in result:
        if name not in names:
            raise ArgumentError(
                f"{said_step(setting.model)} returned `{name}`, which is not one of "
                f"its fields{near(name, names)} (they are {', '.join(names)})"
            )
    if not setting.batch:
        return planes
    return [[x.unflatten(0, (*setting.batch, -1)) for x in each] for each in planes]


def _components(
    setting: Setting, field: Field, result: Mapping[str, object], shape: torch.Size
) -> list[Tensor]:
    if field.name not in result:
        raise ArgumentError(
            f"{said_step(setting.model)} returned {', '.join(result) or 'nothing'}, "
            f"but not its field `{field.name}`"
        )
    value = result[field.name]
    if isinstance(value, Neighbours):
        raise ArgumentError(
            f"{said_step(setting.model)} returned a handle for the field "
            f"`{field.name}`; return a tensor, such as `state[{field.name!r}].here`"
        )
    planes = list(value) if isinstance(value, Sequence) else None
    if isinstance(value, Tensor):
        whole = field.components > 1 and value.ndim > setting.rank
        planes = planes_of(value, setting.rank) if whole else [value]
    if planes is None or len(planes) != field.components:
        raise ArgumentError(
            f"{said_step(setting.model)} must return {field.components} "
            f"component(s) for the field `{field.name}`"
        )
    return [_plane(setting, field, plane, shape) for plane in planes]


def _plane(setting: Setting, field: Field, plane: object, shape: torch.Size) -> Tensor:
    """One component as it is stored; a constant is expanded to every cell."""
    kept_as, what = setting.kept_as(field), f"{said_step(setting.model)}"
    if not isinstance(plane, Tensor) or plane.is_complex():
        raise ArgumentError(
            f"{what} must return tensors of real numbers for the field `{field.name}`, got "
            f"{plane.dtype if isinstance(plane, Tensor) else type(plane).__name__}"
        )
    if plane.is_floating_point() and not kept_as.is_floating_point:
        raise ArgumentError(
            f"{what} returned {plane.dtype} for the field `{field.name}`, which is {kept_as}; "
            f"round explicitly, such as `x.round().clamp(0, 255).to({kept_as})`"
        )
    if plane.shape != shape:
        lacking = len(shape) - plane.ndim
        if lacking < 0 or any(
            n not in (1, m) for n, m in zip(plane.shape, shape[lacking:], strict=True)
        ):
            raise ArgumentError(
                f"{what} returned the shape {tuple(plane.shape)} for the field `{field.name}`; "
                "it must have one number for each cell, like the tensors of `state`: create "
                "new tensors with torch.zeros_like and the like"
            )
        plane = plane.expand(shape)
    return plane.to(kept_as)


def compile_step(
    function: Callable[..., object], setting: Setting, threads: int | None = None
) -> Callable[..., object]:
    """The function compiled for one static shape, or itself if that is impossible.

    Every simulation gets a code object of its own: torch counts recompilations for
    each code object, and gives up after eight.
    """
    if not setting.compiled:
        return function
    _keep_compiled_code()
    own = types.FunctionType(
        function.__code__.replace(),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    threads = threads or max(1, min(torch.get_num_threads(), setting.cells // CELLS_PER_THREAD))
    options: dict[str, Any] = {
        "max_fusion_size": current().compile.max_fusion_size,
        "cpp.threads": threads,
    }
    if setting.device.type == "cuda" and setting.cells >= CELLS_OF_A_BUSY_GPU:
        # A flow with walls gains 2.5 % of the copy bandwidth on an H200.
        options["coordinate_descent_tuning"] = True
    planes = not isinstance(setting.model, VectorModel) and not has_phase(setting.model)
    if setting.device.type == "cuda" and planes:
        # Torch would weigh other tilings for every pair of operations, a third of the time
        # that it takes to write a kernel, and then choose this one.
        options["triton.max_tiles"] = 1
    compiled = torch.compile(own, dynamic=False, fullgraph=True, options=options)
    return FirstCall(compiled, function)


def compiled_code_folder() -> Path | None:
    """Where compiled code is kept for the next process; None where it is not."""
    _keep_compiled_code()
    folder = os.environ.get(_CACHE_VARIABLE)
    return None if folder is None else Path(folder)


def _keep_compiled_code() -> None:
    """Set where torch stores compiled code for the next process, from the settings."""
    from hotgrid.kernels import quote_torch_folder, without_blanks

    quote_torch_folder()
    folder = os.environ.get(_CACHE_VARIABLE)
    if folder is not None:
        problem = _obstacle_to_writing(folder)
        if not problem:
            os.environ[_CACHE_VARIABLE] = without_blanks(folder)
            return
        del os.environ[_CACHE_VARIABLE]
        logger("compile").warning(
            "compiled code is not stored in the `%s` of %s, which cannot be written (%s), but "
            "where `compile.cache` says; set or unset the variable",
            folder,
            _CACHE_VARIABLE,
            problem,
        )
    place = current().compile.cache
    # If nothing can be written there, torch chooses a folder.
    if place != "none":
        folder = str(cache_folder(place, "compiled"))
        if not _obstacle_to_writing(folder):
            os.environ[_CACHE_VARIABLE] = without_blanks(folder)


def _obstacle_to_writing(folder: str) -> str:
    """Why nothing can be written there, as the system's message; empty if it can."""
    try:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103  an empty text is not a path
    except OSError as problem:
        return problem.strerror or str(problem)
    return "" if os.access(folder, os.W_OK | os.X_OK) else "Permission denied"


def _cause(text: str) -> str:
    """The first line, and of a compiler's output the line with the error."""
    first, *others = text.splitlines() or [""]
    causes = [line.strip() for line in others if _COMPILER_ERROR.search(line)]
    return f"{first} ({causes[0]})" if causes else first


class FirstCall:
    """A compiled function that falls back to the plain one if it cannot be compiled here."""

    def __init__(self, compiled: Callable[..., object], plain: Callable[..., object]) -> None:
        self.call = compiled
        self.plain = plain
        self.tried = False

    @property
    def is_plain(self) -> bool:
        """Whether it turned out that it cannot be compiled here."""
        return self.call is self.plain

    def __call__(self, *args: object) -> object:
        if self.tried:
            return self.call(*args)
        result, mistake = None, None
        try:
            result = self.call(*args)
        # Importing dynamo takes seconds; after a compiled call it has been imported.
        except dynamo().exc.Unsupported as problem:
            mistake = problem
        except dynamo().exc.BackendCompilerFailed as problem:
            reason = _cause(str(getattr(problem, "inner_exception", problem)))
            if current().compile.enabled == "on":
                raise MissingPartError(
                    "the setting `compile.enabled` is `on`, but torch.compile does not work "
                    f"here: {reason}; `hotgrid doctor` says what to do, and `auto` runs "
                    "uncompiled, about ten times slower"
                ) from problem
            logger("compile").warning(
                "steps run uncompiled, about ten times slower, because torch.compile "
                "does not work here: %s; `hotgrid doctor` says what to do",
                reason,
            )
            self.call = self.plain
            result = self.plain(*args)
        if mistake is not None:
            # An error inside `step` is clear only when it is not being traced.
            self.plain(*args)
            raise mistake
        self.tried = True
        return result
