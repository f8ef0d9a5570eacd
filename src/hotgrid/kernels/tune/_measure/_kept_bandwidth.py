"""Copy bandwidths of earlier processes: one small JSON file beside the tuner's winners.

An entry belongs to a host, its processor or GPU, the threads and the torch that measured it.
What was measured elsewhere stays in the file and is not used. A file that cannot be read
counts as empty.
"""

import hashlib
import json
import os
import platform
from pathlib import Path
from typing import Any

import torch

from hotgrid.config import cache_folder, current, logger
from hotgrid.errors import ArgumentError, StoreError
from hotgrid.files import whole_file

from ._stamp import stamp

_FILE = "copy-bandwidth-1.json"


def kept_rate(device: str) -> tuple[float, str] | None:
    """Return the bytes a second and the method that were measured here, if they were."""
    try:
        found = _entries(_path())[_key(device)]
        rate, method = float(found["bytes_per_second"]), str(found["method"])
    except (KeyError, TypeError, ValueError):
        return None
    return (rate, method) if 0 < rate < float("inf") else None


def keep_rate(device: str, rate: float, method: str) -> None:
    """Keep what was measured; where that is not possible, say so in the log."""
    path = _path()
    if path is None:
        return
    entries = _entries(path) | {_key(device): {"bytes_per_second": rate, "method": method}}
    try:
        with whole_file(path) as aside:
            aside.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    except (ArgumentError, StoreError) as problem:
        logger("autotune").warning(
            "the copy bandwidth is not kept: %s; `autotune.cache` sets another folder", problem
        )


def _path() -> Path | None:
    place = current().autotune.cache
    return None if place == "none" else cache_folder(place, "autotune") / _FILE


def _entries(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _key(device: str) -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    parts = [platform.node(), device, str(cores), stamp(("copy",), torch.device(device))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
