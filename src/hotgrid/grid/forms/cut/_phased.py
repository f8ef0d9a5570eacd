"""The form of a split grid whose model has a phase on whole arrays."""

from dataclasses import replace

import torch
from torch.profiler import record_function

from hotgrid.cluster import Communicator, Mesh
from hotgrid.errors import ArgumentError
from hotgrid.grid.forms._form import Setting
from hotgrid.grid.forms._phase import Phase, fusing
from hotgrid.grid.model import State, is_local

from ._cut import CutForm
from ._cut_whole import CutWhole
from ._far_inputs import with_far_inputs


class PhasedForm(CutForm):
    """One rank's part of a grid: a local step on its block, then the phase with all ranks.

    A phase changes every cell, so margins last for one step.
    """

    def __init__(
        self,
        setting: Setting,
        communicator: Communicator,
        mesh: Mesh,
        depth: int,
        form: str | None = None,
    ) -> None:
        # Without a local step there is nothing to choose.
        form = form if is_local(setting.model) else "roll"
        local = replace(setting, with_phase=False)
        if mesh.ranks > 1:
            # For the step alone: a phase sees inputs as they are.
            local = with_far_inputs(local)
        super().__init__(local, communicator, mesh, depth, form)
        self._arguments = setting, communicator, mesh, depth, form
        self.setting = setting
        # Ranks differ in their shapes, and compile each their own.
        whole = CutWhole(communicator, self.mesh, setting.size, fusing(setting))
        self._phase = Phase(setting, whole)
        own = setting.inputs_in(self.halo.block)
        self._fixed = [own[known.name] for known in setting.model.inputs]
        self._params = list(setting.params.values())

    def fresh(self) -> "PhasedForm":
        """Another form of this kind, with its own buffers."""
        return PhasedForm(*self._arguments)

    def restore(self, own: State) -> None:
        """Go back to what `own` gave; without margins there is nothing to put around it."""
        if any(self.halo.margin):
            super().restore(own)
        else:
            self.inside.load(own)

    def advance(self, steps: int) -> None:
        """Advance by a number of steps."""
        names = [field.name for field in self.setting.model.fields]
        for _ in range(steps):
            if is_local(self.setting.model):
                super().advance(1)
            with torch.no_grad(), record_function("phase"):
                fields = self._phase([*self.own().values()], self._fixed, self._params)
            self.restore(dict(zip(names, fields, strict=True)))


def expect_phased(setting: Setting, depth: int | None, overlap: bool | None) -> None:
    """Refuse what a phase after every step rules out.

    Raises:
        ArgumentError: Margins are to last for several steps, or to be sent behind them.
    """
    name = type(setting.model).__name__
    for option, value in (("depth", depth if depth != 1 else None), ("overlap", overlap)):
        if value:
            raise ArgumentError(
                f"`{option}` {value!r} is impossible for {name}: its phase changes every cell "
                f"after every step; leave out `{option}`"
            )
