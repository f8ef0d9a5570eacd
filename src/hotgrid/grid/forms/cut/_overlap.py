"""A grid over several ranks whose messages are sent while its interior is computed.

The form inside runs a block without margins, at once, as if it were a whole grid: after
some steps it is wrong near its cut sides, as far as changes spread. Meanwhile the old cells
near those sides are sent to the neighbours. When the margins have
arrived, slabs along the cut sides compute the same steps again, with the right margins.
A step is then computed twice for a few cells, but no rank waits for messages.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.profiler import record_function

from hotgrid.cluster import Block
from hotgrid.grid.forms._choice import first_form
from hotgrid.grid.forms._form import Form
from hotgrid.grid.model import State

from ._cut import CutForm

Region = tuple[slice, ...]


class _Slab(NamedTuple):
    """A part of the block along one cut side, margin included.

    Attributes:
        form: What steps it.
        cells: It, in the padded block.
        right: What of it is right in the end, in its own cells.
        place: Where that belongs in the block.
    """

    form: Form
    cells: Region
    right: Region
    place: Region


class OverlappedForm(CutForm):
    """One rank's part of a grid, with messages hidden by the interior."""

    at_once = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        setting = self.setting
        self._frames = {
            field.name: torch.zeros(
                (*setting.batch, field.components, *self.halo.padded.size),
                dtype=setting.kept_as(field),
                device=setting.device,
            )
            for field in setting.model.fields
        }
        self._slabs = list(self._made_slabs())

    def around(self) -> Block:
        """The inner form runs the owned cells, without margins."""
        return self.halo.block

    def fresh(self) -> "OverlappedForm":
        """Another form of this kind, with its own buffers."""
        return OverlappedForm(*self._arguments)

    def own(self) -> State:
        """The cells of this rank."""
        return self.inside.read()

    def restore(self, own: State) -> None:
        """Go back to what `own` gave."""
        self.inside.load(own)

    def advance(self, steps: int) -> None:
        """Advance by a number of steps, in cycles of at most `depth`."""
        while steps > 0:
            now = min(steps, self.depth)
            self._cycle(now)
            steps -= now

    def _cycle(self, steps: int) -> None:
        state = self.inside.read()
        for name, frame in self._frames.items():
            for near in self._edges():
                self._owned(frame)[(..., *near)] = state[name][(..., *near)]
        with record_function("exchange under way"):
            self.halo.start(*self._frames.values())
            with record_function("interior"):
                self.inside.advance(steps)
            with record_function("wait for margins"):
                self.halo.finish()
        with record_function("borders"):
            made = [(slab, self._stepped(slab, steps)) for slab in self._slabs]
            after = self.inside.read()
            for slab, found in made:
                for name, x in found.items():
                    after[name][(..., *slab.place)] = x[(..., *slab.right)]
            self.inside.touched()

    def _stepped(self, slab: _Slab, steps: int) -> State:
        slab.form.load(
            {
                name: frame[(..., *slab.cells)].clone(memory_format=torch.contiguous_format)
                for name, frame in self._frames.items()
            }
        )
        slab.form.advance(steps)
        return slab.form.read()

    def _owned(self, frame: Tensor) -> Tensor:
        return frame[(..., *self.halo.inside)]

    def _edges(self) -> Iterator[Region]:
        """Owned cells that a slab or a neighbour may need, in the block."""
        for axis, (low, high) in enumerate(self._sides()):
            count, width = self.halo.block.size[axis], 2 * self.halo.margin[axis]
            if low:
                yield _along(axis, slice(0, min(width, count)), self.setting.rank)
            if high:
                yield _along(axis, slice(max(0, count - width), count), self.setting.rank)

    def _made_slabs(self) -> Iterator[_Slab]:
        padded, rank = self.halo.padded, self.setting.rank
        for axis, sides in enumerate(self._sides()):
            width = self.halo.margin[axis]
            for high, there in enumerate(sides):
                if not there:
                    continue
                count = padded.size[axis]
                # A block at an end of a bounded grid may be smaller than three margins.
                thick = min(3 * width, count)
                cells = slice(count - thick, count) if high else slice(0, thick)
                own = self.halo.block.size[axis]
                place = slice(own - width, own) if high else slice(0, width)
                right = [
                    slice(low, low + n)
                    for (low, _), n in zip(self._sides(), self.halo.block.size, strict=True)
                ]
                begin = right[axis].start + place.start - cells.start
                right[axis] = slice(begin, begin + width)
                yield _Slab(
                    self._form_of(axis, cells),
                    _along(axis, cells, rank),
                    tuple(right),
                    _along(axis, place, rank),
                )

    def _form_of(self, axis: int, cells: slice) -> Form:
        padded, setting = self.halo.padded, self.setting
        offset, size = list(padded.offset), list(padded.size)
        offset[axis] += cells.start
        size[axis] = cells.stop - cells.start
        block = Block(tuple(offset), tuple(size), padded.whole)
        inputs = setting.inputs_in(block)
        # Slabs are small, and the ranks have different ones: nothing is timed.
        local = replace(setting, size=block.size, inputs=inputs, part_inputs=None)
        return first_form(local, self._form_name)

    def _sides(self) -> tuple[tuple[int, int], ...]:
        """The width of the margin at both sides of every axis."""
        return self.halo.block.margins(self.halo.margin, self.halo.periodic)


def _along(axis: int, cells: slice, rank: int) -> Region:
    return tuple(cells if each == axis else slice(None) for each in range(rank))
