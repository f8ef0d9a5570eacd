"""Whether a simulation fits into memory, checked before anything is allocated."""

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from hotgrid.config import current
from hotgrid.errors import ArgumentError
from hotgrid.grid.model import Field, Input, Model


@dataclass(frozen=True)
class Need:
    """The most memory that a simulation takes, in bytes.

    Attributes:
        device: Where it runs.
        main: On the CPU, where it runs on another device.
    """

    device: int
    main: int


def check_memory(
    model: Model,
    size: tuple[int, ...],
    device: torch.device,
    storage: torch.dtype,
    batch: int | None,
    mesh: tuple[int, ...] = (),
) -> None:
    """Refuse a grid that cannot fit; of one over a mesh of such a shape, a rank's part.

    Raises:
        ArgumentError: The grid does not fit; the message names its size and batch.
    """
    need = needed(model, size, storage, batch or 1, mesh, on_cpu=device.type == "cpu")
    places = [(need.device, free_memory(device), f"on {device}")]
    if need.main:
        places.append((need.main, free_memory(torch.device("cpu")), "of main memory"))
    limit = current().memory.limit
    for wanted, there, where in places:
        if wanted > limit * there:
            runs = f" with `batch` {batch}" if batch else ""
            floats = any(field.dtype is None for field in model.fields)
            ways = ["`size`", *["`batch`"] * bool(batch and batch > 1)]
            raise ArgumentError(
                f"a grid of {'x'.join(map(str, size))}{runs} needs about {wanted / 1e9:.1f} GB "
                f"{where} (two buffers, a last good state, and a state to begin from or to "
                f"look at), and {limit:.0%} of the free {there / 1e9:.1f} GB may be used; take "
                f"a smaller {' or '.join(ways)}"
                + (" or a narrower `storage`" if floats and storage.itemsize > 2 else "")
            )


def needed(
    model: Model,
    size: tuple[int, ...],
    storage: torch.dtype,
    batch: int,
    mesh: tuple[int, ...] = (),
    *,
    on_cpu: bool,
) -> Need:
    """The memory of a model on a grid, or of a rank's part; within a third if compiled."""
    running = model.fitted(size)
    part = _part(size, mesh)
    one = _bytes(running.fields, _part(running.stored_size(size), mesh), storage)
    seen = _bytes(model.fields, part, storage) * batch
    made = part if model.windowed else size
    fixed = _bytes(model.inputs, made, storage)
    # Observing takes a copy of the state, and splits several components into planes.
    look = seen * (2 if any(field.components > 1 for field in model.fields) else 1)
    begin = model.initial_bytes(made)
    if not on_cpu:
        return Need(3 * one * batch + fixed + look, begin + one + fixed)
    # Padded buffers come with inputs of their own.
    return Need(2 * fixed + 2 * one * batch + max(begin + one, one * batch + look), 0)


def free_memory(device: torch.device) -> int:
    """Bytes that a program can have there, the disk cache counted as free."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        return 1024 * int(text.split("MemAvailable:")[1].split()[0])
    except (OSError, IndexError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")


def _part(size: tuple[int, ...], mesh: tuple[int, ...]) -> tuple[int, ...]:
    """The largest block of a mesh, without margins."""
    parts = (*mesh, *(1,) * (len(size) - len(mesh)))
    return tuple(-(-n // m) for n, m in zip(size, parts, strict=True))


def _bytes(kinds: Iterable[Field | Input], size: tuple[int, ...], storage: torch.dtype) -> int:
    return math.prod(size) * sum(k.components * (k.dtype or storage).itemsize for k in kinds)
