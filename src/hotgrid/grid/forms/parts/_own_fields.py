"""The fields of the cells of one rank: made by the model, or given by the user."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.cluster import Block, take
from hotgrid.errors import ArgumentError
from hotgrid.grid.forms._form import Setting
from hotgrid.grid.model import (
    GridWindow,
    Model,
    State,
    expect_whole,
    given_tensors,
    in_window,
    named_tensors,
    window_shape,
)

from ._part_inputs import note_whole, start_window


@dataclass(frozen=True)
class OwnFields:
    """Brings fields into the form in which they are kept.

    Attributes:
        setting: How the fields are kept.
        own: The cells of this rank, as they are stored.
        size: The grid, in cells as users see them.
    """

    setting: Setting
    own: Block
    size: tuple[int, ...]

    def begin(self, model: Model, lacking: Sequence[str], seed: int, *, notice: bool) -> State:
        """Fields of this rank's cells to start from, by the model.

        Arguments:
            model: The model, with its present parameters.
            lacking: The fields to make.
            seed: The seed of all random numbers.
            notice: Whether to say so where the whole grid has to be made.
        """
        generator = torch.Generator().manual_seed(seed)
        kind = f"{type(model).__name__}.initial"
        size = start_window(model, self.setting.model, self.own, self.size)
        if notice and size == self.size and self.own.size != self.own.whole:
            note_whole(model, self.size)
        batch = self.setting.batch
        begin: State = {}
        # One run after the other: making a state takes the most memory.
        for run in range(math.prod(batch)):
            made = given_tensors(kind, model.initial(size, generator))
            wanted = {name: in_window(made[name], size) for name in lacking if name in made}
            made = self.kept(model, wanted, kind, (), size)
            if size == self.size:
                made = {name: self.part(x) for name, x in made.items()}
            for name in lacking:
                if name not in made:
                    raise ArgumentError(f"`{kind}` does not return the field `{name}`")
                if not batch:
                    begin[name] = made[name]
                    continue
                if not run:
                    begin[name] = made[name].new_empty((*batch, *made[name].shape))
                begin[name][run] = made[name]
        return begin

    def kept(
        self,
        model: Model,
        fields: Mapping[str, Tensor],
        what: str = "state",
        batch: tuple[int, ...] | None = None,
        size: tuple[int, ...] | None = None,
    ) -> State:
        """Fields as the form keeps them: on the device, with batch and component dims.

        Those of the whole grid, unless `size` is the window of this rank's cells.
        """
        setting = self.setting
        batch = setting.batch if batch is None else batch
        cells = window_shape(self.size if size is None else size)
        stored = self.own.size if isinstance(size, GridWindow) else setting.size
        given = named_tensors(what, model, model.fields, fields, cells, batch)
        named = setting.model.stored(given)
        found: State = {}
        for field in setting.model.fields:
            if field.name in named:
                x, kept_as = named[field.name].detach(), setting.kept_as(field)
                expect_whole(what, field.name, x, kept_as)
                x = x.to(setting.device, kept_as, copy=True)
                found[field.name] = x.expand(*batch, field.components, *stored).contiguous()
        return found

    def part(self, x: Tensor) -> Tensor:
        """The cells of this rank, of a field of the whole grid as the form keeps it."""
        return x if self.own.size == self.own.whole else take(x, self.own)
