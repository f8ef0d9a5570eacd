"""The form of a grid that is cut over ranks: any other form, on a block with margins.

A block carries a margin on its cut sides, wide enough for `depth` ordinary steps. The
form inside runs it as if it were a whole grid: what it makes of the outer edge is wrong,
and the wrong creeps inwards by one step's reach each step. It arrives at cells that are
owned only after `depth` steps, and before that one exchange makes all margins right.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from hotgrid.cluster import Block, Communicator, HaloExchange, Mesh, world
from hotgrid.config import current
from hotgrid.errors import ArgumentError

from ._form import Form, Setting
from ._model import State


class CutForm(Form):
    """One rank's part of a grid.

    Arguments:
        setting: What is run, as if it were run whole; inputs are those of the whole grid.
        communicator: The ranks.
        mesh: Their layout over the grid.
        depth: Steps between two exchanges.
        inside: Makes the form that runs a block.
    """

    def __init__(
        self,
        setting: Setting,
        communicator: Communicator,
        mesh: Mesh,
        depth: int,
        inside: Callable[[Setting], Form],
    ) -> None:
        super().__init__(setting)
        self.communicator = communicator
        self.mesh = mesh.over(setting.rank)
        self.depth = depth
        self._made_by = inside
        reach = setting.model.reach(depth, setting.rank)
        margin = [m * (n > 1) for m, n in zip(reach, self.mesh.shape, strict=True)]
        self.halo = HaloExchange(
            communicator, self.mesh, setting.size, margin, _periodic(setting)
        )
        around = self.halo.padded
        local = replace(
            setting,
            size=around.size,
            inputs={name: _part(x, around) for name, x in setting.inputs.items()},
        )
        self.inside = inside(local)
        self.name = self.inside.name
        self._clean = 0

    @staticmethod
    def wins(setting: Setting) -> bool:
        """It is asked for by a mesh, never chosen."""
        return False

    def fresh(self) -> "CutForm":
        """Another one, with buffers of its own."""
        return CutForm(self.setting, self.communicator, self.mesh, self.depth, self._made_by)

    def load(self, state: State) -> None:
        """Take the part of a whole state that belongs here."""
        self.restore({name: _part(x, self.halo.block) for name, x in state.items()})

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

    def everywhere(self, here: bool) -> bool:
        """Whether it is so on every rank; a collective call."""
        missing = torch.tensor([0 if here else 1], device=self.communicator.device)
        self.communicator.all_reduce(missing, "max")
        return not missing.item()

    @property
    def speaks(self) -> bool:
        """The first rank does."""
        return self.communicator.rank == 0

    @property
    def offset(self) -> tuple[int, ...]:
        """Where the cells of this rank begin."""
        return self.halo.block.offset

    def run(self, steps: int) -> None:
        """Advance by a number of steps, exchanging margins when they are used up."""
        while steps > 0:
            if self._clean == 0:
                self.halo.exchange(*self.inside.read().values())
                self.inside.touched()
                self._clean = self.depth
            now = min(steps, self._clean)
            self.inside.run(now)
            self._clean -= now
            steps -= now

    def _gathered(self, own: Tensor) -> Tensor:
        blocks = self.mesh.blocks(self.setting.size)
        leading = own.shape[: -self.setting.rank]
        most = max(torch.Size(block.size).numel() for block in blocks)
        flat = own.new_zeros((*leading, most))
        mine = own.flatten(-self.setting.rank)
        flat[..., : mine.shape[-1]] = mine
        every = self.communicator.all_gather(flat)
        whole = own.new_empty((*leading, *self.setting.size))
        for block, x in zip(blocks, every, strict=True):
            cells = torch.Size(block.size).numel()
            whole[(..., *block.slices)] = x[..., :cells].unflatten(-1, block.size)
        return whole


def _periodic(setting: Setting) -> bool:
    """Whether the ends of the grid are joined, for all fields alike."""
    joined = {field.outside is None for field in setting.model.fields}
    if len(joined) > 1:
        raise ArgumentError(
            f"{type(setting.model).__name__} joins the ends for some fields and not for "
            "others; such a model cannot be cut over a mesh: leave out `mesh`"
        )
    return joined.pop()


def _part(x: Tensor, block: Block) -> Tensor:
    """What a block, margins and all, sees of a whole grid, `[..., *block.size]`."""
    axes = len(block.size)
    for axis, places in enumerate(block.indices):
        x = x.index_select(axis - axes, torch.tensor(places, device=x.device))
    return x


def cut_form(
    setting: Setting,
    mesh: Mesh | str | Sequence[int],
    depth: int | None,
    communicator: Communicator | None,
    inside: Callable[[Setting], Form],
) -> CutForm:
    """This rank's form of a grid that is cut over a mesh.

    Raises:
        ArgumentError: Mesh, ranks, grid and depth do not fit; the text says what would.
    """
    layout = Mesh(mesh)
    ranks = communicator or world(setting.device)
    return CutForm(setting, ranks, layout, cut_depth(setting, layout, depth), inside)


def cut_depth(setting: Setting, mesh: Mesh, wanted: int | None) -> int:
    """The steps between two exchanges: those asked for, or as many as pay.

    Raises:
        ArgumentError: The blocks are too small for what was asked for.
    """
    set_depth = current().cluster.margin_depth
    if wanted is None and set_depth != "auto":
        wanted = set_depth
    if wanted is not None:
        if wanted < 1:
            raise ArgumentError(f"`depth` must be at least 1, got {wanted}")
        return wanted
    return next((d for d in (8, 4, 2) if _pays(setting, mesh, d)), 1)


def _pays(setting: Setting, mesh: Mesh, depth: int) -> bool:
    """Whether margins of that depth are at most a tenth of what is computed."""
    shape = mesh.over(setting.rank).shape
    reach = setting.model.reach(depth, setting.rank)
    return all(
        parts == 1 or 20 * m <= n // parts
        for n, m, parts in zip(setting.size, reach, shape, strict=True)
    )
