"""A model that the tests of the engine share."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hotgrid.grid import (
    Field,
    Input,
    Model,
    Parameter,
    Simulation,
    observable,
    total,
)
from hotgrid.grid.model import view


class Spread(Model):
    """Heat without bounds, weighted by an input."""

    fields = (Field("heat"), Field("age", dtype=torch.int32))
    inputs = (Input("weight"),)
    size = (8, 10)
    time_step = 0.1
    rate = Parameter(0.2, "how much flows")

    def step(self, state: Mapping[str, Any], inputs: Mapping[str, Any], params: Any):
        u, weight = state["heat"], inputs["weight"]
        around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
        flow = params["rate"] * (around - 4 * u[0, 0])
        return {"heat": u[0, 0] + weight[0, 1] * flow, "age": state["age"][0, 0] + 1}

    def initial(self, size: tuple[int, ...], generator: torch.Generator):
        return {
            "heat": torch.rand(size, generator=generator),
            "age": torch.zeros(size, dtype=torch.int32),
        }

    def static(self, size: tuple[int, ...]):
        return {"weight": torch.ones(size)}

    @observable
    def warmth(self, state: dict[str, Tensor]) -> Tensor:
        return total(state["heat"])

    @view
    def cold(self, state: dict[str, Tensor]) -> Tensor:
        return -state["heat"]


def simulation(model: Model | None = None, **options: Any) -> Simulation:
    return Simulation(model or Spread(), **{"compiled": False, "device": "cpu", **options})


SIZE = Spread.size
CPU = torch.device("cpu")
