"""FHP: lattice gases of six directions, which flow like a fluid."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from operator import or_
from typing import Literal

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.life._lookup import looked_up
from hotgrid.grid.model import (
    Field,
    Input,
    Neighbours,
    Planes,
    State,
    next_random,
    places,
    random_numbers,
    window_shape,
)

from ._lattice_gas import LatticeGas, Start

# Right and then counterclockwise, in half columns and in rows; the last one rests.
_VELOCITIES = ((2, 0), (1, -1), (-1, -1), (-2, 0), (-1, 1), (1, 1), (0, 0))
_HEIGHT = math.sqrt(3) / 2
Kind = Literal["I", "III"]


class FHP(LatticeGas):
    """The lattice gas of Frisch, Hasslacher and Pomeau, on hexagons.

    Odd rows lie half a column to the right, and rows are sqrt(3)/2 apart. A collision replaces
    the particles of a cell by others of the same number and momentum; of two possible ones a
    random bit chooses. Each cell has a random number of its own, in the field `random` (int32).

    Arguments:
        density: The share of directions that are taken at the start.
        kind: `"I"` has collisions of two particles head on and of three at equal angles;
            `"III"` has particles at rest too, and every collision that is possible.
        start: `"pulse"` has a dense disc in the middle, `"uniform"` has none.

    Example:
        >>> FHP(kind="III").conserved
        ('mass', 'momentum_x', 'momentum_y')

    Raises:
        ArgumentError: An argument is wrong; the message names it.
    """

    windowed = True
    inputs = (Input("odd", dtype=torch.uint8),)
    units = (0.5, _HEIGHT)

    def __init__(
        self, density: float = 0.2, *, kind: Kind = "I", start: Start = "pulse"
    ) -> None:
        super().__init__(density, start)
        if kind not in ("I", "III"):
            raise ArgumentError(f"`kind` must be `I` or `III`, got {kind!r}")
        self.kind: Kind = kind
        self.velocities = _VELOCITIES if kind == "III" else _VELOCITIES[:6]
        self.fields = (*self.fields, Field("random", dtype=torch.int32))
        self._table = collisions(kind)

    def check(self, size: tuple[int, ...]) -> None:
        """Rows alternate, also across the ends."""
        if size[0] % 2:
            raise ArgumentError(f"hexagons need an even number of rows, got {size[0]}")

    def static(self, size: tuple[int, ...]) -> State:
        """1 in odd rows."""
        odd = (places(size)[0] % 2).to(torch.uint8)
        return {"odd": odd[:, None].expand(window_shape(size)).contiguous()}

    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """Particles, and the first random numbers."""
        state = super().initial(size, generator)
        return {**state, "random": random_numbers(size, generator)}

    def step(
        self,
        state: Mapping[str, Neighbours],
        inputs: Mapping[str, Neighbours],
        params: Mapping[str, Tensor],
    ) -> dict[str, Planes]:
        """Particles arrive, then collide."""
        particles, odd = state["particles"], inputs["odd"].here == 1
        arrived = [
            _from(particles, odd, x, y) & (1 << bit)
            for bit, (x, y) in enumerate(self.velocities)
        ]
        random = next_random(state["random"].here)
        choice = (random >> 16 & 1) << len(self.velocities)
        after = looked_up(self._table, reduce(or_, arrived).to(torch.int32) | choice)
        return {"particles": after, "random": random}


def _from(particles: Neighbours, odd: Tensor, x: int, y: int) -> Tensor:
    """The cells from which particles with a velocity arrive."""
    if y == 0:
        return particles[0, -x // 2]
    # To the left by half a column: the same column in an odd row, the one before in an even.
    before = (0, -1) if x > 0 else (1, 0)
    return torch.where(odd, particles[-y, before[0]], particles[-y, before[1]])


@cache
def collisions(kind: Kind) -> Sequence[int]:
    """The particles of a cell after a collision, for either value of the random bit.

    Sets of particles with the same number and momentum form a class. Each becomes the next of
    its class, or the previous: either way, no two become the same.
    """
    bits = 7 if kind == "III" else 6
    classes: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for there in range(1 << bits):
        flying = [_VELOCITIES[bit] for bit in range(bits) if there >> bit & 1]
        x, y = (sum(v[axis] for v in flying) for axis in (0, 1))
        # FHP-I has two kinds of collisions only, both without momentum.
        alone = (there,) if kind == "I" and (x or y or len(flying) not in (2, 3)) else ()
        classes[(len(flying), x, y, *alone)].append(there)
    table = [0] * (2 << bits)
    for members in classes.values():
        for i, there in enumerate(members):
            table[there] = members[(i + 1) % len(members)]
            table[there | 1 << bits] = members[i - 1]
    return tuple(table)
