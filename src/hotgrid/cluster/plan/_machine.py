"""Devices and links to plan with: what is known of them, and how they are written."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hotgrid.errors import ArgumentError, near

_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BYTES = {f"{prefix}B": factor for prefix, factor in _PREFIXES.items()}
_BYTES |= {f"{p}iB": 1024.0**power for power, p in enumerate("KMGTP", start=1)}
_RATES = {f"{unit}/s": factor for unit, factor in _BYTES.items()}
# Networks are sold by the bit.
_RATES |= {f"{prefix}b/s": factor / 8 for prefix, factor in _PREFIXES.items() if prefix}
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_QUANTITY = re.compile(r"([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*(\S*)")

# What a copy reaches of the bandwidth in the datasheet: measured on the H200.
_COPY_OF_DATASHEET = 7 / 8
# A step of a small grid from Python, on the H200: 22,000 a second.
_HOST_TIME = 45e-6
_KERNEL_GAP = 5e-6
MOST_DEVICES = 1_000_000


def _expect_above_zero(name: str, value: float) -> None:
    if not value > 0:
        raise ArgumentError(f"`{name}` must be above 0, got {value!r}")


def _expect_not_negative(name: str, value: float) -> None:
    if not value >= 0:
        raise ArgumentError(f"`{name}` must be 0 or more, got {value!r}")


@dataclass(frozen=True)
class Device:
    """One device of a cluster.

    Attributes:
        name: What it is called.
        memory_bytes: Its memory.
        bandwidth: Bytes a second that a plain copy reads and writes together.
        step_overhead: Seconds that every step costs on top of its bytes.
        host_time: Seconds the host needs to launch a step; hidden by longer steps.
        source: Where the figures are from.

    Raises:
        ArgumentError: Memory or bandwidth is not above 0, or a time is negative.

    Example:
        >>> Device("mine", memory_bytes=80e9, bandwidth=3e12).shared(2).bandwidth
        1500000000000.0
    """

    name: str
    memory_bytes: float
    bandwidth: float
    step_overhead: float = 0.0
    host_time: float = 0.0
    source: str = "as given"

    def __post_init__(self) -> None:
        _expect_above_zero("memory_bytes", self.memory_bytes)
        _expect_above_zero("bandwidth", self.bandwidth)
        _expect_not_negative("step_overhead", self.step_overhead)
        _expect_not_negative("host_time", self.host_time)

    def shared(self, ranks: int) -> "Device":
        """The part of it that each of several ranks has when they run on it together."""
        return replace(
            self, memory_bytes=self.memory_bytes / ranks, bandwidth=self.bandwidth / ranks
        )


@dataclass(frozen=True)
class Link:
    """The connection of a device to the others.

    Attributes:
        bandwidth: Bytes a second that can leave a device; as many can come in meanwhile.
        latency: Seconds from sending an empty message until it has arrived.

    Raises:
        ArgumentError: The bandwidth is not above 0, or the latency is negative.

    Example:
        >>> Link(bandwidth=450e9, latency=3e-6).latency
        3e-06
    """

    bandwidth: float
    latency: float

    def __post_init__(self) -> None:
        _expect_above_zero("bandwidth", self.bandwidth)
        _expect_not_negative("latency", self.latency)


def _gpu(name: str, gigabytes: float, terabytes_per_second: float) -> Device:
    return Device(
        name,
        memory_bytes=gigabytes * 1e9,
        bandwidth=terabytes_per_second * 1e12 * _COPY_OF_DATASHEET,
        step_overhead=_KERNEL_GAP,
        host_time=_HOST_TIME,
        source=f"datasheet, {terabytes_per_second:g} TB/s; a copy is taken to reach 7/8 of it, "
        "as it does on the H200",
    )


_KNOWN = {
    each.name: each
    for each in (
        replace(_gpu("H200", 141, 4.8), source="datasheet; copy bandwidth measured by hotgrid"),
        _gpu("B200", 180, 8.0),
        _gpu("H100", 80, 3.35),
        _gpu("H100-PCIe", 80, 2.0),
        _gpu("A100", 80, 2.039),
        _gpu("A100-40GB", 40, 1.555),
        _gpu("MI300X", 192, 5.3),
        _gpu("L40S", 48, 0.864),
        _gpu("RTX4090", 24, 1.008),
        _gpu("V100", 32, 0.9),
    )
}


def known_devices() -> dict[str, Device]:
    """Return the devices that can be named, by name.

    Memory and bandwidth are those of the public datasheets. Only the H200 was measured:
    a copy reaches 4.2 of its 4.8 TB/s. The others are taken to reach the same share.

    Example:
        >>> known_devices()["H200"].bandwidth / 1e12
        4.2
    """
    return dict(_KNOWN)


def parse_devices(text: str, known: Mapping[str, Device] | None = None) -> tuple[int, Device]:
    """Read how many devices of which kind: `64xH200` or `64x(80GB,3TB/s)`.

    Args:
        text: A count, `x`, and a name or memory and copy bandwidth in parentheses. Without
            a count it is one.
        known: The devices that can be named; by default `known_devices()`.

    Raises:
        ArgumentError: It is not written so, there is no such device, or there are more than
            1,000,000.

    Example:
        >>> count, device = parse_devices("64x(80GB,3TB/s)")
        >>> count, device.memory_bytes, device.bandwidth
        (64, 80000000000.0, 3000000000000.0)
    """
    found = re.fullmatch(r"\s*(?:(\d+)\s*x\s*)?([^\s].*?)\s*", text)
    if found is None or found[1] == "0" * len(found[1] or "-"):
        raise ArgumentError(
            f"`{text}` must be a count and a device, such as `64xH200`, `64x(80GB,3TB/s)` or "
            "`2xlocal`"
        )
    # Counted in digits first: Python reads no number of more than 4,300 of them.
    digits = (found[1] or "1").lstrip("0")
    if len(digits) > len(str(MOST_DEVICES)) or int(digits) > MOST_DEVICES:
        raise ArgumentError(
            f"`{text[:60]}` is more than can be planned; use at most {MOST_DEVICES:,} devices"
        )
    count, name = int(digits), found[2]
    if name.startswith("("):
        return count, _described(name)
    if name.isdecimal():
        count = min(max(1, int(name[:7])), MOST_DEVICES)
        raise ArgumentError(
            f"`{text[:60]}` is a count without a device; write which device, such as "
            f"`{count}xH200`, or `{count}xlocal` for machines like this one"
        )
    table = known_devices() if known is None else known
    names = {each.lower(): each for each in table}
    if name.lower() in names:
        return count, table[names[name.lower()]]
    hint = near(name, table, f"; did you mean `{count}x{{}}`?")
    raise ArgumentError(
        f"the device `{name}` in `{text}` is not known{hint} (known are {', '.join(table)}; "
        f"`{count}xlocal` is a machine like this one; any other is written "
        f"`{count}x(80GB,3TB/s)`, its memory and copy bandwidth)"
    )


def _described(text: str) -> Device:
    parts = text[1:].removesuffix(")").split(",")
    if len(parts) != 2 or not text.endswith(")"):
        raise ArgumentError(
            f"`{text}` must be memory and copy bandwidth in parentheses, such as `(80GB,3TB/s)`"
        )
    memory = _quantity(parts[0], _BYTES, "memory", "80GB")
    bandwidth = _quantity(parts[1], _RATES, "copy bandwidth", "3TB/s")
    return Device(text, memory, bandwidth, _KERNEL_GAP, _HOST_TIME)


def parse_link(text: str) -> Link:
    """Read a link: the bandwidth out of a device and the latency, `450GB/s,3us`.

    Bits are written with a small b: `400Gb/s` is `50GB/s`.

    Raises:
        ArgumentError: It is not written so.

    Example:
        >>> parse_link("400Gb/s,5us")
        Link(bandwidth=50000000000.0, latency=5e-06)
    """
    parts = text.split(",")
    if len(parts) != 2:
        raise ArgumentError(
            f"`{text}` must be bandwidth and latency, such as `450GB/s,3us` (the NVLink of "
            "an H200) or `400Gb/s,5us` (a network card)"
        )
    return Link(
        _quantity(parts[0], _RATES, "bandwidth", "450GB/s"),
        _quantity(parts[1], _TIMES, "latency", "3us", zero=True),
    )


def _quantity(
    text: str, units: Mapping[str, float], what: str, example: str, *, zero: bool = False
) -> float:
    found = _QUANTITY.fullmatch(text.strip())
    if found is None:
        raise ArgumentError(
            f"the {what} `{text.strip()}` must be a number and a unit: `{example}`"
        )
    number, unit = float(found[1]), found[2]
    if unit not in units:
        alike = [f"`{found[1]}{each}`" for each in units if each.lower() == unit.lower()]
        hint = (
            f"; did you mean {' or '.join(alike)}?"
            if alike
            else near(unit, units, f"; did you mean `{found[1]}{{}}`?")
        )
        raise ArgumentError(
            f"the {what} `{text.strip()}` has the unknown unit `{unit}`{hint} "
            f"(write it like `{example}`)"
        )
    if not math.isfinite(number):
        raise ArgumentError(f"the {what} `{text.strip()}` must be finite")
    if number == 0 and not zero:
        raise ArgumentError(f"the {what} `{text.strip()}` must be above 0")
    factor = units[unit]
    # Divided, 5us is the same float as 5e-6.
    return number * factor if factor >= 1 else number / round(1 / factor)
