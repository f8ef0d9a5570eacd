"""Inputs beyond the ends of a grid that is cut, where the ends of its fields are not joined.

Inputs always repeat: beyond the last row comes the first. A block of a mesh has margins only
towards its neighbours, so at the edges of the grid it would repeat itself instead. Neighbours
of inputs do not change, so each one that a step reads becomes a separate input.
"""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from hotgrid.cluster import Block
from hotgrid.grid.forms._form import Setting
from hotgrid.grid.forms._roll import shifting
from hotgrid.grid.model import (
    CellVectors,
    Input,
    Model,
    Neighbours,
    Planes,
    State,
    VectorModel,
)

from ._crossing import asked_of_inputs

Asked = dict[str, list[tuple[int, tuple[int, ...]]]]
"""For every input the components and offsets that a step reads."""


def far_asked(setting: Setting) -> Asked | None:
    """The inputs that a step reads, if that matters on a mesh; None if it does not."""
    model = setting.model
    if not model.inputs or all(all(field.joined(setting.rank)) for field in model.fields):
        return None
    asked = asked_of_inputs(setting)
    if not any(any(offset) for each in asked.values() for _, offset in each):
        return None
    nothing = [(0, (0,) * setting.rank)]
    return {name: each or nothing for name, each in asked.items()}


def with_far_inputs(setting: Setting) -> Setting:
    """The same setting with every neighbour of an input that is read as a component."""
    asked = far_asked(setting)
    if asked is None:
        return setting
    model, part = far_model(setting.model, asked), setting.part_inputs
    if part is None:
        spread = {name: spread_input(x, asked[name]) for name, x in setting.inputs.items()}
        return replace(setting, model=model, inputs=spread)
    radius = setting.model.radius
    inside = (slice(radius, -radius),) * setting.rank

    def spread_in(block: Block) -> State:
        first = tuple(n - radius for n in block.offset)
        around = Block(first, tuple(n + 2 * radius for n in block.size), block.whole)
        return {
            name: spread_input(x, asked[name])[(..., *inside)].contiguous()
            for name, x in part(around).items()
        }

    return replace(setting, model=model, inputs={}, part_inputs=spread_in)


def spread_input(x: Tensor, asked: list[tuple[int, tuple[int, ...]]]) -> Tensor:
    """Periodic neighbours of an input `[components, *space]`, as `[asked, *space]`."""
    look = shifting(Input("x"))
    return torch.stack([look(x[component], offset) for component, offset in asked])


def far_model(model: Model, asked: Asked) -> Model:
    """A copy that reads neighbours of its inputs where `spread_input` puts them."""
    twin: Any = copy.copy(model)
    twin.inputs = tuple(
        replace(known, components=len(asked[known.name])) for known in model.inputs
    )

    def step(
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> Mapping[str, Planes]:
        return model.step(
            state, {name: _Far(handle, asked[name]) for name, handle in inputs.items()}, params
        )

    def vector_step(
        state: Mapping[str, CellVectors],
        inputs: Mapping[str, CellVectors],
        params: Mapping[str, Tensor],
    ) -> Mapping[str, Tensor]:
        far = {name: _far_vectors(cells, asked[name]) for name, cells in inputs.items()}
        return model.vector_step(state, far, params)  # type: ignore[attr-defined]

    twin.step = step
    if isinstance(model, VectorModel):
        twin.vector_step = vector_step
    return twin


def _far_vectors(spread: CellVectors, asked: list[tuple[int, tuple[int, ...]]]) -> CellVectors:
    """The same with channels last."""
    place = {each: k for k, each in enumerate(asked)}
    channels = 1 + max(component for component, _ in asked)

    def look(offset: tuple[int, ...]) -> Tensor:
        first = [place[component, offset] for component in range(channels)]
        return spread.here[..., first]

    return CellVectors(look, spread.rank, channels)


class _Far(Neighbours):
    """The handle of an input whose neighbours are components."""

    def __init__(self, spread: Neighbours, asked: list[tuple[int, tuple[int, ...]]]) -> None:
        place = {each: k for k, each in enumerate(asked)}
        reach = max(abs(o) for _, offset in asked for o in offset)
        # Planes are only passed on to `look`, which here takes their numbers.
        planes: Any = range(1 + max(component for component, _ in asked))

        def look(plane: Any, offset: tuple[int, ...]) -> Tensor:
            return spread.part(place[plane, offset]).here

        super().__init__(planes, look, spread.rank, reach)
