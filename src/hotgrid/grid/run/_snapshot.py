"""One file for a state: safetensors, written atomically."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from hotgrid.errors import ArgumentError, StoreError
from hotgrid.files import whole_file
from hotgrid.grid.model import State

_FORMAT = "hotgrid state 1"


def digest(tensors: Mapping[str, Tensor]) -> str:
    """A digest of a set of tensors."""
    found = hashlib.blake2b(digest_size=16)
    for name, x in sorted(tensors.items()):
        found.update(f"{name} {x.dtype} {tuple(x.shape)} ".encode())
        found.update(x.cpu().contiguous().view(torch.uint8).numpy().data)
    return found.hexdigest()


def write_snapshot(path: Path, state: State, identity: Mapping[str, str], steps: int) -> Path:
    """Write a state; the name gets a suffix if it has none."""
    path = snapshot_path(path)
    notes = {**identity, "format": _FORMAT, "steps": str(steps), "digest": digest(state)}
    try:
        with whole_file(path) as aside:
            save_file(state, aside, metadata=notes)
    except SafetensorError as problem:
        # The file could be made, so it is the disk that failed.
        raise StoreError(f"cannot write `{path}`: {problem}") from None
    return path


def read_snapshot(path: Path, identity: Mapping[str, str]) -> tuple[State, int]:
    """The state and the step count of a file that belongs to this model and grid."""
    path = snapshot_path(path)
    try:
        with safe_open(path, framework="pt") as file:
            notes = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise ArgumentError(f"there is no file `{path}`") from None
    except (OSError, SafetensorError) as problem:
        raise ArgumentError(f"`{path}` is damaged or no saved state: {problem}") from None
    if notes.get("format") != _FORMAT:
        raise ArgumentError(f"`{path}` is not a state that hotgrid saved")
    expect_identity(path, notes, identity)
    if notes.get("digest") != digest(state):
        raise ArgumentError(
            f"`{path}` is damaged: its numbers are not those that were saved; continue from an "
            "earlier file"
        )
    return state, int(notes["steps"])


def expect_identity(path: Path, found: Mapping[str, str], identity: Mapping[str, str]) -> None:
    """Refuse what another model, grid or type has saved."""
    for key, value in identity.items():
        if found.get(key) != value:
            raise ArgumentError(
                f"`{path}` was saved by another simulation: its {key}: {found.get(key)}, here "
                f"{value}"
            )


def snapshot_path(path: Path) -> Path:
    if not path.name:
        raise ArgumentError(f"`path` must end in the name of a file, got `{path}`")
    return path if path.suffix else path.with_suffix(".safetensors")
