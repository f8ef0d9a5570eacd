"""Reading a checkpoint: everything is checked before the first tensor is touched."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from safetensors import safe_open

from hotgrid.errors import DamagedError, HotgridError
from hotgrid.files import regular_stat

from ._manifest import FileRecord, Manifest, read_manifest
from ._places import step_folder
from ._shard import Region, Spec, Straight, blocks_of, check_blocks, checked_places, dtype_of
from ._wanted import Target, targets

if TYPE_CHECKING:
    from torch import Tensor

    from ._wanted import Wanted


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint.

    Attributes:
        step: The step it was saved under.
        tensors: The tensors by name; those that were given to be filled are the given ones.
        extra: What was saved beside them.

    Example:
        >>> Checkpoint(step=7, tensors={"u": torch.zeros(2)}, extra={"seed": 1}).step
        7
    """

    step: int
    tensors: dict[str, Tensor]
    extra: dict[str, Any]


# Smaller tensors are not worth looking for in every block.
_LEAST_DIRECT = 1 << 20


class _Copy(NamedTuple):
    """The requested part of a piece in a file."""

    name: str
    piece: Region
    part: Region


class Reading:
    """A checkpoint whose requested parts were checked. Nothing is loaded yet.

    Raises:
        DamagedError: Something is not what was written.
        StoreError: The version of the format is unknown.
        ArgumentError: A name is unknown, or a part or a tensor does not match.
    """

    def __init__(
        self, folder: Path, step: int, wanted: Wanted | None, *, verify: bool, early: bool
    ) -> None:
        self._folder = step_folder(folder, step)
        self._manifest = read_manifest(self._folder, step)
        self._targets = targets(self._manifest.tensors, wanted)
        self._copies: dict[Path, list[_Copy]] = {}
        self._early = early
        found: list[tuple[FileRecord, dict[str, range]]] = []
        for file in self._manifest.files:
            copies = _wanted_of(file, self._targets)
            if copies:
                path = self._folder / file.name
                self._copies[path] = copies
                found.append((file, _check_file(path, file, self._manifest.tensors)))
        # Memory is allocated once all sizes are verified.
        self._tensors = {name: self._place(name) for name in self._targets}
        for file, places in found if verify else ():
            self._verify(self._folder / file.name, file, places)

    def _place(self, name: str) -> Tensor:
        import torch

        region, into = self._targets[name]
        dtype = dtype_of(self._manifest.tensors[name].dtype)
        return torch.empty(region.shape, dtype=dtype, device="cpu") if into is None else into

    def _verify(self, path: Path, file: FileRecord, places: Mapping[str, range]) -> None:
        copies = self._copies[path]
        block = self._manifest.block
        header = min(place.start for place in places.values())
        blocks = {*blocks_of(0, header, block)}
        for name, piece, part in copies:
            first, last = _span(piece, part)
            width = len(places[name]) // piece.cells
            start = places[name].start
            blocks |= {*blocks_of(start + first * width, start + (last + 1) * width, block)}
        direct = {copy: there for copy in copies if (there := self._direct(copy)) is not None}
        filling = Straight([(places[copy.name], there) for copy, there in direct.items()])
        with _readable(path):
            check_blocks(path, file.sums, block, blocks, filling if direct else None)
        self._copies[path] = [copy for copy in copies if copy not in direct]

    def _direct(self, copy: _Copy) -> Tensor | None:
        """The bytes to fill with a piece while it is checked, or None if that cannot be."""
        import torch

        name, piece, part = copy
        region, into = self._targets[name]
        if into is not None and (not self._early or into.is_inference()):
            return None
        there = self._tensors[name].detach()[part.within(region)]
        if piece != part or there.nbytes < _LEAST_DIRECT or not there.is_contiguous():
            return None
        return there.reshape(-1).view(torch.uint8)

    def load(self) -> Checkpoint:
        """Fill the tensors that are not filled yet."""
        import torch

        tensors = self._tensors
        for path, copies in self._copies.items():
            if not copies:
                continue
            # The library would make its tensors on the default device.
            here = torch.device("cpu")
            with here, torch.no_grad(), _readable(path), safe_open(path, "pt") as file:
                for name, piece, part in copies:
                    there = tensors[name][part.within(self._targets[name].region)]
                    saved = file.get_slice(name)
                    there.copy_(saved[part.within(piece)] if piece.shape else saved[...])
        return Checkpoint(self._manifest.step, tensors, dict(self._manifest.extra))


def check_step(folder: Path, step: int, *, contents: bool) -> Manifest:
    """Check the manifest and that every file exists; with `contents`, every byte.

    Raises:
        DamagedError: Something is not what was written.
        StoreError: The version of the format is unknown.
    """
    place = step_folder(folder, step)
    manifest = read_manifest(place, step)
    for file in manifest.files:
        path = place / file.name
        _check_size(path, file)
        if contents:
            _check_file(path, file, manifest.tensors)
            with _readable(path):
                check_blocks(path, file.sums, manifest.block, range(len(file.sums)))
    return manifest


def _wanted_of(file: FileRecord, wanted: Mapping[str, Target]) -> list[_Copy]:
    copies: list[_Copy] = []
    for name, piece in file.pieces.items():
        part = piece.overlap(wanted[name].region) if name in wanted else None
        if part:
            copies.append(_Copy(name, piece, part))
    return copies


def _span(piece: Region, part: Region) -> tuple[int, int]:
    """The first and the last element of a part, counted through its piece row by row."""
    first = last = 0
    for dim, size in enumerate(piece.shape):
        start = part.offset[dim] - piece.offset[dim]
        first = first * size + start
        last = last * size + start + part.shape[dim] - 1
    return first, last


def _check_file(path: Path, file: FileRecord, tensors: Mapping[str, Spec]) -> dict[str, range]:
    """Check size and header; return the offset of each tensor in the file."""
    _check_size(path, file)
    expected = {name: Spec(tensors[name].dtype, r.shape) for name, r in file.pieces.items()}
    with _readable(path):
        return checked_places(path, expected)


def _check_size(path: Path, file: FileRecord) -> None:
    with _readable(path):
        found = regular_stat(path)
    if found.st_size != file.size:
        raise DamagedError(
            f"`{path}` is damaged: it has {found.st_size} bytes, and {file.size} were written"
        )


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except HotgridError:
        raise
    except FileNotFoundError:
        raise DamagedError(f"`{path}` is missing: the checkpoint is not whole") from None
    except OSError as problem:
        raise DamagedError(
            f"`{path}` cannot be read: {problem.strerror or problem}"
        ) from problem
