"""Small models with a constant state, for pictures."""

import torch
from torch import Tensor

from hotgrid.grid import Field, Input, Model, Simulation, observable, total
from hotgrid.grid.model import view


class Ramp(Model):
    """Numbers that grow along x from -2 to 2, around a solid block."""

    fields = (Field("u"), Field("pair", components=2))
    inputs = (Input("solid", dtype=torch.bool),)
    ranks = (1, 2, 3)
    time_step = 0.5
    picture = "signed"

    def step(self, state, inputs, params):
        return {
            "u": state["u"][self.here],
            "pair": [state["pair"].part(i)[self.here] for i in (0, 1)],
        }

    def initial(self, size, generator):
        self.here = (0,) * len(size)
        u = torch.linspace(0, 4, size[-1]).expand(size)
        return {"u": u.clone(), "pair": torch.stack([u, -u])}

    def static(self, size):
        solid = torch.zeros(size, dtype=torch.bool)
        solid[..., : size[-1] // 4] = True
        return {"solid": solid}

    @view
    def signed(self, state) -> Tensor:
        return state["u"] - 2

    @view
    def alive(self, state) -> Tensor:
        return state["u"] > 2

    @observable
    def weight(self, state) -> Tensor:
        return total(state["u"])


def ramp(size: tuple[int, ...] = (12, 16), **options) -> Simulation:
    return Simulation(Ramp(), size=size, compiled=False, device="cpu", **options)
