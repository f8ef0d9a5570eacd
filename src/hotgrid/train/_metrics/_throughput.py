"""Items a second, and the share of the peak of the device that this needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from hotgrid.errors import ArgumentError

from ._metric import Metric, Seen, Sums, Window

# Dense peaks of the datasheets in TFLOPS, without sparsity: bfloat16 on tensor cores (float16
# where there is no bfloat16), and float32 without TF32. The first name that fits is taken.
_PEAKS = MappingProxyType(
    {
        "GB200": (2500.0, 80.0),
        "B200": (2250.0, 75.0),
        "H200": (989.4, 66.9),
        "GH200": (989.4, 66.9),
        "H100 PCIe": (756.0, 51.0),
        "H100 NVL": (835.0, 60.0),
        "H100": (989.4, 66.9),
        "H800": (989.4, 66.9),
        "A100": (312.0, 19.5),
        "A800": (312.0, 19.5),
        "L40S": (362.05, 91.6),
        "L40": (181.05, 90.5),
        "L4": (121.0, 30.3),
        "A40": (149.7, 37.4),
        "A10G": (70.0, 31.5),
        "A10": (125.0, 31.2),
        "V100": (125.0, 15.7),
        "T4": (65.0, 8.1),
        "RTX 4090": (165.2, 82.6),
        "RTX 3090": (71.0, 35.6),
        "MI300X": (1307.4, 163.4),
        "MI250X": (383.0, 47.9),
    }
)


def peak_flops(device: str, precision: str = "bfloat16") -> float | None:
    """Return the peak of a device in FLOPS, from its datasheet; None if it is not known.

    Args:
        device: Its name, as `torch.cuda.get_device_name()` has it.
        precision: `bfloat16` or `float32`.

    Example:
        >>> peak_flops("NVIDIA H200") / 1e12
        989.4
        >>> peak_flops("some CPU") is None
        True
    """
    words = device.replace("-", " ").split()
    for name, (low, full) in _PEAKS.items():
        parts = name.split()
        if any(words[i : i + len(parts)] == parts for i in range(len(words))):
            return (low if precision == "bfloat16" else full) * 1e12
    return None


@dataclass(frozen=True)
class Throughput(Metric):
    """Items a second, of all ranks together.

    Items are `items` of the step function, else its `count`, else the rows of the batch.

    Example:
        >>> Throughput().value([600.0], Window(seconds=2.0))
        300.0
    """

    name: ClassVar[str] = "items a second"  # pyright: ignore[reportIncompatibleMethodOverride]
    better: ClassVar[Literal["lowest", "highest"] | None] = "highest"

    def sums(self, seen: Seen) -> Sums:
        """Return the items."""
        return (seen.items(),)

    def value(self, sums: Sequence[float], window: Window) -> float | None:
        """Return items a second."""
        return sums[0] / window.seconds if window.seconds > 0 else None


@dataclass(frozen=True)
class ModelFlops(Metric):
    """MFU: the FLOPS that the model needs, as a share of the peak of the devices.

    It is n/a on a device that `peak_flops` does not know.

    Args:
        flops: The FLOPs of one item, forward and backward; about six times the number of
            parameters for a token of a language model. `flops_per_item` counts it.

    Example:
        >>> mfu = ModelFlops(flops=6e9)
        >>> window = Window(seconds=1.0, device="NVIDIA H200", precision="bfloat16")
        >>> f"{mfu.value([80_000.0], window):.1%}"
        '48.5%'
        >>> mfu.value([80_000.0], Window(seconds=1.0)) is None
        True
    """

    flops: float
    name: ClassVar[str] = "MFU"  # pyright: ignore[reportIncompatibleMethodOverride]
    better: ClassVar[Literal["lowest", "highest"] | None] = "highest"

    def __post_init__(self) -> None:
        if not isinstance(self.flops, int | float) or not self.flops > 0:
            raise ArgumentError(f"`flops` is {self.flops!r}; expected a number above 0")

    def sums(self, seen: Seen) -> Sums:
        """Return the items."""
        return (seen.items(),)

    def value(self, sums: Sequence[float], window: Window) -> float | None:
        """Return the share of the peak."""
        peak = peak_flops(window.device, window.precision)
        if peak is None or window.seconds <= 0:
            return None
        return sums[0] * self.flops / window.seconds / (peak * window.ranks)


def flops_per_item(
    loss: Callable[[nn.Module, Any], "Tensor | dict[str, Any]"], module: nn.Module, batch: Any
) -> float:
    """Count the FLOPs of a step function on a batch, forward and backward, for each item.

    Only matrix products, convolutions and attention are counted, as is usual for MFU. The
    gradients of the module are removed.

    Example:
        >>> def loss(module, batch):
        ...     return module(batch).square().mean()
        >>> flops_per_item(loss, torch.nn.Linear(10, 4, bias=False), torch.ones(8, 10))
        160.0
    """
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        found = loss(module, batch)
        outputs: Any = {"loss": found} if isinstance(found, Tensor) else found
        outputs["loss"].backward()
    module.zero_grad(set_to_none=True)
    return counter.get_total_flops() / float(Seen(outputs, batch).items())
