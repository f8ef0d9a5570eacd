"""The base of models: declarations, and one pure function, `step`."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError, near

from ._boundary import FieldBoundary, FieldFace, checked_boundary, faces
from ._brush import Brush
from ._neighbours import Neighbours
from ._parameter import HasParameters, Parameter
from ._shown import Over
from ._whole import Whole
from ._window import window_shape

State = dict[str, Tensor]
"""Fields by name: `[*space]`, or `[components, *space]` where a field has several."""
Planes = Tensor | Sequence[Tensor]
"""The result of a step for a field: one tensor, or one `[*space]` for each component."""


@dataclass(frozen=True)
class Field:
    """Something that every cell has and every step computes.

    Attributes:
        name: The key in the state.
        components: How many numbers a cell carries.
        dtype: The type it is stored in; None is the floating type of the simulation.
        boundary: What cells see beyond the edges of the grid: `"periodic"` the other edge,
            `"neumann"` the grid mirrored at its face (no gradient there), `"mirror"` the
            grid mirrored at the centre of the last cell, a number that number. For all
            faces alike, or for each axis one or a pair of the low and the high end.

    Example:
        >>> Field("velocity", components=2).boundary
        'periodic'
        >>> Field("u", boundary=("periodic", (0.0, "neumann"))).joined(2)
        (True, False)

    Raises:
        ArgumentError: An attribute is not what it must be.
    """

    name: str
    components: int = 1
    dtype: torch.dtype | None = None
    boundary: FieldBoundary = "periodic"

    def __post_init__(self) -> None:
        _check_kind(self)
        object.__setattr__(self, "boundary", checked_boundary(self.name, self.boundary))

    def faces(self, rank: int) -> tuple[tuple[FieldFace, FieldFace], ...]:
        """The boundary at the low and the high end of every axis.

        Raises:
            ArgumentError: `boundary` is for another number of axes.
        """
        return faces(self.name, self.boundary, rank)

    def joined(self, rank: int) -> tuple[bool, ...]:
        """For every axis, whether it is periodic."""
        return tuple(low == "periodic" for low, _ in self.faces(rank))


@dataclass(frozen=True)
class Input:
    """Something that every cell has and that does not change: a mask, a map, a profile.

    Attributes:
        name: The key in the inputs.
        components: How many numbers a cell carries.
        dtype: The type it is stored in; None is the floating type of the simulation.
        quiet_at_zero: Whether it has no effect where it is zero; see `Model.quiet`.

    Example:
        >>> Input("solid", dtype=torch.bool).components
        1

    Raises:
        ArgumentError: An attribute is not what it must be.
    """

    name: str
    components: int = 1
    dtype: torch.dtype | None = None
    quiet_at_zero: bool = False

    def __post_init__(self) -> None:
        _check_kind(self)


def _check_kind(kind: Field | Input) -> None:
    name, components, dtype = kind.name, kind.components, kind.dtype
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"`name` of a field or input must be a text, got {name!r}")
    if not isinstance(components, int) or components < 1:
        raise ArgumentError(
            f"`components` of `{name}` must be a whole number of at least 1, got {components!r}"
        )
    if not isinstance(dtype, torch.dtype | None):
        raise ArgumentError(
            f"`dtype` of `{name}` must be a type of torch, such as torch.float32, got {dtype!r}"
        )


class Model(HasParameters, ABC):
    """How one cell follows from its neighbours.

    A model declares `fields`, perhaps `inputs`, the `radius` it reads, its
    `Parameter`s as class attributes, and `step`. It does not depend on how and where it
    runs: the same `step` serves one CPU, a GPU, gradients and a cluster.

    Example:
        >>> class Heat(Model):
        ...     fields = (Field("u"),)
        ...     rate = Parameter(0.2, low=0, high=0.25)
        ...     def step(self, state, inputs, params):
        ...         u = state["u"]
        ...         around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
        ...         return {"u": u[0, 0] + params["rate"] * (around - 4 * u[0, 0])}
        >>> Heat(rate=0.1).rate
        0.1
    """

    fields: Sequence[Field] = ()
    """The fields, which change."""
    inputs: Sequence[Input] = ()
    """The inputs, which do not change."""
    radius: int = 1
    """How many cells away a step looks."""
    ranks: Sequence[int] = (2,)
    """The numbers of space dims the model works in."""
    size: Sequence[int] = (256, 256)
    """The default grid."""
    time_step: float = 1.0
    """How much time one step is, in the units of the model."""
    conserved: Sequence[str] = ()
    """Observables that a run must not change."""
    differentiable: bool = True
    """Whether a gradient through a step is meaningful."""
    picture: str = ""
    """The view shown by default; if empty, the first."""
    coloured: Sequence[str] = ()
    """Views whose numbers are colours, as `colour_codes` makes them."""
    y_up: bool = False
    """Whether pictures begin with the first row at the bottom, as a flow's do."""
    windowed: bool = True
    """Whether `initial` and `static` make the cells of a `GridWindow` alone. For a class that
    writes one of its `makers` it is False, unless the class says `windowed = True` itself."""
    splits: bool = True
    """Whether `stored` and `shown` work on any box of stored cells."""
    makers: ClassVar[Sequence[str]] = ("initial", "static")
    """The methods that make an initial state and inputs."""

    _parameters: ClassVar[Mapping[str, Parameter]] = {}
    _made_with: tuple[tuple[Any, ...], dict[str, Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = {
            name: replace(value, name=name)
            for name, value in vars(cls).items()
            if isinstance(value, Parameter)
        }
        for name, parameter in own.items():
            setattr(cls, name, parameter)
        if "windowed" not in vars(cls):
            told = all(getattr(base, "windowed", True) for base in cls.__bases__)
            cls.windowed = told and not any(name in vars(cls) for name in cls.makers)
        # Of all bases: a model may be put together from two.
        above = [vars(base).get("_parameters", {}) for base in reversed(cls.__mro__[1:])]
        cls._parameters = {name: x for known in (*above, own) for name, x in known.items()}

    # Takes any arguments: subclasses have constructors of their own.
    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        made._made_with = (args, kwargs)
        return made

    def __init__(self, **parameters: float) -> None:
        self._expect_known(parameters)
        self._values = {
            name: parameter.checked(name, parameters.get(name, parameter.default))
            for name, parameter in self._parameters.items()
        }

    def _expect_known(self, parameters: Iterable[str]) -> None:
        for name in parameters:
            if name not in self._parameters:
                known = ", ".join(self._parameters) or "none"
                raise ArgumentError(
                    f"`{name}` is not a parameter of {type(self).__name__}"
                    f"{near(name, self._parameters)} (its parameters are {known})"
                )

    @property
    def parameters(self) -> dict[str, float]:
        """Every parameter and its value."""
        return {name: getattr(self, name) for name in self._parameters}

    def changed(self, **parameters: float) -> Self:
        """The same model, made again with other values of some parameters.

        Example:
            >>> from hotgrid.grid import pde
            >>> pde.Heat(rate=0.1).changed(rate=0.2).rate
            0.2

        Raises:
            ArgumentError: A parameter is unknown, or a value is out of its bounds.
        """
        args, kwargs = self._made_with
        self._expect_known(parameters)
        try:
            return type(self)(*args, **{**kwargs, **parameters})
        except TypeError as problem:
            raise ArgumentError(
                f"{type(self).__name__} cannot be made again with other parameters: {problem}; "
                "its `__init__` must take them by name, as `**parameters`"
            ) from None

    @abstractmethod
    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> Mapping[str, Planes]:
        """The next value of every field, from handles to the present one.

        Only elementwise code on what the handles give: no devices, no loops over
        cells, no host reads. Parameters are 0-d tensors, so changing one does not
        recompile.
        """

    def phase(
        self,
        whole: Whole,
        state: State,
        inputs: State,
        params: Mapping[str, Tensor],
    ) -> Mapping[str, Tensor]:
        """New values of some fields, from whole arrays, after every local step.

        For what no step can do: Fourier transforms, sums over the grid, an implicit solve. A
        model that does not write it has no such phase; one that has nothing else is a
        `PhaseModel`. Unlike a step it is not compiled, and sees the runs of a batch together.

        Arguments:
            whole: Transforms and reductions over the grid; the only way to other cells.
            state: The fields, `[..., *space]` or `[..., components, *space]` behind the
                dims of a batch, in the type of arithmetic. With a mesh, the cells of this
                rank.
            inputs: The static inputs, as `state`, without a batch.
            params: The parameters as 0-d tensors; `self` must not be asked for them.

        Returns:
            New tensors for the fields that change.
        """
        return {}

    def check(self, size: tuple[int, ...]) -> None:
        """Raise `ArgumentError` where the model cannot run on such a grid."""

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """The fields to start from, on the CPU; by default zeros.

        Arguments:
            size: The grid. If the model is `windowed`, a rank of a mesh gives a `GridWindow`:
                use `window_shape`, `places` and `drawn` for the cells to make. What is made
                whole nevertheless is cut.
            generator: The only source of randomness, seeded by the simulation.
        """
        cells = window_shape(size)
        return {
            field.name: torch.zeros(
                (field.components, *cells) if field.components > 1 else cells,
                dtype=field.dtype or torch.float32,
            )
            for field in self.fields
        }

    def initial_bytes(self, size: tuple[int, ...]) -> int:
        """Bytes of main memory that `initial` takes at its largest, its result included.

        By default what fields take in single precision, twice.
        """
        cell = sum(f.components * (f.dtype or torch.float32).itemsize for f in self.fields)
        return 2 * math.prod(size) * cell

    def reach(self, steps: int, rank: int) -> tuple[int, ...]:
        """How far, in stored cells along each axis, changes spread in a number of steps."""
        return (steps * self.radius,) * rank

    def fitted(self, size: tuple[int, ...]) -> "Model":
        """The model that runs a grid of this size: itself, or an equivalent that is faster.

        An equivalent has fields of the same names, and may store them differently: see
        `stored_size`, `stored` and `shown`.
        """
        return self

    def quiet(self) -> "Model | None":
        """A cheaper step for cells where every input with `quiet_at_zero` is zero, or None.

        There its step must give the same bits, with less work: a flow has no walls in most
        places. It has the same fields and parameters, and some of the inputs.
        """
        return None

    def for_trial(self) -> "Model":
        """The model whose step is checked before a run: itself, or a smaller one of its kind.

        A smaller one must run the same code, over fewer neighbours.
        """
        return self

    def own_forms(self) -> Sequence[type[Any]]:
        """`Form` classes written for this model alone, tried before those of every model."""
        return ()

    def stored_size(self, size: tuple[int, ...]) -> tuple[int, ...]:
        """The grid that is stored and stepped, if several cells share a number."""
        return size

    def stored(self, state: State) -> State:
        """Fields as they are stored, from fields as users give them, `[..., *space]`."""
        return state

    def shown(self, state: State) -> State:
        """Fields as users see them, from fields as they are stored, `[..., *space]`."""
        return state

    def static(self, size: tuple[int, ...]) -> State:
        """The inputs for a grid, on the CPU. A model with inputs must write this.

        Arguments:
            size: The grid, or a `GridWindow` as for `initial`, with margins.
        """
        return {}

    def cause(self, state: State) -> str:
        """A likely cause if the state is no longer finite, as text."""
        return "the time step may be too large for this grid"

    def choices(self) -> str:
        """Everything besides its parameters that identifies this model, as text.

        Stored with a saved state, so that another model does not load it.
        """
        plain = (str, int, float, bool, tuple, type(None))
        own = sorted(vars(self).items())
        kept = {
            name: value
            for name, value in own
            if not name.startswith("_") and (isinstance(value, plain) or is_dataclass(value))
        }
        # The address of an object is not part of its identity.
        return re.sub(r" at 0x[0-9a-f]+", "", repr(kept))

    def views(self) -> dict[str, Callable[[State], Tensor]]:
        """The pictures of this model, by name: its fields, then its `view` methods."""
        fields = {f.name: _field_view(f.name) for f in self.fields if f.components == 1}
        return {**self._with_role("view"), **fields}

    def unit_of(self, view: str) -> str:
        """The unit of the numbers of a view; empty where they have none."""
        return ""

    def reach_of(self, view: str) -> int | None:
        """How many cells around a cell its number in a view depends on; None if any may.

        With a mesh, a view of a known reach is computed where its cells are.
        """
        return 0 if view in {f.name for f in self.fields if f.components == 1} else None

    @classmethod
    def names_file(cls, option: str, value: str) -> bool:
        """Whether a value of an option names a file; the live page cannot set these."""
        return False

    def joined_axes(self, rank: int) -> tuple[bool, ...]:
        """For each axis, whether a view looks across the edges of the grid."""
        each = [field.joined(rank) for field in self.fields]
        return tuple(all(axis) for axis in zip(*each, strict=True))

    def within(
        self, whole: tuple[int, ...], offset: tuple[int, ...], size: tuple[int, ...]
    ) -> "Model | None":
        """The model as views and `painted` see it on a box of the grid; None if they cannot.

        Arguments:
            whole: The grid.
            offset: The first cell of the box; beyond the ends the grid repeats.
            size: The cells of the box.
        """
        return self if type(self).painted is Model.painted else None

    def brushes(self) -> Sequence[Brush]:
        """The brushes: by default one for every field that has one number in a cell."""
        return [
            Brush(
                field.name,
                field.name.replace("_", " ").capitalize(),
                "number" if field.dtype is None or field.dtype.is_floating_point else "states",
            )
            for field in self.fields
            if field.components == 1
        ]

    def painted(self, state: State, brush: str, mask: Tensor, value: float) -> State:
        """A state after a brush stroke.

        Arguments:
            state: The fields, `[*space]` or `[components, *space]`.
            brush: The name of one of `brushes`.
            mask: Where the stroke is, bool `[*space]`.
            value: What is painted.

        Returns:
            The fields that changed.
        """
        return {brush: state[brush].masked_fill(mask, value)}

    def with_solid(self, cells: Tensor) -> "Model":
        """The model with solid cells, bool `[*space]`; only for a brush of the kind `solid`.

        Raises:
            ArgumentError: The model has no solids.
        """
        raise ArgumentError(f"{type(self).__name__} has no solid cells")

    def observables(self) -> dict[str, Callable[[State], Tensor]]:
        """The numbers to watch, by name: its `observable` methods."""
        return self._with_role("observable")

    def over_parts(self, name: str) -> Over | None:
        """How an observable is combined from parts of the grid; None if it cannot be."""
        return getattr(getattr(type(self), name, None), "_grid_over", None)

    def _with_role(self, role: str) -> dict[str, Callable[[State], Tensor]]:
        return {name: getattr(self, name) for name in _names_with_role(type(self), role)}


# A viewer asks in every frame, and a class has some hundred names.
@lru_cache(maxsize=1024)
def _names_with_role(kind: type["Model"], role: str) -> tuple[str, ...]:
    names = dict.fromkeys(name for cls in reversed(kind.__mro__) for name in vars(cls))
    return tuple(
        name for name in names if getattr(getattr(kind, name, None), "_grid_role", None) == role
    )


def _field_view(name: str) -> Callable[[State], Tensor]:
    return lambda state: state[name]
