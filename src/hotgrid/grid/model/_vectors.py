"""Cells as vectors: models whose steps mix the numbers of a cell by matrices.

Such a step sees a field as `[*space, channels]`. Products along channels then read memory in
order and run on tensor cores.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Self

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

from ._model import Model, Planes
from ._neighbours import Neighbours

# Products of fewer rows are summed in another order: those in double precision by wide
# matrices here, others from 64 rows down.
_FEWEST_ROWS = 192


class CellVectors:
    """A field as every cell sees it, with its channels last.

    `cells[0, 0]` is the cell itself and `cells[-1, 0]` the cell one row up, for all cells at
    once: a tensor `[*space, channels]`, also of a single channel.

    Arguments:
        look: Gives that tensor for an offset; it refuses offsets beyond the radius.
        rank: The number of space dims.
        channels: The numbers of a cell.
    """

    __slots__ = ("_look", "channels", "rank")

    def __init__(
        self, look: Callable[[tuple[int, ...]], Tensor], rank: int, channels: int
    ) -> None:
        self._look = look
        self.rank = rank
        self.channels = channels

    def __getitem__(self, offset: int | tuple[int, ...]) -> Tensor:
        return self._look((offset,) if isinstance(offset, int) else tuple(offset))

    @property
    def here(self) -> Tensor:
        """The cell itself, whatever the rank."""
        return self._look((0,) * self.rank)

    def __len__(self) -> int:
        return self.channels


class VectorModel(Model):
    """A model whose step mixes the numbers of a cell by matrices.

    It is declared as any `Model`, but writes `vector_step` instead of `step`. Operations along
    the last dim are free, products by matrices included; along space it reads neighbours by
    offset, as every model. The form `vectors` keeps channels last in memory.

    Example:
        >>> class Mixing(VectorModel):
        ...     fields = (Field("cells", components=4),)
        ...     def vector_step(self, state, inputs, params):
        ...         cells = state["cells"]
        ...         around = (cells[0, -1] + cells[0, 1]) / 2
        ...         return {"cells": mixed(around, torch.eye(4).roll(1, 0))}
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            raise ArgumentError(
                f"{cls.__name__} is a VectorModel and writes `step`, which would not be used; "
                "call it `vector_step`, or derive the class from `Model`"
            )

    @abstractmethod
    def vector_step(
        self,
        state: Mapping[str, CellVectors],
        inputs: Mapping[str, CellVectors],
        params: Mapping[str, Tensor],
    ) -> Mapping[str, Tensor]:
        """The next value of every field, `[*space, channels]`, from handles to the present."""

    def placed(self, device: torch.device, dtype: torch.dtype) -> Self:
        """The same model with the matrices that it holds on a device, in a type."""
        return self

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> Mapping[str, Planes]:
        """The same step on planes `[channels, *space]`, for forms that keep these."""
        result = self.vector_step(
            {name: _of_planes(handle) for name, handle in state.items()},
            {name: _of_planes(handle) for name, handle in inputs.items()},
            params,
        )
        if not isinstance(result, Mapping):
            return result
        channels = {field.name: field.components for field in self.fields}
        return {name: _planes(self, name, channels.get(name), x) for name, x in result.items()}


def said_step(model: Model) -> str:
    """The step of a model as its author wrote it, for errors: `` `Heat.step` ``."""
    name = "vector_step" if isinstance(model, VectorModel) else "step"
    return f"`{type(model).__name__}.{name}`"


def _planes(model: VectorModel, name: str, channels: int | None, x: object) -> Planes:
    """A field of a step's result as one tensor for each channel."""
    if isinstance(x, Tensor) and x.ndim and channels in (None, x.shape[-1]):
        return x.unbind(-1)
    got = f"the shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
    raise ArgumentError(
        f"{said_step(model)} must return a tensor `[*space, {channels}]` for the field "
        f"`{name}`, with its channels last, got {got}"
    )


def _of_planes(handle: Neighbours) -> CellVectors:
    channels = len(handle)

    def look(offset: tuple[int, ...]) -> Tensor:
        seen = handle[offset]
        return seen.unsqueeze(-1) if channels == 1 else seen.movedim(0, -1)

    return CellVectors(look, handle.rank, channels)


def mixed(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The numbers of every cell times a matrix, `[*space, in]` to `[*space, out]`.

    On a CPU a cell has the same bits in grids of any size, which a plain product has only
    where there are some dozens of cells.

    Arguments:
        x: The cells.
        weight: The matrix, `[out, in]`, on any device and of any floating type.
        bias: What is added, `[out]`.

    Example:
        >>> mixed(torch.ones(2, 3, 4), torch.ones(5, 4)).shape
        torch.Size([2, 3, 5])
    """
    weight = weight.to(x)
    bias = None if bias is None else bias.to(x)
    if len(weight) == 1 and x.device.type == "cpu":
        # A product with a vector is summed in an order that depends on the number of rows.
        twice = None if bias is None else torch.cat([bias, bias])
        return mixed(x, torch.cat([weight, weight]), twice)[..., :1]
    rows = x.reshape(-1, x.shape[-1])
    count = rows.shape[0]
    if count >= _FEWEST_ROWS:
        return torch.nn.functional.linear(rows, weight, bias).view(*x.shape[:-1], -1)
    rows = torch.cat([rows, rows.new_zeros(_FEWEST_ROWS - count, rows.shape[1])])
    found = torch.nn.functional.linear(rows, weight, bias)[:count]
    return found.view(*x.shape[:-1], -1)
