"""One file for a state: safetensors, written atomically."""

import hashlib
import itertools
import json
import math
from ast import literal_eval
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from hotgrid.cluster import Block
from hotgrid.errors import ArgumentError, StoreError
from hotgrid.files import whole_file
from hotgrid.grid.model import State

SOLID = "solid cells"
"""Painted cells in a saved state; no field has a name with a blank."""

_FORMAT = "hotgrid state 1"
# Cells of a grid whose inputs are made at once.
_AT_ONCE = 1 << 22


def digest(tensors: Mapping[str, Tensor]) -> str:
    """A digest of a set of tensors."""
    found = hashlib.blake2b(digest_size=16)
    for name, x in sorted(tensors.items()):
        found.update(f"{name} {x.dtype} {tuple(x.shape)} ".encode())
        found.update(x.cpu().contiguous().view(torch.uint8).numpy().data)
    return found.hexdigest()


def digest_of_parts(
    own: Mapping[str, Tensor], size: tuple[int, ...], part: Callable[[Block], State]
) -> str:
    """The digest of tensors `[components, *size]` of which only a box is made at a time.

    Arguments:
        own: Some box of each tensor, by name.
        size: The whole grid.
        part: From a box to the tensors there.
    """
    found = hashlib.blake2b(digest_size=16)
    rows = max(1, _AT_ONCE // math.prod(size[1:]))
    boxes = [
        Block((at, *(0 for _ in size[1:])), (min(rows, size[0] - at), *size[1:]), size)
        for at in range(0, size[0], rows)
    ]
    for name, x in sorted(own.items()):
        found.update(f"{name} {x.dtype} {(len(x), *size)} ".encode())
        for component, box in itertools.product(range(len(x)), boxes):
            some = part(box)[name][component]
            found.update(some.cpu().contiguous().view(torch.uint8).numpy().data)
    return found.hexdigest()


def write_snapshot(
    path: Path,
    state: State,
    identity: Mapping[str, str],
    steps: int,
    changes: Mapping[str, str],
) -> Path:
    """Write a state; the name gets a suffix if it has none."""
    path = snapshot_path(path)
    notes = {**identity, "format": _FORMAT, "steps": str(steps), "digest": digest(state)}
    if changes:
        notes["changes"] = json.dumps(changes)
    try:
        with whole_file(path) as aside:
            save_file(state, aside, metadata=notes)
    except SafetensorError as problem:
        # The file could be made, so it is the disk that failed.
        raise StoreError(f"cannot write `{path}`: {problem}") from None
    return path


def read_snapshot(path: Path, identity: Mapping[str, str]) -> tuple[State, int, dict[str, str]]:
    """State, step count and changes of parameters of a file of this model and grid."""
    path = snapshot_path(path)
    try:
        with safe_open(path, framework="pt") as file:
            notes = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise ArgumentError(f"there is no file `{path}`") from None
    except (OSError, SafetensorError) as problem:
        raise ArgumentError(f"`{path}` is damaged or not a saved state: {problem}") from None
    if notes.get("format") != _FORMAT:
        raise ArgumentError(f"`{path}` is not a state that hotgrid saved")
    expect_identity(path, notes, identity)
    if notes.get("digest") != digest(state):
        raise ArgumentError(
            f"`{path}` is damaged: its numbers are not those that were saved; continue from an "
            "earlier file"
        )
    return state, int(notes["steps"]), changes_in(path, notes.get("changes", "{}"))


def saved_parameters(path: Path) -> dict[str, float]:
    """The parameters at the start of a saved run; empty where the file does not say them."""
    try:
        with safe_open(snapshot_path(path), framework="pt") as file:
            return dict(literal_eval((file.metadata() or {})["parameters"]))
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, SyntaxError):
        return {}


def changes_in(path: Path, text: str) -> dict[str, str]:
    """The changes of parameters that were saved with a state."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(x, str) for x in found.values()):
        raise ArgumentError(f"`{path}` is damaged: its changes of parameters are {text!r}")
    return found


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
