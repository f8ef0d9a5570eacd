"""The native core, with long jobs on the threads of torch's OpenMP library.

Threads of torch's OpenMP library look for more work for a while after each operation, and so
do those of the core: side by side they are in each other's way, and threads that have just
worked begin sooner than those that sleep. Nothing is linked: the library is found in the
process, and the core gets the addresses of two of its functions. Short jobs stay on the core's
own threads, which start faster. Where there is no such library, after a fork, and with
`HOTGRID_POOL=own`, all do; with `HOTGRID_POOL=openmp` none.
"""

import ctypes
import os
from functools import cache
from types import ModuleType

import torch

from hotgrid import _native
from hotgrid.config import logger
from hotgrid.tensors._torch_private import TORCH_LIBRARY

_FUNCTIONS = ("GOMP_parallel", "omp_get_thread_num")
_CHOICES = ("own", "openmp")
_PROCESS = os.getpid()  # a child may not use threads that its parent has started
_LONG = 4 << 20  # bytes that a job reads in some hundred microseconds


@cache
def core() -> ModuleType:
    """The native module, which by then knows torch's threads.

    Raises:
        MissingPartError: The core is not built, does not load, or is switched off.
    """
    found = _native.core()
    wanted = os.environ.get("HOTGRID_POOL", "")
    if wanted not in ("", *_CHOICES):
        logger("kernels").warning(
            "`HOTGRID_POOL` is %r; expected %s: it is ignored",
            wanted,
            " or ".join(map(repr, _CHOICES)),
        )
    addresses = _addresses() if wanted != "own" and os.getpid() == _PROCESS else None
    if addresses is not None:
        found.lend_team(*addresses, 0 if wanted == "openmp" else _LONG)
    return found


def _addresses() -> tuple[int, ...] | None:
    # In the order in which the loader binds torch itself: what the whole process sees comes
    # first, such as a library that was preloaded, and then what torch was linked against.
    if torch.backends.openmp.is_available():
        for library in (None, TORCH_LIBRARY):
            try:
                functions = [getattr(ctypes.CDLL(library), name) for name in _FUNCTIONS]
            except (AttributeError, OSError):
                continue
            return tuple(ctypes.cast(each, ctypes.c_void_p).value or 0 for each in functions)
    return None
