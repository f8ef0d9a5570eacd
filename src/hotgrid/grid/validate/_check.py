"""A check: a name, whether it is quick, and a function that gives rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from hotgrid.grid.model import Model
from hotgrid.grid.run import Simulation

from ._row import Row


@dataclass(frozen=True)
class Terms:
    """The settings of a check.

    Attributes:
        quick: Whether to use coarser grids and fewer steps.
        device: Where it runs; None is the GPU if there is one.
    """

    quick: bool
    device: str | None = None

    def simulation(
        self,
        model: Model,
        size: tuple[int, ...],
        *,
        small: bool = False,
        dtype: torch.dtype = torch.float64,
        **options: Any,
    ) -> Simulation:
        """A simulation on the device of this run.

        Arguments:
            model: What is run.
            size: The grid.
            small: So little is run that compiling it would take longer.
            dtype: The floating type.
            options: More arguments of `Simulation`.
        """
        return Simulation(
            model,
            size=size,
            device=self.device,
            dtype=dtype,
            compiled=False if small else None,
            **options,
        )


@dataclass(frozen=True)
class Check:
    """A known result, and how to compute it here.

    Attributes:
        name: What its rows begin with, in lower case and with hyphens; `--only` takes it.
        quick: Whether it belongs to the quick table.
        rows: Computes the rows, one after the other.
        aliases: Other names that `--only` takes.
    """

    name: str
    quick: bool
    rows: Callable[[Terms], Iterator[Row]]
    aliases: tuple[str, ...] = ()
