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
    places,
    total,
    whole_number,
    window_shape,
)
from hotgrid.grid.pde.schemes import expect_stable


class Maxwell(Model):
    """Light in a plane: `e` across it, `hx` and `hy` in it, with the speed of light 1.

    The finite differences of Yee (1966): `e` is at cells, `h` at their faces and half a step
    later. A layer at the ends absorbs waves, with electric and magnetic losses that match, so
    that little is reflected. `courant` is dt / dx, below 0.707. The input `permittivity` may
    be anything of at least 1.

    Arguments:
        margin: Cells of the absorbing layer; 0 makes the grid periodic.
        glass: Permittivity of a ball of glass in the middle, which bends and reflects light;
            1 for none.

    Example:
        >>> sim = Simulation(Maxwell(glass=1.0), size=(64, 64), compiled=False)
        >>> before = sim.observe()["energy"]
        >>> sim.run(200).steps
        200
        >>> sim.observe()["energy"] < 0.05 * before
        True
    """

    fields = (Field("e"), Field("hx"), Field("hy"))
    inputs = (Input("loss"), Input("permittivity"))
    ranks = (2,)
    windowed = True
    picture = "e"
    courant = Parameter(0.5, "cells that light travels in a step", above=0, high=1)
    absorption = Parameter(
        0.5, "largest loss of the layer at the ends in a step", low=0, high=1
    )

    def __init__(self, margin: int = 12, glass: float = 4.0, **parameters: float) -> None:
        super().__init__(**parameters)
        self.margin = whole_number("margin", margin, 0)
        self.glass = Parameter(4.0, low=1).checked("glass", glass)

    @property
    def time_step(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The time of a step: light takes 1 for a cell."""
        return self.courant

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
        """A flash of light to the side of the glass, at a random height."""
        rows, columns = size
        row = rows // 2 + int(torch.randint(-rows // 8, rows // 8 + 1, (), generator=generator))
        e = torch.exp(-_squares(size, (row, columns // 4)) / 18)
        return {"e": e, "hx": torch.zeros(e.shape), "hy": torch.zeros(e.shape)}

    def static(self, size: tuple[int, ...]) -> dict[str, Tensor]:
        """The losses at the ends, which grow with the cube of the depth, and the glass."""
        loss = torch.zeros(window_shape(size))
        for dim, (n, x) in enumerate(zip(size, places(size), strict=True)):
            end = torch.minimum(x, n - 1 - x)
            depth = ((self.margin - end).clamp(min=0) / max(1, self.margin)) ** 3
            loss = torch.maximum(loss, depth[:, None] if dim == 0 else depth)
        return {"loss": loss, "permittivity": self._permittivity(size)}

    def _permittivity(self, size: tuple[int, ...]) -> Tensor:
        inside = _squares(size, (size[0] // 2, size[1] // 2)) < (min(size) / 6) ** 2
        return torch.where(inside, self.glass, 1.0)

    def brushes(self) -> Sequence[Brush]:
        """Light to paint."""
        return (Brush("e", "Light"),)

    @observable
    def energy(self, state: State) -> Tensor:
        """Electric and magnetic energy with this glass, up to what half a step changes."""
        e, hx, hy = (state[name].double().square() for name in ("e", "hx", "hy"))
        return 0.5 * total(self._permittivity(tuple(e.shape)).to(e) * e + hx + hy)


def _squares(size: tuple[int, ...], place: tuple[int, ...]) -> Tensor:
    """Squared distances to a cell, `[*space]`."""
    axes = [x - at for x, at in zip(places(size), place, strict=True)]
    return torch.stack(torch.meshgrid(*axes, indexing="ij")).square().sum(0)
