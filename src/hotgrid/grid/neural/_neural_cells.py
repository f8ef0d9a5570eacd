"""`NeuralCells`: automata whose rule is a small network that every cell runs."""

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any, Self

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.model import (
    CellVectors,
    Field,
    FieldBoundary,
    State,
    VectorModel,
    next_random,
    random_numbers,
)

from ._cell_network import CellNetwork
from ._fused import FusedForm


class NeuralCells(VectorModel):
    """Cells of many channels that change by what a network makes of what they perceive.

    A step adds `network.change` to cells that fire, which each does with the probability
    `fire`, and then sets those to zero that are not alive. Random numbers are in the state, so
    a run is the same in every form. Derive a class with an `initial` and with views; because
    the rule is data, the form `fused` runs it as one kernel on a GPU.

    Arguments:
        network: The rule.
        fire: The probability that a cell changes in a step.
        alive: The channel that says whether a cell is alive; None if all are.
        threshold: Above which number of that channel it is.
        alive_around: Whether cells beside one above the threshold are alive too.
        boundary: What cells see beyond the edges of the grid; see `Field`.

    Example:
        >>> class Pattern(NeuralCells):
        ...     def initial(self, size, generator):
        ...         return {"cells": torch.rand(16, *size, generator=generator)}
        >>> Pattern(CellNetwork.random(16, 32)).fields[0].components
        16

    Raises:
        ArgumentError: An argument is wrong; the message names it.
    """

    def __init__(
        self,
        network: CellNetwork,
        *,
        fire: float = 1.0,
        alive: int | None = None,
        threshold: float = 0.1,
        alive_around: bool = True,
        boundary: FieldBoundary = "periodic",
        **parameters: float,
    ) -> None:
        super().__init__(**parameters)
        if not isinstance(network, CellNetwork):
            raise ArgumentError(f"`network` must be a CellNetwork, got {network!r}")
        if not 0 < fire <= 1:
            raise ArgumentError(f"`fire` must be above 0 and at most 1, got {fire!r}")
        if alive is not None and not 0 <= alive < network.channels:
            raise ArgumentError(
                f"`alive` must be one of the {network.channels} channels, counted from 0, got "
                f"{alive!r}"
            )
        self._network = network
        self.fire, self.alive, self.threshold = float(fire), alive, float(threshold)
        self.alive_around = alive_around
        cells = Field("cells", components=network.channels, boundary=boundary)
        # Joined as the cells are, so that both can be cut over a mesh.
        random = Field("random", dtype=torch.int32, boundary=_like(cells.boundary))
        self.fields = (cells, random) if fire < 1 else (cells,)

    @property
    def network(self) -> CellNetwork:
        """The rule."""
        return self._network

    def placed(self, device: torch.device, dtype: torch.dtype) -> Self:
        """A copy with the network on a device."""
        twin = copy.copy(self)
        twin._network = self._network.to(device, dtype)
        return twin

    def with_network(self, network: CellNetwork) -> Self:
        """A copy with another rule of the same shape."""
        twin = copy.copy(self)
        twin._network = network
        return twin

    def own_forms(self) -> Sequence[type[Any]]:
        """One kernel for a whole step, on a GPU."""
        return (FusedForm,)

    def vector_step(
        self,
        state: Mapping[str, CellVectors],
        inputs: Mapping[str, CellVectors],
        params: Mapping[str, Tensor],
    ) -> dict[str, Tensor]:
        """Change the cells that fire, and clear those that are not alive."""
        cells = state["cells"]
        change = self._network.change(cells)
        found: dict[str, Tensor] = {}
        if self.fire < 1:
            found["random"] = next_random(state["random"].here)
            change = change * fires(found["random"], self.fire)
        after = cells.here + change
        if self.alive is not None:
            after = after * (self._vigour(cells) > self.threshold)
        return {"cells": after, **found}

    def _vigour(self, cells: CellVectors) -> Tensor:
        """The largest number of the channel `alive` around each cell, `[*space, 1]`."""
        one = slice(self.alive, None if self.alive is None else self.alive + 1)
        reach = (-1, 0, 1) if self.alive_around else (0,)
        seen = [cells[offset][..., one] for offset in product(reach, repeat=2)]
        return reduce(torch.maximum, seen)

    @abstractmethod
    def initial(self, size: tuple[int, ...], generator: torch.Generator) -> State:
        """The cells to start from; `begun` adds random numbers."""

    def begun(self, cells: Tensor, generator: torch.Generator) -> State:
        """A state from cells `[channels, *space]`, with the random numbers that it needs."""
        size = tuple(cells.shape[1:])
        cells = cells.squeeze(0) if len(cells) == 1 else cells
        if self.fire == 1:
            return {"cells": cells}
        return {"cells": cells, "random": random_numbers(size, generator)}


def fires(random: Tensor, probability: float) -> Tensor:
    """Which random numbers, int32, are below a probability; alike in every floating type."""
    return random.to(torch.float32) * 2.0**-32 + 0.5 < probability


def _like(boundary: Any) -> Any:
    """Ends joined alike, and zeros beyond the others."""
    if isinstance(boundary, tuple):
        return tuple(map(_like, boundary))
    return "periodic" if boundary == "periodic" else 0
