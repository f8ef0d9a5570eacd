"""Tensors and metadata out of safetensors files; nothing else is read."""

import json
from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from hotgrid.errors import ArgumentError, DamagedError

_WHOLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle", ".mpk")


def read_safetensors(
    path: Path, wanted: Callable[[str], bool]
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors whose names are wanted, and the metadata of the first file.

    Args:
        path: A `.safetensors` file, or a folder with `model.safetensors` or with several and
            their index.
        wanted: Whether a name is to be read.

    Raises:
        ArgumentError: There is no such file, or it is of another format.
        DamagedError: A file cannot be read.
    """
    tensors: dict[str, Tensor] = {}
    metadata: dict[str, str] = {}
    for place in _files(path):
        try:
            with safe_open(place, "pt") as file:
                metadata = metadata or file.metadata() or {}
                names = file.keys()
                tensors |= {name: file.get_tensor(name) for name in names if wanted(name)}
        except (SafetensorError, OSError, ValueError) as problem:
            raise DamagedError(f"`{place}` is not a safetensors file: {problem}") from problem
    return tensors, metadata


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        if (path / _WHOLE).is_file():
            return [path / _WHOLE]
        if (path / _INDEX).is_file():
            return _indexed(path / _INDEX)
        raise ArgumentError(f"the folder `{path}` has neither `{_WHOLE}` nor `{_INDEX}`")
    if path.suffix in _PICKLES:
        raise ArgumentError(
            f"`{path}` is refused: reading a {path.suffix} file could run code from it. Ask "
            "for a .safetensors file"
        )
    if path.suffix != ".safetensors":
        raise ArgumentError(f"`{path}` does not end in .safetensors")
    if not path.is_file():
        raise ArgumentError(f"there is no file `{path}`")
    return [path]


def _indexed(index: Path) -> list[Path]:
    try:
        names = set(json.loads(index.read_text("utf-8"))["weight_map"].values())
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        raise DamagedError(f"`{index}` is not an index of weights: {problem!r}") from problem
    outside = [name for name in names if Path(name).name != name]
    if outside:
        raise DamagedError(f"`{index}` names a file outside of its folder: {outside[0]!r}")
    return [index.parent / name for name in sorted(names)]
