"""Compressed models in safetensors, read back without compressing again."""

import copy
import json
from os import PathLike
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from hotgrid.errors import ArgumentError, DamagedError

from ._coded import Coded
from ._fit import FORMS
from ._linear import CodebookLinear
from ._replaced import replaced

_KEY = "hotgrid.codebook"
_PARTS = ("codes", "scale", "table", "signs")


def save_compressed(module: nn.Module, path: str | PathLike[str]) -> None:
    """Write a compressed layer or model to one safetensors file.

    It holds the `state_dict`, and in its metadata which layers are codebooks, of what form.

    Args:
        module: What `compress` returned, or a model that holds it.
        path: The file.

    Raises:
        ArgumentError: Nothing in the module is compressed.

    Example:
        >>> layer = compress(torch.nn.Linear(64, 32), form="int8")
        >>> save_compressed(layer, "layer.safetensors")
        >>> again = load_compressed(torch.nn.Linear(64, 32), "layer.safetensors")
        >>> torch.equal(again(torch.ones(1, 64)), layer(torch.ones(1, 64)))
        True
    """
    layers = {
        name: {"form": each.form, "in_features": each.in_features}
        for name, each in module.named_modules()
        if isinstance(each, CodebookLinear)
    }
    if not layers:
        raise ArgumentError(
            f"`module`, a {type(module).__name__}, holds no `CodebookLinear`; "
            "`compress` it first"
        )
    tensors = {name: each.contiguous() for name, each in _distinct(module.state_dict()).items()}
    target = Path(path)
    safetensors.torch.save_file(tensors, target, metadata={_KEY: json.dumps(layers)})


def load_compressed(module: nn.Module, path: str | PathLike[str]) -> nn.Module:
    """Return a module with the layers of a file in place of its linear ones.

    Args:
        module: A model as it was before it was compressed, with any weights; it stays as it
            is. For a file of one layer, any `nn.Linear` will do.
        path: A file that `save_compressed` wrote.

    Returns:
        The compressed model, on the CPU.

    Raises:
        ArgumentError: The layers of the file are not those of the module.
        DamagedError: The file was not written by `save_compressed`, or is not whole.

    Example:
        >>> save_compressed(compress(torch.nn.Linear(64, 32), form="int4"), "layer.safetensors")
        >>> load_compressed(torch.nn.Linear(64, 32), "layer.safetensors").form
        'int4'
    """
    tensors, layers = _read(Path(path))
    made: dict[int, nn.Module] = {}
    for name, about in layers.items():
        prefix = f"{name}." if name else ""
        parts = {part: tensors.get(prefix + part) for part in (*_PARTS, "bias")}
        try:
            made[id(module.get_submodule(name))] = _layer(parts, about)
        except AttributeError:
            raise ArgumentError(
                f"`{path}` has a layer `{name}`, which the given {type(module).__name__} "
                "has not"
            ) from None
    # Exchanged before it is copied: the weights that go need no copy.
    whole = copy.deepcopy(replaced(module, made)).cpu()
    if missing := sorted(whole.state_dict().keys() - _names(tensors, whole)):
        raise ArgumentError(f"`{path}` has no {', '.join(f'`{each}`' for each in missing)}")
    try:
        whole.load_state_dict(tensors, strict=False)
    except RuntimeError as problem:
        raise ArgumentError(f"`{path}` does not fit the given module: {problem}") from problem
    return whole


def _names(tensors: dict[str, Tensor], module: nn.Module) -> set[str]:
    """The names that a file has, and those that share a tensor with one of them."""
    shared = {each.data_ptr() for name, each in module.state_dict().items() if name in tensors}
    return {
        name
        for name, each in module.state_dict().items()
        if name in tensors or (each.numel() and each.data_ptr() in shared)
    }


def _distinct(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors by name, each once: safetensors refuses what is shared."""
    seen: set[tuple[int, torch.Size, torch.dtype]] = set()
    kept = {}
    for name, each in tensors.items():
        key = (each.data_ptr(), each.shape, each.dtype)
        if each.numel() == 0 or key not in seen:
            kept[name] = each
            seen.add(key)
    return kept


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safetensors.safe_open(path, "pt") as opened:
            about = (opened.metadata() or {}).get(_KEY)
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        layers = json.loads(about) if about else None
    except (safetensors.SafetensorError, ValueError) as problem:
        raise DamagedError(f"`{path}` cannot be read: {problem}") from problem
    if not isinstance(layers, dict):
        raise DamagedError(f"`{path}` was not written by `save_compressed`")
    return tensors, layers


def _layer(parts: dict[str, Tensor | None], about: dict[str, Any]) -> CodebookLinear:
    codes, scale = parts["codes"], parts["scale"]
    if codes is None or scale is None or about.get("form") not in FORMS:
        raise DamagedError(f"a layer lacks its codes, its scale or its form: {about}")
    coded = Coded(
        about["form"], about["in_features"], codes, scale, parts["table"], parts["signs"]
    )
    return CodebookLinear(coded, parts["bias"])
