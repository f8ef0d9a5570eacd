"""Partly solid cells, so that a body can change gradually."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.grid.lbm._lattice import Lattice
from hotgrid.grid.lbm._moments import moments
from hotgrid.grid.model import Input

from ._boundary import Boundary, Shape, Site, spread


@dataclass(frozen=True, eq=False)
class Porous(Boundary):
    """Partly solid cells: a share of the incoming populations is reflected (Walsh 2009).

    The rest collides. A share s slows the fluid down as a medium with the permeability
    `(1 - s) / (2 s)` times the viscosity. A share of 1/2 stops it in one step, which suits a
    body; 1 is a solid as `FullWay` makes it, where momentum inside swings on. Drag is a
    smooth function of the shares, so that `rollout` has gradients with respect to the shape of
    a body: give a tensor that requires them.

    Attributes:
        share: The share of every cell that turns round, from 0 to 1: a tensor `[*space]`, or a
            function from the size.

    Example:
        >>> from hotgrid.grid import lbm, rollout
        >>> share = torch.zeros(16, 32)
        >>> share[6:10, 8:12] = 0.5
        >>> stream = lbm.Flow(
        ...     boundaries=[Porous(share.requires_grad_())],
        ...     start=lambda size, _: (1.0, [0.0, 0.05]),
        ... )
        >>> later = rollout(stream, stream.initial((16, 32), torch.Generator()), 10)
        >>> stream.drag(later).backward()
        >>> share.grad.shape
        torch.Size([16, 32])

    Raises:
        ArgumentError: The shares do not have the shape of the grid, or are not from 0 to 1.
    """

    share: Shape
    obstacle: ClassVar[bool] = True
    marks: ClassVar[bool] = False
    quiet_elsewhere: ClassVar[bool] = True

    def cells(self, size: tuple[int, ...]) -> Tensor:
        """The cells that are wholly solid."""
        return self._shares(size) >= 1

    def _shares(self, size: tuple[int, ...]) -> Tensor:
        found = spread(self.share, size, "share")
        low, high = (float(end) for end in found.detach().aminmax())
        if not 0 <= low <= high <= 1:
            raise ArgumentError(
                f"`share` is the solid part of every cell, from 0 to 1, got {low:g} to {high:g}"
            )
        return found

    def inputs(self, lattice: Lattice) -> tuple[Input, ...]:
        """The share of every cell."""
        return (Input("share", quiet_at_zero=True),)

    def static(self, lattice: Lattice, size: tuple[int, ...]) -> dict[str, Tensor]:
        """The share of every cell."""
        return {"share": self._shares(size)}

    def select(self, site: Site, pulled: Sequence[Tensor]) -> list[Tensor]:
        """Nothing is replaced: populations stream in and out."""
        return list(pulled)

    def settle(
        self, site: Site, pulled: Sequence[Tensor], collided: Sequence[Tensor]
    ) -> list[Tensor]:
        """A share is reflected, the rest collides."""
        share = site.own("share")
        back = [pulled[o] for o in site.lattice.opposite]
        return [x + share * (b - x) for x, b in zip(collided, back, strict=True)]

    def links(self, lattice: Lattice, size: tuple[int, ...], device: torch.device | str) -> Any:
        """The share of every cell."""
        return self._shares(size).to(device)

    def force(
        self, lattice: Lattice, f: Tensor, links: Any, numbers: Mapping[str, float]
    ) -> list[Tensor]:
        """Twice the momentum that comes into the solid share in the next step."""
        axes = tuple(range(lattice.rank))
        pulled = [torch.roll(x, c, axes) for x, c in zip(f, lattice.velocities, strict=True)]
        return [2 * (links * m).double().sum() for m in moments(lattice, pulled)[1]]
