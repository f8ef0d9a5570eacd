"""How fast one device copies memory: the limit that grid kernels are measured against."""

import operator
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import SupportsIndex

import torch

from hotgrid import _native
from hotgrid.errors import ArgumentError

from ._kept_bandwidth import keep_rate, kept_rate

_MIB = 2**20
_CPU_BYTES = 256 * _MIB  # at most
_CACHE_MULTIPLE = 2  # of one buffer; both together are four times what the caches hold
_USUAL_CACHE = 32 * _MIB  # where Linux does not say
_CUDA_BYTES = 256 * _MIB
_L2_MULTIPLE = 16  # a copy that L2 could hold would measure L2
_REPEATS = 10
_SMALLEST_BYTES = 16 * _MIB
_MEMORY_SHARE = 8  # two buffers of an eighth leave three quarters to others


@dataclass(frozen=True, kw_only=True)
class Bandwidth:
    """One measured copy bandwidth.

    Attributes:
        device: The device as torch names it, such as `cpu` or `cuda:0`.
        bytes_per_second: Bytes read plus bytes written, per second.
        method: The copy that reached it: `torch`, `native` or `cuda events`.

    Example:
        >>> limit = Bandwidth(device="cpu", bytes_per_second=2e10, method="torch")
        >>> limit.gigabytes_per_second
        20.0
    """

    device: str
    bytes_per_second: float
    method: str

    @property
    def gigabytes_per_second(self) -> float:
        """The same figure in GB/s (1e9 bytes)."""
        return self.bytes_per_second / 1e9


def copy_bandwidth(
    device: torch.device | str | None = None,
    *,
    size_bytes: SupportsIndex | None = None,
    repeats: SupportsIndex = _REPEATS,
    again: bool = False,
) -> Bandwidth:
    """Return how fast a device copies memory; measured once for a machine, then kept.

    This is the hardware limit of hotgrid. A grid kernel that touches every cell
    once cannot go faster than a plain copy of the same bytes, so every "share of
    the hardware limit" is `(bytes read + bytes written) / seconds` divided by this
    figure. A copy of `n` bytes therefore counts `2 n`. The best of `repeats` is
    kept: a limit is what the hardware can do, not what it did while disturbed.

    On a CPU the better of `Tensor.copy_` and the native core's copy is taken. Each of the
    two buffers is twice as large as the last-level caches together, at least 16 and at most
    256 MiB, and less where memory is short. On CUDA it is a copy within the device, timed
    with CUDA events, over at least 16 times the L2 cache.

    With the default size and repeats the result is kept in a file beside the tuner's winners
    (`autotune.cache`), for this host, device, number of threads and version of torch. What is
    measured with other sizes or repeats is remembered until the process ends.

    Args:
        device: `cpu`, `cuda` or `cuda:N`; by default the current CUDA device, or
            the CPU when there is none.
        size_bytes: Size of one of the two buffers; by default chosen as above.
        repeats: How many copies to time.
        again: Measure even if there is a kept figure. The larger of both is kept: a machine
            that was busy the first time copies faster than it was seen to.

    Raises:
        ArgumentError: The device does not exist here or is of another kind,
            `size_bytes` or `repeats` is not a positive int, or two buffers of
            `size_bytes` do not fit into its memory.

    Example:
        >>> copy_bandwidth("cpu", size_bytes=2**20, repeats=3).bytes_per_second > 0
        True
    """
    place = existing(device)
    times = _at_least(1, "repeats", repeats)
    if again:
        _measured.cache_clear()
    if size_bytes is None and times == _REPEATS:
        return _kept_or_measured(place, again)
    if size_bytes is None:
        return _measured(place, None, times)
    size = _at_least(4, "size_bytes", size_bytes)  # one number
    _expect_memory(size, place)
    return _measured(place, size, times)


def kept_bandwidth(device: torch.device | str | None = None) -> Bandwidth | None:
    """Return the earlier result of `copy_bandwidth` on this machine; never measure.

    Args:
        device: As `copy_bandwidth` takes it.

    Raises:
        ArgumentError: The device does not exist here or is of another kind.

    Example:
        >>> known = kept_bandwidth("cpu")
        >>> known is None or known.bytes_per_second > 0
        True
    """
    place = existing(device)
    found = kept_rate(place)
    if found is None:
        return None
    return Bandwidth(device=place, bytes_per_second=found[0], method=found[1])


def _kept_or_measured(device: str, again: bool) -> Bandwidth:
    kept = kept_bandwidth(device)
    if kept is not None and not again:
        return kept
    found = _measured(device, None, _REPEATS)
    if kept is not None and kept.bytes_per_second > found.bytes_per_second:
        return kept
    keep_rate(device, found.bytes_per_second, found.method)
    return found


@cache
def _measured(device: str, size_bytes: int | None, repeats: int) -> Bandwidth:
    if device == "cpu":
        wanted = min(_CACHE_MULTIPLE * _last_level_caches(), _CPU_BYTES)
        return _cpu(size_bytes or _fitting(wanted, _available_memory()), repeats)
    return _cuda(torch.device(device), size_bytes, repeats)


def _cpu(size_bytes: int, repeats: int) -> Bandwidth:
    source = torch.ones(size_bytes // 4, dtype=torch.float32)
    target = torch.zeros_like(source)
    fastest = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        target.copy_(source)
        fastest = min(fastest, time.perf_counter() - start)
    by_torch = 2 * source.nbytes / fastest
    del source, target
    if not _native.available():
        return Bandwidth(device="cpu", bytes_per_second=by_torch, method="torch")
    by_native = _native.core().copy_bandwidth(size_bytes, repeats)
    method = "native" if by_native > by_torch else "torch"
    return Bandwidth(device="cpu", bytes_per_second=max(by_native, by_torch), method=method)


def _cuda(device: torch.device, size_bytes: int | None, repeats: int) -> Bandwidth:
    with torch.cuda.device(device):
        free, _ = torch.cuda.mem_get_info()
        l2 = torch.cuda.get_device_properties(device).L2_cache_size
        size = size_bytes or _fitting(max(_CUDA_BYTES, _L2_MULTIPLE * l2), free)
        source = torch.ones(size // 4, dtype=torch.float32, device=device)
        target = torch.zeros_like(source)
        fastest = float("inf")
        for _ in range(repeats + 2):  # the first ones raise the clock rate
            start = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            start.record()
            target.copy_(source)
            end.record()
            end.synchronize()
            fastest = min(fastest, start.elapsed_time(end) / 1e3)
    rate = 2 * source.nbytes / fastest
    return Bandwidth(device=str(device), bytes_per_second=rate, method="cuda events")


def existing(device: torch.device | str | None) -> str:
    """Return the device with its index, or raise and list the existing ones."""
    here = ["cpu", *(f"cuda:{n}" for n in range(torch.cuda.device_count()))]
    if device is None:
        device = "cuda" if len(here) > 1 else "cpu"
    try:
        asked = torch.device(device)
    except (RuntimeError, TypeError):
        raise _unknown_device(device, here) from None
    if asked.type == "cpu":
        return "cpu"
    if asked == torch.device("cuda") and len(here) > 1:
        return f"cuda:{torch.cuda.current_device()}"
    if str(asked) not in here:
        raise _unknown_device(device, here)
    return str(asked)


def _unknown_device(device: object, here: list[str]) -> ArgumentError:
    return ArgumentError(
        f"`device` is {str(device)!r}; expected one of {', '.join(here)}, "
        "the devices that torch sees here (`hotgrid doctor` shows more)"
    )


def _at_least(smallest: int, argument: str, value: object) -> int:
    try:
        number = operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        number = 0
    if number < smallest or isinstance(value, bool):
        raise ArgumentError(
            f"`{argument}` must be an int of at least {smallest}, got {_shown(value)}"
        )
    return number


def _expect_memory(size_bytes: int, device: str) -> None:
    # Asked before allocating: a CPU may promise memory that it does not have.
    free = _available_memory() if device == "cpu" else _available_cuda_memory(device)
    if 2 * size_bytes > free:
        raise ArgumentError(
            f"`size_bytes` must allow two buffers in the {free} free bytes of "
            f"{device}: give at most {free // 2}, got {_shown(size_bytes)}"
        )


def _shown(value: object) -> str:
    # Python refuses to write an int of more than 4300 digits, except in base 16.
    return hex(value) if isinstance(value, int) and abs(value) >= 2**64 else repr(value)


def _fitting(wanted: int, available: int) -> int:
    return max(min(wanted, available // _MEMORY_SHARE), _SMALLEST_BYTES)


def _available_cuda_memory(device: str) -> int:
    """Bytes that are free on the device, or that torch keeps there without using them."""
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + kept


def _available_memory() -> int:
    """Bytes that can be had without pushing others out, as Linux estimates them."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return _MEMORY_SHARE * _CPU_BYTES
    kib = next((int(line.split()[1]) for line in lines if line.startswith("MemAvailable")), 0)
    return kib * 1024


def _last_level_caches(folder: Path = Path("/sys/devices/system/cpu")) -> int:
    """Bytes of the last-level caches of all processors together, as Linux reports."""
    found: dict[tuple[int, str], int] = {}
    for each in folder.glob("cpu[0-9]*/cache/index[0-9]*"):
        try:
            level = int((each / "level").read_text())
            shared = (each / "shared_cpu_list").read_text()
            kib = (each / "size").read_text().strip().removesuffix("K")
            found[level, shared] = int(kib) * 1024
        except (OSError, ValueError):
            continue
    last = max((level for level, _ in found), default=0)
    return sum(size for (level, _), size in found.items() if level == last) or _USUAL_CACHE
