"""Probes of torch, the devices it sees and how fast they copy."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from hotgrid.cli._hidden import hidden_package

from ._finding import Finding, not_seen
from ._machine_probes import installed_version

TORCH_RANGE = ">=2.11,<2.14"  # as in pyproject.toml; tests/cli compares the two
_FROM, _BELOW = (
    tuple(map(int, part.split("."))) for part in re.findall(r"[\d.]+", TORCH_RANGE)
)
_INSTALL = f'pip install "torch{TORCH_RANGE}"'


def torch_build() -> Iterator[Finding]:
    """Yield the version of torch, what it was built for, and whether Triton is installed."""
    try:
        import torch
    except Exception as error:  # noqa: BLE001  a broken install can raise anything
        hidden = hidden_package() or ("", _INSTALL)
        yield Finding(
            "torch",
            "version",
            "does not import",
            state="broken",
            detail=f"{type(error).__name__}: {error}" + f"; {hidden[0]}" * bool(hidden[0]),
            way_out=hidden[1],
        )
        return
    yield version_finding(torch.__version__)
    cuda, hip = torch.version.cuda, torch.version.hip
    build = f"CUDA {cuda}" if cuda else f"ROCm {hip}" if hip else "CPU only"
    yield Finding("torch", "build", build)
    yield _triton(torch)


def version_finding(version: str) -> Finding:
    """Compare a version of torch with the range that hotgrid is tested with."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if _FROM <= numbers < _BELOW:
        return Finding("torch", "version", version)
    return Finding(
        "torch",
        "version",
        version,
        state="broken",
        detail=f"hotgrid is made for torch {TORCH_RANGE}",
        way_out=_INSTALL,
    )


def _triton(torch: ModuleType) -> Finding:
    version = installed_version("triton")
    if version:
        return Finding("torch", "triton", version)
    if not torch.cuda.is_available():
        return Finding("torch", "triton", "not installed; only a GPU needs it")
    return Finding(
        "torch",
        "triton",
        "not installed",
        state="note",
        detail="models cannot be compiled for the GPU and run several times slower",
        way_out="pip install triton",
    )


def _torch() -> ModuleType | None:
    """Torch, or None where it does not import; `torch_build` alone reports that."""
    try:
        import torch
    except Exception:  # noqa: BLE001  a broken install can raise anything
        return None
    return torch


def devices() -> Iterator[Finding]:
    """Yield the CPU and every GPU that torch sees."""
    torch = _torch()
    if torch is None:
        return
    yield Finding("devices", "cpu", f"{torch.get_num_threads()} torch threads")
    if not torch.cuda.is_available():
        yield _no_gpu(torch)
        return
    driver = _driver()
    for index in range(torch.cuda.device_count()):
        yield _gpu(torch, index, driver)


def _no_gpu(torch: ModuleType) -> Finding:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not (torch.version.cuda or torch.version.hip):
        way_out = "on a machine with a GPU, install a CUDA build of torch"
    elif visible is not None:
        way_out = f"CUDA_VISIBLE_DEVICES={visible!r} may hide one; unset it"
    else:
        way_out = "check that `nvidia-smi` works and its driver is new enough for this torch"
    detail = "everything runs on the CPU"
    return Finding("devices", "gpu", "none", state="note", detail=detail, way_out=way_out)


def _gpu(torch: ModuleType, index: int, driver: str) -> Finding:
    device = f"cuda:{index}"
    chip = torch.cuda.get_device_properties(index)
    value = f"{chip.name}, {chip.total_memory / 2**30:.0f} GiB"
    try:
        # A build without code for this chip fails only when something runs.
        torch.ones(2, device=device).sum().item()
    except RuntimeError as error:
        return Finding(
            "devices",
            device,
            value,
            state="broken",
            detail=str(error).splitlines()[0],
            way_out="install a torch build made for this GPU and its driver",
        )
    detail = f"capability {chip.major}.{chip.minor}, driver {driver}"
    return Finding("devices", device, value, detail=detail)


def _driver() -> str:
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return "unknown"
    found = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", text)
    return found[1] if found else "unknown"


def bandwidth() -> Iterator[Finding]:
    """Yield the measured copy bandwidth of every device."""
    torch = _torch()
    if torch is None:
        return
    from hotgrid.kernels import copy_bandwidth

    for device in ["cpu", *(f"cuda:{n}" for n in range(torch.cuda.device_count()))]:
        try:
            measured = copy_bandwidth(device)
        except Exception as error:  # noqa: BLE001  no threads or no memory; the next may work
            yield not_seen("bandwidth", device, error)
            continue
        value = f"{measured.gigabytes_per_second:,.1f} GB/s"
        detail = f"copy, read plus write, measured with {measured.method}"
        yield Finding("bandwidth", device, value, detail=detail)
