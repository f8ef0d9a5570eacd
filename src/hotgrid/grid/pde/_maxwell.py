"""Maxwell: electromagnetic waves in a plane, by Yee's scheme."""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from hotgrid.grid.model import (
    Brush,
    Field,
    Input,
    Model,
    Neighbours,
    Parameter,
    Planes,
    State,
    observable,
    total,
)

from ._stability import expect_stable


class Maxwell(Model):
    """Light in a plane: `e` across it, `hx` and `hy` in it, with the speed of light 1.

    The finite differences of Yee (1966): `e` is at cells, `h` at their faces and half a step
    later. A layer of `margin` cells at the ends absorbs waves, with electric and magnetic
    losses that match, so that little is reflected. `courant` is dt / dx, below 0.707.

    Example:
        >>> sim = Simulation(Maxwell(), size=(64, 64), compiled=False)
        >>> before = sim.observe()["energy"]
        >>> sim.run(200).steps
        200
        >>> sim.observe()["energy"] < 0.05 * before
        True
    """

    fields = (Field("e"), Field("hx"), Field("hy"))
    inputs = (Input("loss"), Input("permittivity"))
    ranks = (2,)
    picture = "e"
    courant = Parameter(0.5, "cells that light travels in a step", above=0, high=1)
    absorption = Parameter(
        0.5, "largest loss of the layer at the ends in a step", low=0, high=1
    )

    def __init__(self, margin: int = 12, **parameters: float) -> None:
        super().__init__(**parameters)
        self.margin = margin

    def check(self, size: tuple[int, ...]) -> None:
        """Refuse a step that is unstable."""
        expect_stable(self, 1 / math.sqrt(2), len(size), "courant")

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """The magnetic field by the turn of the electric one, then the other way round."""
        e, hx, hy, loss = state["e"], state["hx"], state["hy"], inputs["loss"]
        courant, most = params["courant"], params["absorption"]

        def magnetic_x(row: int) -> Tensor:
            kept = 0.5 * most * (loss[row, 0] + loss[row + 1, 0]) / 2
            turned = courant * (e[row + 1, 0] - e[row, 0])
            return (hx[row, 0] * (1 - kept) - turned) / (1 + kept)

        def magnetic_y(column: int) -> Tensor:
            kept = 0.5 * most * (loss[0, column] + loss[0, column + 1]) / 2
            turned = courant * (e[0, column + 1] - e[0, column])
            return (hy[0, column] * (1 - kept) + turned) / (1 + kept)

        right, low = magnetic_y(0), magnetic_x(0)
        turned = right - magnetic_y(-1) - (low - magnetic_x(-1))
        lost = 0.5 * most * loss.here
        speed = courant / inputs["permittivity"].here
        return {
            "e": (e.here * (1 - lost) + speed * turned) / (1 + lost),
            "hx": low,
            "hy": right,
        }

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """A flash near the middle."""
        place = [
            n // 2 + torch.randint(-n // 8, n // 8 + 1, (), generator=generator) for n in size
        ]
        axes = [torch.arange(n) - at for n, at in zip(size, place, strict=True)]
        squares = torch.stack(torch.meshgrid(*axes, indexing="ij")).square().sum(0)
        e = torch.exp(-squares / 18.0)
        return {"e": e, "hx": torch.zeros(size), "hy": torch.zeros(size)}

    def static(self, size: tuple[int, ...]) -> dict[str, Tensor]:
        """The losses at the ends, which grow with the cube of the depth; empty space."""
        loss = torch.zeros(size)
        for dim, n in enumerate(size):
            end = torch.minimum(torch.arange(n), n - 1 - torch.arange(n))
            depth = ((self.margin - end).clamp(min=0) / max(1, self.margin)) ** 3
            loss = torch.maximum(loss, depth[:, None] if dim == 0 else depth)
        return {"loss": loss, "permittivity": torch.ones(size)}

    def brushes(self) -> Sequence[Brush]:
        """Light to paint."""
        return (Brush("e", "Light"),)

    @observable
    def energy(self, state: State) -> Tensor:
        """Electric and magnetic energy, up to what half a step changes."""
        return 0.5 * total(torch.stack([x.double().square() for x in state.values()]))
