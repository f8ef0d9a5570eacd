"""One call of an op, described for the tuner: its kind, its size, and its least cost."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from hotgrid.config.sections import AutotuneLevel

_BASES: dict[AutotuneLevel, float] = {"minimal": 2.5, "balanced": 2.0, "extensive": 1.5}


@dataclass(frozen=True, kw_only=True)
class Call:
    """The facts of a call that the tuner may use: everything but the numbers in the tensors.

    Attributes:
        op: The name of the op.
        dtype: As torch names it, without the `torch.`.
        device: Where the tensors lie.
        layout: How they are laid out in memory, such as `rows`.
        sizes: Exact sizes by name; in keys they are rounded up to buckets.
        settings: What else changes the work, by name; never rounded.

    Example:
        >>> call = Call(op="scale", dtype="float32", sizes={"n": 1000})
        >>> call.key("balanced"), call.key("full")
        ('scale float32 cpu plain n=1024', 'scale float32 cpu plain n=1000')
    """

    op: str
    dtype: str
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    layout: str = "plain"
    sizes: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)

    def key(self, level: AutotuneLevel) -> str:
        """Return the line under which a winner is remembered."""
        sizes = [f"{name}={bucket(n, level)}" for name, n in self.sizes.items()]
        settings = [f"{name}={value}" for name, value in self.settings.items()]
        start = (self.op, self.dtype, self.device.type, self.layout)
        return " ".join([*start, *sizes, *settings])


def bucket(n: int, level: AutotuneLevel) -> int:
    """Return the size that stands for `n`: the next power of the level's base.

    The base is 2.5 for `minimal`, 2 for `balanced` and 1.5 for `extensive`; `full`
    tells every size apart.

    Example:
        >>> [bucket(n, "balanced") for n in (0, 1, 2, 3, 1000)]
        [0, 1, 2, 4, 1024]
    """
    if level == "full" or n <= 1:
        return n
    base = _BASES[level]
    power = max(0, round(math.log(n, base)) - 1)
    while math.ceil(base**power) < n:
        power += 1
    return math.ceil(base**power)


@dataclass(frozen=True, kw_only=True)
class Work:
    """The least work that a call takes, with any candidate.

    Attributes:
        bytes: Read plus written, each byte once.
        flops: Arithmetic; 0 where memory alone decides.

    Example:
        >>> Work(bytes=8e9).bytes
        8000000000.0
    """

    bytes: float
    flops: float = 0.0
