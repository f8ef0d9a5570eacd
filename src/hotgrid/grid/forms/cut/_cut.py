"""The form of a grid that is split over ranks: any other form, on a block with margins.

A block carries a margin on its cut sides, wide enough for `depth` ordinary steps. The
form inside runs it as if it were a whole grid: its result at the outer edge is wrong,
and the error spreads inwards by one step's reach each step. It reaches cells that are
owned only after `depth` steps, and before that one exchange updates all margins.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.profiler import record_function

from hotgrid.cluster import Block, Communicator, HaloExchange, Mesh, join, take
from hotgrid.grid.forms._choice import chosen_form
from hotgrid.grid.forms._form import Form, Setting
from hotgrid.grid.model import State

from ._crossing import crossing
from ._layout import joined_ends


class CutForm(Form):
    """One rank's part of a grid.

    Arguments:
        setting: What is run, as if it were run whole.
        communicator: The ranks.
        mesh: Their layout over the grid.
        depth: Steps between two exchanges.
        form: The name of the form that runs a block; None for the fastest.
    """

    at_once = False
    """Whether messages go to diagonal neighbours too, so that all are sent together."""

    def __init__(
        self,
        setting: Setting,
        communicator: Communicator,
        mesh: Mesh,
        depth: int,
        form: str | None = None,
    ) -> None:
        super().__init__(setting)
        self._arguments = setting, communicator, mesh, depth, form
        self.communicator = communicator
        self.mesh = mesh.over(setting.rank)
        self.depth = depth
        self._form_name = form
        reach = setting.model.reach(depth, setting.rank)
        margin = [m * (n > 1) for m, n in zip(reach, self.mesh.shape, strict=True)]
        self.mesh.check_margin(setting.size, margin, depth=depth)
        self.halo = HaloExchange(
            communicator,
            self.mesh,
            setting.size,
            margin,
            joined_ends(setting.model, setting.rank),
            # More steps read more of a margin than one step does.
            components=crossing(setting) if depth == 1 else None,
            at_once=self.at_once,
        )
        around = self.around()
        local = replace(
            setting,
            size=around.size,
            inputs=setting.inputs_in(around),
            part_inputs=None,
        )
        self.inside = chosen_form(local, form, communicator, setting.cells // communicator.size)
        self._clean = 0
        self._parts: dict[tuple[int, tuple[bool, ...]], HaloExchange] = {}

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The name of the inner form."""
        return self.inside.name

    def settled(self) -> "CutForm":
        """Let all ranks together choose the inner form."""
        self.inside = self.inside.settled()
        return self

    def around(self) -> Block:
        """The grid that the inner form runs: the block with its margins."""
        return self.halo.padded

    def fresh(self) -> "CutForm":
        """Another form of this kind, with its own buffers."""
        return CutForm(*self._arguments)

    def load(self, state: State) -> None:
        """Take the part of a whole state that belongs here."""
        self.restore({name: take(x, self.halo.block) for name, x in state.items()})

    def read(self) -> State:
        """The whole state, on every rank; a collective call."""
        return {name: self._gathered(x) for name, x in self.own().items()}

    def own(self) -> State:
        """The cells of this rank, without margins."""
        return {name: x[(..., *self.halo.inside)] for name, x in self.inside.read().items()}

    def restore(self, own: State) -> None:
        """Go back to what `own` gave."""
        padded: State = {}
        for name, x in own.items():
            space = x.shape[: -self.setting.rank]
            padded[name] = x.new_zeros((*space, *self.halo.padded.size))
            padded[name][(..., *self.halo.inside)] = x
        self.inside.load(padded)
        self._clean = 0

    def part(self, reach: int, joined: Sequence[bool]) -> tuple[State, Block]:
        """The cells of this rank and a margin around them, with their box."""
        if reach == 0:
            return self.own(), self.halo.block
        margin = [reach * (n > 1) for n in self.mesh.shape]
        key = (reach, tuple(joined))
        if key not in self._parts:
            self._parts[key] = HaloExchange(
                self.communicator, self.mesh, self.setting.size, margin, list(joined)
            )
        halo = self._parts[key]
        return {name: halo.extend(x) for name, x in self.own().items()}, halo.padded

    def everywhere(self, here: bool) -> bool:
        """Whether it is so on every rank; a collective call."""
        missing = torch.tensor([0 if here else 1], device=self.communicator.device)
        self.communicator.all_reduce(missing, "max")
        return not missing.item()

    @property
    def live_params(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the inner form reads parameters each time it runs."""
        return self.inside.live_params

    @property
    def ranks(self) -> Communicator:
        """The ranks that share the grid."""
        return self.communicator

    @property
    def compiled(self) -> bool:
        """Whether the inner form is compiled."""
        return self.inside.compiled

    @property
    def is_primary(self) -> bool:
        """True on rank 0."""
        return self.communicator.rank == 0

    @property
    def offset(self) -> tuple[int, ...]:
        """Where the cells of this rank begin."""
        return self.halo.block.offset

    def advance(self, steps: int) -> None:
        """Advance by a number of steps, exchanging margins when they are used up."""
        alone = not any(self.halo.margin)
        while steps > 0:
            if alone:
                self._clean = steps
            elif self._clean == 0:
                with record_function("exchange"):
                    self.halo.exchange(*self.inside.read().values())
                self.inside.touched()
                self._clean = self.depth
            now = min(steps, self._clean)
            with record_function("steps"):
                self.inside.advance(now)
            self._clean -= now
            steps -= now

    def _gathered(self, own: Tensor) -> Tensor:
        blocks = self.mesh.blocks(self.setting.size)
        leading = own.shape[: -self.setting.rank]
        cells = [math.prod(block.size) for block in blocks]
        flat = own.new_zeros((*leading, max(cells)))
        mine = own.flatten(-self.setting.rank)
        flat[..., : mine.shape[-1]] = mine
        every = self.communicator.all_gather(flat)
        pieces = [
            x[..., :n].unflatten(-1, block.size)
            for x, n, block in zip(every, cells, blocks, strict=True)
        ]
        return join(pieces, blocks)
