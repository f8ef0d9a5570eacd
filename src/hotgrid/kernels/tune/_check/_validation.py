"""Checks around a candidate: guarded accesses, finite numbers, the reference beside it."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any

import torch
from torch import Tensor

from hotgrid.config.sections import Kernels
from hotgrid.errors import KernelError
from hotgrid.kernels.tune._op import Candidate, Op

_NONE_YET = torch.iinfo(torch.int64).max


def variant(op: Op, candidate: Candidate, settings: Kernels) -> Callable[..., Any]:
    """Return the function of a candidate as `kernels.check_mode` wants it.

    `auto` is the fast function, or `validate` when Python runs in its development mode
    (`python -X dev`). `enforce` is the guarded one where there is one. `validate` also
    runs the reference beside it, compares, and looks for NaN and Inf that came from nowhere.
    """
    mode = settings.check_mode
    if mode == "auto" and not sys.flags.dev_mode:
        return candidate.function
    guarded = candidate.checked or candidate.function
    return guarded if mode == "enforce" else _validated(op, candidate.name, guarded)


def _validated(op: Op, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any) -> Any:
        found = function(*arguments)
        kernel = f"{op.name}.{name}"
        excerpt = op.excerpt(*arguments)
        if finite(arguments) and not finite((found,)):
            overflow = not finite((op.reference(*excerpt),))
            way_out = (
                "so does the reference: they are too large for their type, scale them"
                if overflow
                else "`kernels.choose` can name another candidate"
            )
            raise KernelError(
                f"kernel `{kernel}` made NaN or Inf out of finite numbers "
                f"({_shown(arguments)}); {way_out}"
            )
        part = found if all(map(is_, excerpt, arguments)) else function(*excerpt)
        difference = op.compare(op.reference(*excerpt), part, *excerpt)
        if difference:
            raise KernelError(
                f"kernel `{kernel}` disagrees with its reference ({_shown(arguments)}): "
                f"{difference}; `kernels.choose` can name another candidate"
            )
        return found

    return run


def finite(values: Sequence[Any]) -> bool:
    """Return whether every number of every floating tensor is finite."""
    return all(
        bool(torch.isfinite(x).all())
        for x in _tensors(values)
        if x.is_floating_point() or x.is_complex()
    )


def _tensors(values: Sequence[Any]) -> Iterator[Tensor]:
    for each in values:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, tuple | list):
            yield from _tensors(each)


def _shown(arguments: Sequence[Any]) -> str:
    return ", ".join(
        f"{str(x.dtype).removeprefix('torch.')} {tuple(x.shape)}"
        if isinstance(x, Tensor)
        else repr(x)
        for x in arguments
    )


class Faults:
    """Where a guarded kernel notes accesses outside of its buffers.

    A guarded kernel gives 0 for a bad read and drops a bad write, and notes both here;
    after it has run, `expect_none` raises. `record` is an int64 tensor of shape
    `[buffers, 2, 2]`: for each buffer, for reads and for writes, how many were bad and the
    smallest bad index. Triton kernels use `guarded_load` and `guarded_store`; for compiled
    ones `in_red_zones` finds it out.

    Args:
        kernel: The name of the kernel, for the error.
        buffers: The names of its buffers and their lengths in elements, in the order of
            the numbers that the kernel has for them.
        device: Where the kernel runs.

    Example:
        >>> faults = Faults("topk.native", {"x": 12, "values": 4}, "cpu")
        >>> faults.expect_none()
    """

    def __init__(
        self, kernel: str, buffers: Mapping[str, int], device: torch.device | str
    ) -> None:
        self.kernel = kernel
        self.buffers = dict(buffers)
        self.record = torch.tensor([[[0, _NONE_YET]] * 2] * len(buffers), device=device)

    def expect_none(self) -> None:
        """Raise for the first buffer that was accessed outside of its bounds.

        Raises:
            KernelError: With the kernel, the buffer, the index and the length.
        """
        noted = self.record.tolist()
        for (name, length), both in zip(self.buffers.items(), noted, strict=True):
            for access, (count, index) in zip(("read", "write"), both, strict=True):
                if count:
                    more = f", and {count - 1} more" if count > 1 else ""
                    raise KernelError(
                        f"kernel `{self.kernel}`: {access} out of bounds in buffer `{name}` "
                        f"at index {index}, its length is {length}{more}"
                    )
