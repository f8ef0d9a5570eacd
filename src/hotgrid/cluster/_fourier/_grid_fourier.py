"""`GridFourier`: Fourier transforms of a grid that is split over ranks."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from hotgrid.cluster._block import Block
from hotgrid.cluster._collectives import all_gather
from hotgrid.cluster._communicator import Communicator
from hotgrid.cluster._mesh import Mesh
from hotgrid.errors import ArgumentError

from ._layouts import Stage, stages
from ._redistribute import redistribute


class GridFourier:
    """Fourier transforms over all axes of a grid that is split over ranks.

    Axes are made whole one after the other by exchanging cells between ranks, and transformed
    there: in slabs, or in pencils where a 3-D grid has more ranks than rows. Modes stay
    in the last of these layouts, so that a forward and a backward transform need no more
    exchanges than they must. A line (1-D) is gathered, and every rank has all of its modes.

    All ranks call the same methods. Results differ from `torch.fft` by rounding alone, and
    have gradients.

    Args:
        communicator: The ranks.
        mesh: How they split the grid.
        size: The grid.

    Attributes:
        block: The cells that this rank owns.
        bytes_sent: About how many bytes it has sent so far.

    Raises:
        ArgumentError: Mesh, ranks and grid do not fit.

    Example:
        >>> x = torch.rand(8, 6)
        >>> def there_and_back(c):
        ...     fourier = GridFourier(c, "2x1", (8, 6))
        ...     own = take(x, fourier.block)
        ...     return torch.allclose(fourier.irfft(fourier.rfft(own)), own, atol=1e-6)
        >>> run_ranks(2, there_and_back)
        [True, True]
    """

    def __init__(
        self,
        communicator: Communicator,
        mesh: Mesh | str | int | Sequence[int],
        size: Sequence[int],
    ) -> None:
        self.communicator = communicator
        self.size = tuple(size)
        layout = Mesh(mesh).over(len(self.size))
        layout.check_ranks(communicator.size)
        self._blocks = layout.blocks(self.size)
        self.block: Block = self._blocks[communicator.rank]
        self._half = (*self.size[:-1], self.size[-1] // 2 + 1)
        self.bytes_sent = 0

    def rfft(self, x: Tensor) -> Tensor:
        """The modes of real numbers: the last axis has the first half of them.

        Args:
            x: The own cells, `[..., *block.size]`.

        Returns:
            The own modes, complex `[..., *modes]`, as `wavenumbers` has them.
        """
        if x.is_complex():
            raise ArgumentError(f"`rfft` takes real numbers, got {x.dtype}; use `fft`")
        return self._forward(x, half=True)

    def irfft(self, modes: Tensor, norm: str = "backward") -> Tensor:
        """Real numbers, `[..., *block.size]`, from modes of `rfft`.

        Args:
            modes: The own modes.
            norm: As for `torch.fft`; with "forward" nothing is divided by the number of cells.
        """
        return self._backward(modes, norm, half=True)

    def fft(self, x: Tensor) -> Tensor:
        """All modes of real or complex numbers, `[..., *block.size]`."""
        return self._forward(x, half=False)

    def ifft(self, modes: Tensor, norm: str = "backward") -> Tensor:
        """Complex numbers, `[..., *block.size]`, from modes of `fft`; `norm` as for `irfft`."""
        return self._backward(modes, norm, half=False)

    def wavenumbers(self, *, half: bool = True) -> list[Tensor]:
        """For each axis the wavenumbers of own modes, float64, in radians per cell.

        They broadcast against each other and against modes.

        Args:
            half: Whether for `rfft`; else for `fft`.
        """
        modes = self._half if half else self.size
        blocks = self._plan(half)[-1].blocks(modes)
        own = blocks[0 if self._gathers else self.communicator.rank]
        found = []
        for axis, n in enumerate(self.size):
            last = axis == len(self.size) - 1
            make = torch.fft.rfftfreq if half and last else torch.fft.fftfreq
            waves = 2 * math.pi * make(n, dtype=torch.float64, device=self.communicator.device)
            shape = [-1 if other == axis else 1 for other in range(len(self.size))]
            found.append(waves[own.slices[axis]].reshape(shape))
        return found

    def _plan(self, half: bool) -> tuple[Stage, ...]:
        return stages(self._half if half else self.size, self.communicator.size)

    @property
    def _gathers(self) -> bool:
        """Whether every rank has the whole grid: a line has nothing else to be cut along."""
        return len(self.size) == 1 and self.communicator.size > 1

    def _forward(self, x: Tensor, *, half: bool) -> Tensor:
        axes = len(self.size)
        if self._gathers:
            sizes = [block.size[0] for block in self._blocks]
            self._count(x)
            x = all_gather(x, self.communicator, x.ndim - 1, sizes)
            return torch.fft.rfft(x) if half else torch.fft.fft(x)
        shape, before = self.size, self._blocks
        for stage in self._plan(half):
            x = self._moved(x, before, stage.blocks(shape))
            dims = [axis - axes for axis in stage.axes]
            if half and not x.is_complex():
                x, shape = torch.fft.rfftn(x, dim=dims), self._half
            else:
                x = torch.fft.fftn(x, dim=dims)
            before = stage.blocks(shape)
        return x

    def _backward(self, modes: Tensor, norm: str, *, half: bool) -> Tensor:
        axes = len(self.size)
        if self._gathers:
            n = self.size[0]
            back = torch.fft.irfft if half else torch.fft.ifft
            whole = back(modes, n, norm=norm)
            return whole.narrow(-1, self.block.offset[0], self.block.size[0])
        shape = self._half if half else self.size
        x, plan = modes, self._plan(half)
        before = plan[-1].blocks(shape)
        for stage in reversed(plan):
            x = self._moved(x, before, stage.blocks(shape))
            dims = [axis - axes for axis in stage.axes]
            if half and stage is plan[0]:
                sizes = [self.size[axis] for axis in stage.axes]
                x, shape = torch.fft.irfftn(x, s=sizes, dim=dims, norm=norm), self.size
            else:
                x = torch.fft.ifftn(x, dim=dims, norm=norm)
            before = stage.blocks(shape)
        return self._moved(x, before, self._blocks)

    def _moved(self, x: Tensor, before: Sequence[Block], after: Sequence[Block]) -> Tensor:
        if before != after:
            self._count(x)
        return redistribute(x, self.communicator, before, after)

    def _count(self, x: Tensor) -> None:
        """Count the bytes that leave: of a block all but about the own share."""
        ranks = self.communicator.size
        self.bytes_sent += x.numel() * x.element_size() * (ranks - 1) // ranks
