"""Collisions with a rate of relaxation for each kind of moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hotgrid.grid.lbm._lattice import Lattice
from hotgrid.grid.lbm._moments import combined
from hotgrid.grid.model import Parameter

from ._collision import Collision, stress


@dataclass(frozen=True)
class BGK(Collision):
    """Bhatnagar, Gross and Krook: everything relaxes at one rate.

    Example:
        >>> BGK()
        BGK()
    """

    def relaxed(
        self, lattice: Lattice, h: Sequence[Tensor], density: Tensor, omega: Tensor
    ) -> list[Tensor]:
        """The deviation times `1 - omega`."""
        keep = 1 - omega
        return [keep * plane for plane in h]

    def rates(self, omega: Tensor) -> tuple[Any, Any]:
        """One for both."""
        return omega, omega


@dataclass(frozen=True)
class TRT(Collision):
    """Two relaxation times: even moments carry viscosity, odd ones place the walls.

    Attributes:
        magic: `(1/omega_even - 1/2) (1/omega_odd - 1/2)`. 3/16 puts a bounce-back wall
            exactly half-way between cells for a parabolic flow; 1/4 is the most stable.

    Example:
        >>> TRT(magic=1 / 4).magic
        0.25
    """

    magic: float = 3 / 16

    def __post_init__(self) -> None:
        Parameter(3 / 16, above=0).checked("magic", self.magic)

    def relaxed(
        self, lattice: Lattice, h: Sequence[Tensor], density: Tensor, omega: Tensor
    ) -> list[Tensor]:
        """Even and odd parts of every pair, each at its rate."""
        _, omega_odd = self.rates(omega)
        half_even, half_odd = 0.5 * (1 - omega), 0.5 * (1 - omega_odd)
        found = [(1 - omega) * h[0]] * lattice.count
        for i, o in lattice.pairs:
            even, odd = half_even * (h[i] + h[o]), half_odd * (h[i] - h[o])
            found[i], found[o] = even + odd, even - odd
        return found

    def rates(self, omega: Tensor) -> tuple[Any, Any]:
        """That of the viscosity, and that which the magic number gives."""
        return omega, 1 / (self.magic / (1 / omega - 0.5) + 0.5)


@dataclass(frozen=True)
class MRT(Collision):
    """Many relaxation times: shear, compression and all higher moments apart.

    Moments are orthogonal, after Lallemand and Luo 2000 and d'Humieres 2002. Shear relaxes at
    the rate of the viscosity and odd moments as in `TRT`, which this is if all even moments
    have one rate.

    Attributes:
        bulk: The rate of the trace of the stress, from 0 to 2: `(1 / bulk - 1/2) / 3` is the
            viscosity against compression in 2-D, which damps sound.
        high: The rate of even moments of fourth order, from 0 to 2.
        magic: As in `TRT`: where walls are.

    Example:
        >>> MRT(bulk=1.0).magic
        0.1875
    """

    bulk: float = 1.19
    high: float = 1.4
    magic: float = 3 / 16

    def __post_init__(self) -> None:
        TRT(self.magic)
        for name in ("bulk", "high"):
            Parameter(1.0, above=0, high=2).checked(name, getattr(self, name))

    def relaxed(
        self, lattice: Lattice, h: Sequence[Tensor], density: Tensor, omega: Tensor
    ) -> list[Tensor]:
        """Shear and trace taken out and put back, each at its own rate."""
        pi, rank = stress(lattice, h), lattice.rank
        trace = combined([1] * rank, [pi[a, a] for a in range(rank)])
        scales = _scales(lattice)
        spin = [(self.high - omega) * scale for scale in scales[1:]]
        diagonal = [spin[0] * (pi[a, a] - trace / rank) for a in range(rank)]
        across = {(a, b): spin[1] * plane for (a, b), plane in pi.items() if a != b}
        squeezed = ((self.high - self.bulk) * scales[0]) * trace
        # Where the trace weighs nothing: the mean of squared velocities.
        mean = sum(c * c for v in lattice.velocities for c in v) / lattice.count
        _, omega_odd = TRT(self.magic).rates(omega)
        half_even, half_odd = 0.5 * (1 - self.high), 0.5 * (1 - omega_odd)
        found = [(1 - self.high) * h[0] - mean * squeezed] * lattice.count
        for i, o in lattice.pairs:
            c = lattice.velocities[i]
            even = half_even * (h[i] + h[o]) + (sum(x * x for x in c) - mean) * squeezed
            even = even + combined([x * x for x in c], diagonal)
            if any(c[a] * c[b] for a, b in across):
                even = even + combined([c[a] * c[b] for a, b in across], [*across.values()])
            odd = half_odd * (h[i] - h[o])
            found[i], found[o] = even + odd, even - odd
        return found


def _scales(lattice: Lattice) -> tuple[float, float, float]:
    """One over the squared lengths of trace, of differences of squares, and of products."""
    rank = lattice.rank
    sizes = [sum(c * c for c in v) for v in lattice.velocities]
    mean = sum(sizes) / lattice.count
    trace = sum((n - mean) ** 2 for n in sizes)
    # All along one axis: by symmetry the others have the same.
    pairs = list(zip(lattice.velocities, sizes, strict=True))
    beside = sum((v[0] ** 2 - n / rank) ** 2 for v, n in pairs)
    product = sum((v[0] * v[1]) ** 2 for v in lattice.velocities)
    return 1 / trace, (rank - 1) / (rank * beside), 1 / product


@dataclass(frozen=True)
class Regularized(Collision):
    """Latt and Chopard: only the stress survives, all higher moments are cut off.

    Example:
        >>> Regularized()
        Regularized()
    """

    def relaxed(
        self, lattice: Lattice, h: Sequence[Tensor], density: Tensor, omega: Tensor
    ) -> list[Tensor]:
        """The deviation rebuilt from its stress, times `1 - omega`."""
        pi = stress(lattice, h)
        trace = combined([1] * lattice.rank, [pi[a, a] for a in range(lattice.rank)])
        keep = 4.5 * (1 - omega)
        found = [(-lattice.weights[0] / 3) * (keep * trace)] * lattice.count
        third = trace / 3
        for i, o in lattice.pairs:
            c = lattice.velocities[i]
            signs = [c[a] * c[b] for a, b in pi]
            terms = [plane if a == b else 2 * plane for (a, b), plane in pi.items()]
            found[i] = found[o] = lattice.weights[i] * (keep * (combined(signs, terms) - third))
        return found


@dataclass(frozen=True)
class Smagorinsky(Collision):
    """BGK with eddies too small for the grid as extra viscosity, where the flow shears.

    Attributes:
        constant: Size of the unresolved eddies in cells, 0.1 to 0.17.

    Example:
        >>> Smagorinsky(constant=0.17).constant
        0.17
    """

    constant: float = 0.1

    def __post_init__(self) -> None:
        Parameter(0.1, low=0).checked("constant", self.constant)

    def relaxed(
        self, lattice: Lattice, h: Sequence[Tensor], density: Tensor, omega: Tensor
    ) -> list[Tensor]:
        """The deviation times `1 - omega`, omega lowered by the local stress."""
        squares = [
            plane * plane if a == b else 2 * (plane * plane)
            for (a, b), plane in stress(lattice, h).items()
        ]
        # The tiny number keeps the gradient of the root finite where nothing shears.
        size = torch.sqrt(combined([1] * len(squares), squares) + 1e-30)
        tau = 1 / omega
        eddies = (18 * 2**0.5 * self.constant**2) * (size / density)
        keep = 1 - 2 / (tau + torch.sqrt(tau * tau + eddies))
        return [keep * plane for plane in h]

    def stress_time(self, tau: Tensor, strain: Mapping[tuple[int, int], Tensor]) -> Tensor:
        """The relaxation time with the eddy viscosity, `constant` squared times the shear."""
        squares = [s * s if a == b else 2 * (s * s) for (a, b), s in strain.items()]
        shear = torch.sqrt(2 * combined([1] * len(squares), squares))
        return tau + 3 * self.constant**2 * shear
