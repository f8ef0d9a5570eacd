"""Files of weights; those from outside are read without running code in them."""

import pickle
import struct
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from hotgrid.cluster import Communicator, SingleRank
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.files import whole_file

from ._entries import Entries, Selector

# The errors of torch.load for bytes that torch.save did not write.
_BROKEN = (
    EOFError,
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    OSError,
    struct.error,
    zipfile.BadZipFile,
)


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file by name: safetensors, or a file of `torch.save`.

    Raises:
        ArgumentError: There is no such file, or it holds something else than tensors.
        DamagedError: It cannot be read.
    """
    # Caches of downloads are full of links, so links are followed, but only to files.
    if not path.is_file():
        raise ArgumentError(f"there is no file `{path}`")
    if path.suffix == ".safetensors":
        try:
            return load_file(path)
        except (SafetensorError, *_BROKEN) as problem:
            raise DamagedError(f"`{path}` is not a safetensors file: {problem}") from problem
    try:
        # Only the current format can be mapped into memory.
        mapped = zipfile.is_zipfile(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as of versions of pickle, before an error
            data = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except pickle.UnpicklingError as problem:
        raise DamagedError(
            f"`{path}` was not read: it is damaged, or holds more than tensors, and loading "
            f"that could run code. Ask for a safetensors file. torch says: {_brief(problem)}"
        ) from problem
    except _BROKEN as problem:
        raise DamagedError(f"`{path}` cannot be read: {_brief(problem)}") from problem
    return expect_tensors(data, f"`{path}`")


def expect_tensors(data: Any, place: str) -> dict[str, Tensor]:
    """Return the data if it is a table of tensors."""
    if not isinstance(data, Mapping):
        raise ArgumentError(
            f"{place} is a {type(data).__name__}; expected names and tensors, as "
            "`module.state_dict()` has them"
        )
    wrong = [str(name) for name, value in data.items() if not isinstance(value, Tensor)]
    if wrong:
        inner = [str(name) for name, value in data.items() if isinstance(value, Mapping)]
        hint = f"; one of {', '.join(map(repr, inner))} may be what you want" if inner else ""
        raise ArgumentError(
            f"{place} holds more than tensors: {', '.join(wrong[:8])}{hint}. Pick the table "
            'of weights: `load_partial(module, torch.load(path, weights_only=True)["..."])`'
        )
    return {str(name): value for name, value in data.items()}


def save_weights(
    module: nn.Module,
    path: str | Path,
    *,
    only: Selector | None = None,
    skip: Selector | None = None,
    ranks: Communicator | None = None,
) -> list[str]:
    """Write parameters and buffers of a module to a safetensors file, atomically.

    Names are those of the module without wrappers. A shared parameter is written once. Of a
    sharded module all ranks call this, and the first one writes whole tensors.

    Args:
        module: The module, wrapped or not.
        path: The file; its name must end in `.safetensors`.
        only: A selector of the tensors to write; by default all.
        skip: A selector of the tensors to leave out.
        ranks: The ranks that hold the module; the first one writes.

    Returns:
        The names in the file.

    Raises:
        ArgumentError: The path cannot be written, or a selector selects nothing.

    Example:
        >>> layer = torch.nn.Linear(2, 3)
        >>> save_weights(layer, "layer.safetensors")
        ['weight', 'bias']
    """
    path = Path(path)
    if path.suffix != ".safetensors":
        raise ArgumentError(f"cannot write `{path}`: the name must end in `.safetensors`")
    entries = Entries(module)
    names = entries.chosen(only, skip)
    writes = (ranks or SingleRank()).rank == 0
    tensors = {}
    for name in names:
        tensor = entries.tensors[name].detach()
        if tensor.is_meta:
            raise ArgumentError(f"`{name}` is on the meta device and has no values to save")
        whole = getattr(tensor, "full_tensor", lambda tensor=tensor: tensor)()
        if writes:
            # The format has no views into a larger tensor.
            tensors[name] = whole.cpu().clone(memory_format=torch.contiguous_format)
    if writes:
        with whole_file(path) as aside:
            save_file(tensors, aside, metadata={"format": "pt"})
    return names


def _brief(problem: Exception) -> str:
    return str(problem).partition("\n")[0][:300] or type(problem).__name__
