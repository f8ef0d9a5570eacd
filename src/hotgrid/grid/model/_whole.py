"""`Whole`: the whole grid, as a phase sees it. On a mesh a subclass does the same."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

Made = TypeVar("Made")


class Whole:
    """Operations of a phase on whole fields: Fourier transforms and sums over the grid.

    All methods take tensors `[..., *space]` of own cells, with any leading dims, and work over
    the dims of space. The same code runs on one device and on a mesh, where a rank has its
    part of the cells and of the modes.

    Arguments:
        size: The grid.
        device: Where its fields are.
        fuse: Compiles a function; None where nothing is compiled.

    Attributes:
        transforms: How many transforms were made so far, for the planner.
        transformed: Bytes of their modes; of `rfft` as many as of cells.

    Example:
        >>> whole = Whole((4, 6))
        >>> u = torch.rand(4, 6)
        >>> torch.allclose(whole.irfft(whole.rfft(u)), u, atol=1e-6)
        True
        >>> [tuple(k.shape) for k in whole.wavenumbers()]
        [(4, 1), (1, 4)]
        >>> tuple(whole.sum(u).shape)
        (1, 1)
    """

    def __init__(
        self,
        size: Sequence[int],
        device: torch.device | str = "cpu",
        fuse: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
    ) -> None:
        self.size = tuple(size)
        self.device = torch.device(device)
        self._fuse = fuse
        self.transforms = 0
        self.transformed = 0
        self._tables: dict[Any, tuple[list[tuple[Tensor, int]], Any]] = {}

    @property
    def rank(self) -> int:
        """The number of space dims."""
        return len(self.size)

    @property
    def dims(self) -> tuple[int, ...]:
        """The dims of space of any field, counted from the end."""
        return tuple(range(-self.rank, 0))

    def rfft(self, x: Tensor) -> Tensor:
        """The modes of real numbers, complex; the last dim has the first half of them."""
        # Without a dim before those of space, modes on a GPU are transposed in memory.
        return self._counted(torch.fft.rfftn(x[None], dim=self.dims)[0], half=True)

    def irfft(self, modes: Tensor, norm: str = "backward") -> Tensor:
        """Real numbers from the modes of `rfft`.

        Arguments:
            modes: The modes.
            norm: As for `torch.fft`. With "forward" nothing is divided by the number of cells:
                where a coefficient does that, a GPU is spared a pass over the grid.
        """
        modes = self._counted(modes, half=True)
        return torch.fft.irfftn(modes, s=self.size, dim=self.dims, norm=norm)

    def fft(self, x: Tensor) -> Tensor:
        """All modes of real or complex numbers."""
        return self._counted(torch.fft.fftn(x, dim=self.dims))

    def ifft(self, modes: Tensor, norm: str = "backward") -> Tensor:
        """Complex numbers from the modes of `fft`; `norm` as for `irfft`."""
        return torch.fft.ifftn(self._counted(modes), dim=self.dims, norm=norm)

    def wavenumbers(self, *, half: bool = True) -> list[Tensor]:
        """For each dim the wavenumbers of the own modes, float64, in radians per cell.

        They broadcast against each other and against modes.

        Arguments:
            half: Whether for `rfft`; else for `fft`.
        """
        found = []
        for axis, n in enumerate(self.size):
            make = torch.fft.rfftfreq if half and axis == self.rank - 1 else torch.fft.fftfreq
            waves = 2 * math.pi * make(n, dtype=torch.float64, device=self.device)
            found.append(waves.reshape([-1 if a == axis else 1 for a in range(self.rank)]))
        return found

    def sum(self, x: Tensor) -> Tensor:
        """The sum over the grid, with dims of one in place of space."""
        return x.sum(self.dims, keepdim=True)

    def mean(self, x: Tensor) -> Tensor:
        """The mean over the grid, with dims of one in place of space."""
        return self.sum(x) / math.prod(self.size)

    def max(self, x: Tensor) -> Tensor:
        """The largest number of the grid, with dims of one in place of space."""
        return x.amax(self.dims, keepdim=True)

    def table(self, make: Callable[..., Made], *params: Tensor) -> Made:
        """`make(whole, *params)`, made again only if a parameter has changed.

        For coefficients that depend on wavenumbers and parameters. With gradients to a
        parameter they are made each time.

        Arguments:
            make: A pure function; a method of the model, or a function of a module.
            params: The parameters that it depends on, as the phase was given them.
        """
        if torch.is_grad_enabled() and any(x.requires_grad for x in params):
            return make(self, *params)
        if any(x.is_inference() for x in params):
            return make(self, *params)
        # Changing a parameter writes into its tensor, which counts the version.
        seen, value = self._tables.get(make, ([], None))
        now = [(x, x._version) for x in params]
        same = len(seen) == len(now) and all(
            a is b and old == new for (a, old), (b, new) in zip(seen, now, strict=True)
        )
        if same and value is not None:
            return value
        made = make(self, *params)
        self._tables[make] = (now, made)
        return made

    def fused(self, function: Callable[..., Any], planes: int = 1) -> Callable[..., Tensor]:
        """The same function compiled, if steps are; keep it in a `table`.

        For elementwise work between transforms: all of it in one function reads and writes the
        grid once. Tensors are its only arguments, one after the other; torch does not compile
        complex numbers, so pass `torch.view_as_real` of them.

        Arguments:
            function: Returns a tensor; with several planes a tuple of them.
            planes: How many, each shaped as the first argument. They come back as one tensor
                `[planes, ...]`, to be transformed together.
        """
        if planes == 1:
            return function if self._fuse is None else self._fuse(function)
        if self._fuse is None:
            return lambda *given: torch.stack(function(*given))

        def write(outs: Sequence[Tensor], *given: Tensor) -> None:
            for out, plane in zip(outs, function(*given), strict=True):
                out.copy_(plane)

        # A compiled `torch.stack` would read everything again for each plane.
        writing = self._fuse(write)

        def stacked(*given: Tensor) -> Tensor:
            made = given[0].new_empty((planes, *given[0].shape))
            writing(list(made.unbind(0)), *given)
            return made

        return stacked

    def _counted(self, modes: Tensor, *, half: bool = False) -> Tensor:
        planes = math.prod(modes.shape[: modes.ndim - self.rank])
        each = modes.element_size() // 2 if half else modes.element_size()
        self.transforms += 1
        self.transformed += planes * math.prod(self.size) * each
        return modes
