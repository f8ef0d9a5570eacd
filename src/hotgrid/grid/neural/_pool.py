"""`SamplePool`: states that a training takes out, runs on and puts back."""

from collections.abc import Mapping

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.model import State


class SamplePool:
    """States of which a training draws some, runs them on, and puts them back.

    So a network learns to hold what it has grown, not only to grow it: most states that it is
    trained on are its own later ones. After Mordvintsev et al. 2020.

    Arguments:
        state: The state that all begin as, `[*space]` or `[components, *space]` for each field.
        count: How many states it holds.
        seed: Seeds the draws.

    Example:
        >>> pool = SamplePool({"cells": torch.zeros(4, 8, 8)}, count=16)
        >>> places, states = pool.draw(2)
        >>> states["cells"].shape
        torch.Size([2, 4, 8, 8])
        >>> pool.put(places, {"cells": states["cells"] + 1})
        >>> pool.states["cells"].sum().item()
        512.0

    Raises:
        ArgumentError: `count` is below one, or more are drawn than there are.
    """

    def __init__(self, state: Mapping[str, Tensor], count: int, seed: int = 0) -> None:
        if count < 1:
            raise ArgumentError(f"`count` must be at least 1, got {count!r}")
        self.states: State = {
            name: x.detach().unsqueeze(0).repeat(count, *[1] * x.ndim)
            for name, x in state.items()
        }
        self.count = count
        self._generator = torch.Generator().manual_seed(seed)

    def draw(self, count: int) -> tuple[Tensor, State]:
        """Some of the states, all different: their places, and a copy of them, batch first."""
        if not 1 <= count <= self.count:
            raise ArgumentError(f"the pool has {self.count} states, {count!r} were drawn")
        places = torch.randperm(self.count, generator=self._generator)[:count]
        return places, {name: x[places.to(x.device)] for name, x in self.states.items()}

    def put(self, places: Tensor, states: Mapping[str, Tensor]) -> None:
        """Put states back, batch first, without their gradients."""
        for name, x in states.items():
            kept = self.states[name]
            kept[places.to(kept.device)] = x.detach().to(kept)
