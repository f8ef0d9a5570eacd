"""Red zones: a compiled kernel runs on copies of its buffers, with margins it must not touch.

The kernel is the very same that runs unchecked. What it changes around its buffers shows in
the margins; what it reads there shows in its results once the margins hold something else.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from hotgrid.errors import KernelError

from ._validation import Faults

# On each side at least this many elements and bytes: four vectors of the widest kind.
_ELEMENTS, _BYTES = 64, 256
_LINE = 64  # bytes; a copy lies in them as the original does
_FILLS = 3


def in_red_zones(
    kernel: str,
    run: Callable[..., object],
    inputs: Mapping[str, Tensor | None],
    outputs: Mapping[str, Tensor],
) -> None:
    """Run a kernel on the CPU between red zones, and raise for what it does to them.

    It runs three times on copies of its buffers, with zeros, then the highest numbers or NaN,
    then the lowest ones around them and in its outputs. A read that does not change any
    result is not seen, and neither is an access further out than the zones.

    Args:
        kernel: Its name, for errors.
        run: Takes all inputs and then all outputs, in their order, of the shapes and strides
            that they are given with; it fills the outputs.
        inputs: What it reads, by name; None is passed on.
        outputs: What it fills, by name.

    Raises:
        KernelError: With the kernel, the buffer and the index, counted in elements from
            the first of the buffer as they lie in memory.

    Example:
        >>> x, y = torch.arange(3.0), torch.empty(3)
        >>> in_red_zones("copy.planted", lambda x, y: y.copy_(x), {"x": x}, {"y": y})
        >>> y
        tensor([0., 1., 2.])
    """
    zoned = [
        _Zoned(name, given, is_output)
        for is_output, group in ((False, inputs), (True, outputs))
        for name, given in group.items()
        if given is not None
    ]
    by_name = {each.name: each.tensor for each in zoned}
    arguments = [by_name.get(name) for name in (*inputs, *outputs)]
    trial = _Trial(kernel, lambda: run(*arguments), zoned)
    first = trial.results(0)
    for fill in range(1, _FILLS):
        if not _equal(first, trial.results(fill)):
            trial.raise_for_read(fill, first)
    for name, given in outputs.items():
        given.copy_(by_name[name])


class _Zoned:
    """A copy of a buffer, between red zones.

    Attributes:
        name: For errors.
        tensor: The buffer, of the shape and strides it was given with.
        length: Its elements in memory, those between its lines counted.
        begin: Where in `memory` it begins.
        is_output: Whether the kernel is to write to it.
        own: Which elements of `memory` belong to it.
        open: The places that hold no number of the caller's, in order.
    """

    def __init__(self, name: str, given: Tensor, is_output: bool) -> None:
        self.name, self.is_output = name, is_output
        step, sizes = given.element_size(), list(zip(given.shape, given.stride(), strict=True))
        self.length = 1 + sum((n - 1) * by for n, by in sizes) if given.numel() else 0
        zone = max(_ELEMENTS, _BYTES // step)
        self.begin = zone + given.data_ptr() % _LINE // step
        places = self.begin + self.length + zone
        self.memory = torch.zeros(places, dtype=given.dtype)
        self.tensor = self.memory.as_strided(given.shape, given.stride(), self.begin)
        at = torch.arange(places).as_strided(given.shape, given.stride(), self.begin)
        self.own = torch.zeros(places, dtype=torch.bool)
        self.own[at.reshape(-1)] = True
        self.open = torch.arange(places) if is_output else (~self.own).nonzero()[:, 0]
        if not is_output:
            self.memory[at.reshape(-1)] = given.reshape(-1)
        self._before = self.memory

    def fill(self, fill: int, count: int) -> None:
        """Put the given fill into the first `count` open places, and zeros into the rest."""
        self.memory[self.open[:count]] = _number(self.memory.dtype, fill)
        self.memory[self.open[count:]] = _number(self.memory.dtype, 0)
        self._before = self.memory.clone()

    def changed(self) -> Tensor:
        """Return the places that the kernel has changed and should not have."""
        differs = (_bits(self.memory) != _bits(self._before)).any(1)
        return (differs & ~self.own if self.is_output else differs).nonzero()[:, 0]


class _Trial:
    """A kernel and its buffers in red zones."""

    def __init__(self, kernel: str, run: Callable[[], object], zoned: Sequence[_Zoned]) -> None:
        self._kernel, self._run, self._zoned = kernel, run, zoned

    def results(self, fill: int, count: int | None = None) -> list[Tensor]:
        """Run with a fill in the first `count` open places of all buffers, or in all."""
        left = sum(len(each.open) for each in self._zoned) if count is None else count
        for each in self._zoned:
            each.fill(fill, left)
            left = max(0, left - len(each.open))
        self._run()
        for each in self._zoned:
            self._expect_unchanged(each)
        return [
            _bits(each.tensor.reshape(-1)).clone() for each in self._zoned if each.is_output
        ]

    def raise_for_read(self, fill: int, first: list[Tensor]) -> None:
        """Raise for the first open place whose number changes the results."""
        same, other = 0, sum(len(each.open) for each in self._zoned)
        if not _equal(first, self.results(fill, same)):
            raise KernelError(
                f"kernel `{self._kernel}` returns different results for the same inputs; its "
                "reads out of bounds cannot be located"
            )
        while other - same > 1:
            middle = (same + other) // 2
            if _equal(first, self.results(fill, middle)):
                same = middle
            else:
                other = middle
        for each in self._zoned:
            if same < len(each.open):
                self._raise_for_read(each, int(each.open[same]))
            same -= len(each.open)

    def _raise_for_read(self, zoned: _Zoned, place: int) -> None:
        index = place - zoned.begin
        if zoned.own[place]:
            raise KernelError(
                f"kernel `{self._kernel}`: buffer `{zoned.name}` at index {index} was read "
                f"before it was written, or never written; its length is {zoned.length}"
            )
        self._raise("read", zoned, 1, index)

    def _expect_unchanged(self, zoned: _Zoned) -> None:
        changed = zoned.changed()
        if not len(changed):
            return
        outside = changed[~zoned.own[changed]]
        if len(outside):
            self._raise("write", zoned, len(outside), int(outside[0]) - zoned.begin)
        raise KernelError(
            f"kernel `{self._kernel}`: write to buffer `{zoned.name}` at index "
            f"{int(changed[0]) - zoned.begin}, which is read-only; its length is "
            f"{zoned.length}"
        )

    def _raise(self, access: str, zoned: _Zoned, count: int, index: int) -> None:
        faults = Faults(self._kernel, {zoned.name: zoned.length}, "cpu")
        faults.record[0, ("read", "write").index(access)] = torch.tensor([count, index])
        faults.expect_none()


def _number(dtype: torch.dtype, fill: int) -> float | int:
    """Nothing, the best and the worst of all: sums and orders tell them apart."""
    if dtype.is_floating_point or dtype.is_complex:
        return (0.0, float("nan"), -float("inf"))[fill]
    if dtype == torch.bool:
        return (0, 1, 0)[fill]
    limits = torch.iinfo(dtype)
    return (0, limits.max, limits.min)[fill]


def _bits(x: Tensor) -> Tensor:
    """The bytes of each element, `[n, bytes]`."""
    return x.contiguous().view(torch.uint8).reshape(-1, x.element_size())


def _equal(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    return all(map(torch.equal, one, other))
