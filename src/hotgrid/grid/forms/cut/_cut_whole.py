"""The whole grid as a phase sees it where the grid is split over ranks."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from hotgrid.cluster import Communicator, GridFourier, Mesh, all_reduce
from hotgrid.grid.model import Whole


class CutWhole(Whole):
    """Transforms by `GridFourier`, sums by `all_reduce`; every rank calls the same methods.

    Arguments:
        communicator: The ranks.
        mesh: How they split the grid.
        size: The grid.
        fuse: As for `Whole`.
    """

    def __init__(
        self,
        communicator: Communicator,
        mesh: Mesh,
        size: Sequence[int],
        fuse: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
    ) -> None:
        super().__init__(size, communicator.device, fuse)
        self._communicator = communicator
        self.fourier = GridFourier(communicator, mesh, size)

    def rfft(self, x: Tensor) -> Tensor:
        """This rank's modes of real numbers."""
        return self._counted(self.fourier.rfft(x), half=True)

    def irfft(self, modes: Tensor, norm: str = "backward") -> Tensor:
        """This rank's cells from the modes of `rfft`."""
        return self.fourier.irfft(self._counted(modes, half=True), norm)

    def fft(self, x: Tensor) -> Tensor:
        """All of this rank's modes of real or complex numbers."""
        return self._counted(self.fourier.fft(x))

    def ifft(self, modes: Tensor, norm: str = "backward") -> Tensor:
        """This rank's cells from the modes of `fft`."""
        return self.fourier.ifft(self._counted(modes), norm)

    def wavenumbers(self, *, half: bool = True) -> list[Tensor]:
        """The wavenumbers of this rank's modes."""
        return self.fourier.wavenumbers(half=half)

    def sum(self, x: Tensor) -> Tensor:
        """The sum over the cells of all ranks."""
        return all_reduce(super().sum(x), self._communicator)

    def max(self, x: Tensor) -> Tensor:
        """The largest number over the cells of all ranks."""
        return all_reduce(super().max(x), self._communicator, "max")
