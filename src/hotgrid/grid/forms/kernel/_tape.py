"""The kernels of a compiled call, recorded while it runs.

A compiled call costs about 100 us on the host: guards, wrappers, checks of shapes that
never change. A kernel on a small grid takes less. So a call runs once while every
kernel in it is recorded with its tensors; the native core then calls those kernels without
torch. This uses private names of torch, which may change: the record is compared with the
call itself, and discarded if it does not do the same.
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from hotgrid.tensors._torch_private import compiled_modules

Launch = tuple[Callable[..., Any], tuple[Any, ...]]
Tape = list[Launch]

_PATCHING = threading.Lock()


def taped(call: Callable[[], object], outs: Sequence[Tensor]) -> Tape:
    """Make a call that is compiled for the CPU already, and note what it launches.

    Arguments:
        call: What is called; it reads nothing that it writes.
        outs: All that it writes.

    Returns:
        The kernels and their arguments; empty where playing them does not do the same.
    """
    tape: Tape = []
    with _noting(tape):
        call()
    wanted = [out.clone() for out in outs]
    for out, right in zip(outs, wanted, strict=True):
        out.copy_(right == 0)
    for kernel, args in tape:
        kernel(*args)
    same = all(same_bits(out, right) for out, right in zip(outs, wanted, strict=True))
    return tape if same else []


@contextmanager
def put_back(outs: Sequence[Tensor]) -> Iterator[None]:
    """Restore tensors afterwards, whatever is written into them meanwhile."""
    kept = [out.clone() for out in outs]
    try:
        yield
    finally:
        for out, x in zip(outs, kept, strict=True):
            out.copy_(x)


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors of one type are the same, down to the sign of zeros."""
    return torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))


def close(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors of one type differ by no more than rounding."""
    if not b.is_floating_point():
        return torch.equal(a, b)
    largest = b.double().nan_to_num(0, 0, 0).abs().max().item()
    most = math.sqrt(torch.finfo(b.dtype).eps) * largest
    return torch.allclose(a.double(), b.double(), rtol=0, atol=most, equal_nan=True)


@contextmanager
def _noting(tape: Tape) -> Iterator[None]:
    me = threading.get_ident()

    def noting(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: object) -> object:
            # Other threads may run compiled code meanwhile.
            if threading.get_ident() == me:
                tape.append((kernel, args))
            return kernel(*args)

        return noted

    with _PATCHING:
        kept = [
            (module, name, kernel)
            for module in _generated_modules()
            for name, kernel in vars(module).items()
            if name.startswith("cpp_fused") and callable(kernel)
        ]
        for module, name, kernel in kept:
            setattr(module, name, noting(kernel))
        try:
            yield
        finally:
            for module, name, kernel in kept:
                setattr(module, name, kernel)


def _generated_modules() -> list[Any]:
    try:
        return compiled_modules()
    except ImportError:
        return []
