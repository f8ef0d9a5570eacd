"""Cahn-Hilliard: two substances that separate."""

from collections.abc import Mapping

import torch
from torch import Tensor

from hotgrid.grid.model import (
    Field,
    Model,
    Neighbours,
    Parameter,
    Planes,
    State,
    observable,
    once,
    total,
    uniform,
)
from hotgrid.grid.pde.schemes import expect_stable


class CahnHilliard(Model):
    """A mixture `c` from -1 to 1 separates: dc/dt = M lap(c^3 - c - kappa lap(c)).

    Explicit Euler, second order in space. Periodic, in one or two dims; dt and dx are one.
    Nothing is lost, and the free energy falls.

    Example:
        >>> sim = Simulation(CahnHilliard(), size=(32, 32), compiled=False)
        >>> before = sim.observe()
        >>> sim.run(200).steps
        200
        >>> after = sim.observe()
        >>> after["energy"] < before["energy"]
        True
    """

    fields = (Field("c"),)
    ranks = (1, 2)
    radius = 2
    conserved = ("amount",)
    windowed = True
    mobility = Parameter(0.02, "how fast substances move", above=0, unit="dx^2/dt")
    kappa = Parameter(1.0, "square of the width of an interface", above=0, unit="dx^2")

    def check(self, size: tuple[int, ...]) -> None:
        """Refuse a mobility that is unstable with such an interface."""
        top = 4.0 * len(size)
        most = 2.0 / (top * (self.parameters["kappa"] * top + 2))
        expect_stable(self, most, len(size), "mobility")

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """The potential of a cell and of its neighbours, then their differences."""
        c = state["c"]
        dims = range(c.rank)
        here = (0,) * c.rank
        beside = [tuple(o * (dim == own) for dim in dims) for own in dims for o in (-1, 1)]

        def potential(at: tuple[int, ...]) -> Tensor:
            value = c[at]
            around = sum(c[tuple(a + b for a, b in zip(at, o, strict=True))] for o in beside)
            bent = around - 2 * c.rank * value
            return value * value * value - value - params["kappa"] * bent

        flow = sum(potential(o) for o in beside) - 2 * c.rank * potential(here)
        return {"c": c.here + params["mobility"] * flow}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """A mixture with small noise."""
        return {"c": 0.1 * (uniform(size, generator) - 0.5)}

    @observable(over="sum")
    def amount(self, state: State) -> Tensor:
        """The sum of the mixture; nothing is lost."""
        return total(state["c"])

    @observable(over="sum")
    def energy(self, state: State) -> Tensor:
        """The free energy: of mixing, and of interfaces."""
        c = state["c"].double()
        return total((c * c - 1).square() / 4) + self.parameters["kappa"] / 2 * total(
            self._steps(state)
        )

    @once(reach=1)
    def _steps(self, state: State) -> Tensor:
        c = state["c"].double()
        return torch.stack([(c.roll(-1, dim) - c).square() for dim in range(c.ndim)])
