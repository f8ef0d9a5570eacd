"""Work in a forked child, which has none of the threads that torch had in its parent.

The OpenMP library of torch still counts on them: an operation on more than one thread waits for
ever. So there torch gets one thread while a candidate is timed or computes. On ARM, oneDNN has
threads of its own, which are lost as well, so it is not used there.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch

from hotgrid.tensors._torch_private import one_thread, without_onednn

_PROCESS = os.getpid()


def threads_are_lost(device: torch.device) -> bool:
    """Return whether torch would wait for threads that exist in the parent alone."""
    return device.type == "cpu" and os.getpid() != _PROCESS and torch.get_num_threads() > 1


@contextmanager
def without_lost_threads(device: torch.device) -> Iterator[None]:
    """Give torch one thread, and no oneDNN, if the others are lost."""
    if not threads_are_lost(device):
        yield
        return
    with one_thread(), without_onednn():
        yield


def on_one_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs another on one thread of torch, for forked children."""

    @wraps(function)
    def run(*arguments: Any) -> Any:
        with without_lost_threads(torch.device("cpu")):
            return function(*arguments)

    return run
