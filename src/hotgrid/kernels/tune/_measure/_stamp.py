"""The machine and versions that a winner depends on; with another stamp it is found again."""

import hashlib
import os
import platform
from functools import cache
from pathlib import Path

import torch

from hotgrid import _native
from hotgrid._version import __version__
from hotgrid.tensors._torch_private import cuda_driver_version

# How a trial is made: results of another method are not used.
_MANNER = "3: normal numbers, quartiles, outside of modes"


def stamp(candidates: tuple[str, ...], device: torch.device) -> str:
    """Return a short digest of the candidates, hotgrid, torch, the driver and the device."""
    parts = [*candidates, _MANNER, __version__, torch.__version__, *_machine(device)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _machine(device: torch.device) -> tuple[str, ...]:
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        return _cuda(index)
    return (*_processor(), str(torch.get_num_threads()), str(_native.available()))


@cache
def _cuda(index: int) -> tuple[str, ...]:
    found = torch.cuda.get_device_properties(index)
    memory = f"{found.total_memory}"
    return (found.name, memory, str(torch.version.cuda), str(cuda_driver_version()))


@cache
def _processor() -> tuple[str, ...]:
    words = ("model name", "CPU implementer", "CPU part", "flags", "Features")
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    known = sorted({line for line in lines if line.startswith(words)})
    return (platform.machine(), platform.processor(), str(os.cpu_count()), *known)
