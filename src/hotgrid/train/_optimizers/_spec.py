"""`OptimizerSpec`: an optimizer and its settings as data, and what it becomes when bound."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hotgrid.cluster import Communicator
from hotgrid.errors import ArgumentError

Value = float | str | Callable[[int], float]
"""A number, a function of the step such as a schedule, or a name looked up in `rates`."""

Slots = dict[str, dict[str, Tensor]]
"""The state of an optimizer: for every path of a parameter, tensors by name."""


class Bound(ABC):
    """An optimizer that holds its parameters and their state.

    Attributes:
        slots: The state, by path and name. Tensors are changed in place, never replaced.
    """

    slots: Slots

    @abstractmethod
    def step(self, values: Mapping[str, float]) -> None:
        """Update the parameters that have a gradient."""


@dataclass(frozen=True, kw_only=True)
class OptimizerSpec(ABC):
    """An optimizer and its settings: the base of all optimizers. Data, without parameters.

    `rate`, `decay`, `clip` and whatever else is in `values` can be a number, a function of
    the step such as a `StepSchedule`, or a name that is looked up in `rates` of `groups`.

    Attributes:
        rate: The learning rate.
        decay: Weight decay; decoupled from the gradient, except in `SGD`.
        clip: The largest norm of the gradients of the group together; None is no limit.
        name: The name of the group in tables and metrics; by default its selector.
    """

    rate: Value
    decay: Value = 0.0
    clip: Value | None = None
    name: str | None = None

    @property
    def values(self) -> dict[str, Value]:
        """The numbers that may change from step to step, by name."""
        return {"rate": self.rate, "decay": self.decay}

    def check(self, path: str, parameter: nn.Parameter) -> None:
        """Raise an `ArgumentError` if the optimizer cannot train such a parameter."""
        if not parameter.is_floating_point():
            raise ArgumentError(
                f"{type(self).__name__} trains real numbers, and `{path}` is "
                f"{parameter.dtype}; give it the spec 'frozen'"
            )

    @abstractmethod
    def bind(self, parameters: Mapping[str, nn.Parameter], ranks: Communicator) -> Bound:
        """Return the optimizer of these parameters, with a fresh state."""


@dataclass(frozen=True, kw_only=True)
class ElementwiseSpec(OptimizerSpec):
    """An optimizer whose update of an element depends on that element only.

    Such an optimizer works on the local part of a `DTensor` as on any tensor, so a new one
    only says what its state is and how lists of tensors are updated.
    """

    @abstractmethod
    def slots(self, parameter: Tensor) -> dict[str, Tensor]:
        """Return the state of one parameter before the first step."""

    @abstractmethod
    def update(
        self,
        parameters: list[Tensor],
        gradients: list[Tensor],
        slots: dict[str, list[Tensor]],
        values: Mapping[str, float],
    ) -> None:
        """Update parameters and state in place, without gradients being recorded."""

    def bind(self, parameters: Mapping[str, nn.Parameter], ranks: Communicator) -> Bound:
        """Return the optimizer of these parameters, with a fresh state."""
        return _BoundElementwise(self, parameters)


def expect_betas(spec: Any) -> None:
    """Raise an `ArgumentError` unless `betas` are two values, numbers from 0 to below 1."""
    betas = spec.betas
    fits = isinstance(betas, tuple | list) and len(betas) == 2
    if not fits or any(isinstance(x, int | float) and not 0 <= x < 1 for x in betas):
        raise ArgumentError(
            f"`betas` of {type(spec).__name__} are {betas!r}; expected two numbers from 0 to "
            "below 1"
        )


def local_part(tensor: Tensor) -> Tensor:
    """Return the part of a DTensor that is on this rank, in the same memory; else the tensor.

    Example:
        >>> local_part(torch.ones(2))
        tensor([1., 1.])
    """
    to_local = getattr(tensor, "to_local", None)
    return tensor if to_local is None else to_local()


def is_cut(tensor: Tensor) -> bool:
    """Whether it is a DTensor, of which this rank holds a part."""
    return hasattr(tensor, "to_local")


class _BoundElementwise(Bound):
    def __init__(self, spec: ElementwiseSpec, parameters: Mapping[str, nn.Parameter]) -> None:
        self._spec = spec
        self._parameters: list[Tensor] = list(parameters.values())
        self.slots = {path: spec.slots(p.detach()) for path, p in parameters.items()}
        every = list(self.slots.values())
        self._columns = {name: [slots[name] for slots in every] for name in every[0]}
        self._cut = any(map(is_cut, self._parameters))

    @torch.no_grad()
    def step(self, values: Mapping[str, float]) -> None:
        parameters, columns = self._parameters, self._columns
        gradients = [parameter.grad for parameter in parameters]
        # Kernels over lists fail on a rank that holds none of a parameter.
        left_out = [
            i
            for i, gradient in enumerate(gradients)
            if gradient is None or (self._cut and not local_part(gradient).numel())
        ]
        if left_out:
            kept = sorted({*range(len(gradients))} - {*left_out})
            if not kept:
                return
            parameters, gradients = _picked(parameters, kept), _picked(gradients, kept)
            columns = {name: _picked(column, kept) for name, column in columns.items()}
        if self._cut:
            parameters = [*map(local_part, parameters)]
            gradients = [*map(local_part, gradients)]  # pyright: ignore
            columns = {name: [*map(local_part, column)] for name, column in columns.items()}
        self._spec.update(parameters, gradients, columns, values)  # pyright: ignore


def _picked(items: list[Any], places: list[int]) -> list[Any]:
    return [items[place] for place in places]
