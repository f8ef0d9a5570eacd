"""Measurements of this machine for the planner, made once and stored."""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hotgrid.cluster._launch import cores, run_module
from hotgrid.config import cache_folder, current
from hotgrid.errors import ArgumentError
from hotgrid.files import whole_file

from ._machine import Device, Link

_FILE = "calibration.json"
_FORMAT = 1
_SMALL, _LARGE = 4, 4 * 2**20
_PROBE_SECONDS = 180


@dataclass(frozen=True)
class ModelSpeed:
    """How one model runs on this machine.

    Attributes:
        share: The part of a copy's bandwidth that its steps reach on a large grid.
        step_overhead: Seconds that a step costs beside its bytes.

    Example:
        >>> ModelSpeed(share=0.9, step_overhead=1e-5).share
        0.9
    """

    share: float
    step_overhead: float


@dataclass(frozen=True)
class Calibration:
    """The measurements of one machine.

    Attributes:
        date: When, in ISO form.
        machine: Which machine, as text.
        kind: `cpu` or `cuda`.
        cores: Its processor cores.
        memory_bytes: The memory of its device.
        copy_bandwidth: Bytes a second that a copy reads and writes there.
        link: What joins two ranks on it; None where there is only one GPU.
        models: The speeds of models, by name and options.

    Example:
        >>> found = Calibration("2026-01-31", "my desk", "cpu", 8, 32e9, 4e10, None)
        >>> Calibration.from_plain(found.plain()) == found
        True
    """

    date: str
    machine: str
    kind: str
    cores: int
    memory_bytes: float
    copy_bandwidth: float
    link: Link | None
    models: Mapping[str, ModelSpeed] = field(default_factory=dict)

    def device(self, model: str | None = None) -> Device:
        """The whole machine as one device, with the overhead of a model if it was measured."""
        speed = self.models.get(model or "")
        return Device(
            "local",
            self.memory_bytes,
            self.copy_bandwidth,
            step_overhead=speed.step_overhead if speed else 0.0,
            source=f"measured on {self.date}, {self.machine}",
        )

    def with_model(self, name: str, speed: ModelSpeed) -> "Calibration":
        """The same with the speed of one model more."""
        return replace(self, models={**self.models, name: speed})

    def plain(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        return {"format": _FORMAT, **asdict(self)}

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> "Calibration":
        """Read what `plain` gave.

        Raises:
            ArgumentError: It is something else.
        """
        try:
            values = dict(plain)
            if values.pop("format") != _FORMAT:
                raise ValueError
            link = values.pop("link")
            models = values.pop("models")
            return Calibration(
                **values,
                link=Link(**link) if link is not None else None,
                models={name: ModelSpeed(**speed) for name, speed in models.items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ArgumentError(
                "this is not a calibration of this version of hotgrid: measure again with "
                "`hotgrid plan --calibrate`"
            ) from None

    def save(self, path: Path | None = None) -> Path | None:
        """Write it where `load_calibration` finds it.

        Returns:
            The file; None if the settings disable the cache (`autotune.cache` is none).

        Raises:
            ArgumentError: The path cannot be written.
            StoreError: The disk is full or failed.
        """
        path = path or calibration_file()
        if path is None:
            return None
        with whole_file(path) as aside:
            aside.write_text(json.dumps(self.plain(), indent=2) + "\n", encoding="utf-8")
        return path


def calibration_file() -> Path | None:
    """Return where the calibration is stored, beside the winners of the tuner, or None.

    Example:
        >>> calibration_file().name
        'calibration.json'
    """
    place = current().autotune.cache
    return None if place == "none" else cache_folder(place, "plan") / _FILE


def load_calibration(path: Path | None = None) -> Calibration | None:
    """Return what was measured on this machine; None where nothing was.

    Raises:
        ArgumentError: The file is damaged or of another version.

    Example:
        >>> load_calibration(Path("nowhere.json")) is None
        True
    """
    path = path or calibration_file()
    if path is None or not path.is_file():
        return None
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        plain = {}
    try:
        return Calibration.from_plain(plain)
    except ArgumentError as problem:
        raise ArgumentError(f"`{path}`: {problem}") from None


def calibrate(device: str | None = None) -> Calibration:
    """Measure this machine: how fast it copies, and how fast two ranks exchange margins.

    Two processes are started and exchange small and large margins as a run does. The
    speed of models is added by the caller (`Calibration.with_model`).

    Args:
        device: `cpu` or `cuda`; by default the GPU if there is one.

    Raises:
        ArgumentError: There is no such device.
        HotgridError: The two ranks could not be run.

    Example:
        `calibrate("cpu").save()` is what `hotgrid plan --calibrate` does without a model.
    """
    import torch

    from hotgrid.kernels import copy_bandwidth

    measured = copy_bandwidth(device, again=True)
    on_gpu = measured.device != "cpu"
    rate = measured.bytes_per_second
    if on_gpu:
        properties = torch.cuda.get_device_properties(measured.device)
        machine, memory = properties.name, float(properties.total_memory)
    else:
        machine = f"{platform.machine()}, {cores()} cores"
        memory = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    joined = not on_gpu or torch.cuda.device_count() > 1
    return Calibration(
        date=datetime.now(UTC).date().isoformat(),
        machine=machine,
        kind="cuda" if on_gpu else "cpu",
        cores=cores(),
        memory_bytes=memory,
        copy_bandwidth=rate,
        link=_measured_link("cuda" if on_gpu else "cpu", rate) if joined else None,
    )


def _measured_link(kind: str, copy_bandwidth: float) -> Link:
    """Latency from margins of one number, bandwidth from what larger ones take longer.

    Where ranks use all cores, the thread of Gloo and its rank wait for each other in most
    exchanges, until the scheduler switches between them. A run pays for that, so the latency
    is a median. It does not grow with the message, so the bandwidth is from the least times.
    """
    sizes = [str(_SMALL), str(_LARGE)]
    output = run_module(2, f"{__package__}._link_probe", [kind, *sizes], _PROBE_SECONDS)
    (small, usual), (large, _) = json.loads(output.strip().splitlines()[-1])
    # Both messages are packed and unpacked, which the planner counts by itself.
    packing = 2 * 4 * _LARGE / copy_bandwidth
    longer = max(large - small - packing, 0.05 * (large - small), 1e-9)
    return Link(bandwidth=2 * _LARGE / longer, latency=usual)
