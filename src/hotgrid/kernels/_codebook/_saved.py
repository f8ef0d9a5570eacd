"""Compressed models in safetensors, read back without compressing again."""

import copy
import json
import zlib
from os import PathLike
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from hotgrid.errors import ArgumentError, DamagedError, StoreError
from hotgrid.files import whole_file

from ._coded import PARTS, Coded
from ._learn._fit import FORMS
from ._linear import CodebookLinear
from ._replaced import in_place_of, replaced

_KEY, _SUMS = "hotgrid.codebook", "hotgrid.checksums"


def save_compressed(module: nn.Module, path: str | PathLike[str]) -> None:
    """Write a compressed layer or model to one safetensors file.

    It holds the `state_dict`, and in its metadata which layers are codebooks, of what form,
    and a checksum of each tensor. It is written atomically.

    Args:
        module: What `compress` returned, or a model that holds it.
        path: The file.

    Raises:
        ArgumentError: Nothing in the module is compressed, it is not a module, or the path
            cannot be written.
        StoreError: The disk is full or failed.

    Example:
        >>> layer = compress(torch.nn.Linear(64, 32), form="int8")
        >>> save_compressed(layer, "layer.safetensors")
        >>> again = load_compressed(torch.nn.Linear(64, 32), "layer.safetensors")
        >>> torch.equal(again(torch.ones(1, 64)), layer(torch.ones(1, 64)))
        True
    """
    _expect_module(module)
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
    about = json.dumps(layers)
    sums = json.dumps(_checksums(about, tensors))
    try:
        with whole_file(Path(path)) as aside:
            safetensors.torch.save_file(tensors, aside, metadata={_KEY: about, _SUMS: sums})
    except safetensors.SafetensorError as problem:
        raise StoreError(f"cannot write `{path}`: {problem}") from None


def load_compressed(module: nn.Module, path: str | PathLike[str]) -> nn.Module:
    """Return a module with the layers of a file in place of its linear ones.

    Args:
        module: A model as it was before it was compressed, with any weights; it stays as it
            is. For a file of one layer, an `nn.Linear` of its shape.
        path: A file that `save_compressed` wrote.

    Returns:
        The compressed model, on the CPU.

    Raises:
        ArgumentError: The layers of the file are not those of the module, by name, shape
            or bias, or other tensors are not.
        DamagedError: The file was not written by `save_compressed`, or was changed.
        StoreError: The file cannot be read.

    Example:
        >>> save_compressed(compress(torch.nn.Linear(64, 32), form="int4"), "layer.safetensors")
        >>> load_compressed(torch.nn.Linear(64, 32), "layer.safetensors").form
        'int4'
    """
    _expect_module(module)
    tensors, layers = _read(Path(path))
    made: dict[int, nn.Module] = {}
    for name, about in layers.items():
        prefix = f"{name}." if name else ""
        parts = {part: tensors.get(prefix + part) for part in (*PARTS, "bias")}
        try:
            there = module.get_submodule(name)
        except AttributeError:
            raise ArgumentError(
                f"`{path}` has a layer `{name}`, which the given {type(module).__name__} "
                "does not have"
            ) from None
        found = _layer(f"`{path}`, layer `{name}`", parts, about)
        if _described(found) != _described(there):
            raise ArgumentError(
                f"`{path}` has {_described(found)} as layer `{name}`, the given "
                f"{type(module).__name__} {_described(there)}"
            )
        made[id(there)] = in_place_of(there, found)
    # Replace before copying: replaced weights need no copy.
    whole = copy.deepcopy(replaced(module, made)).cpu()
    if missing := sorted(whole.state_dict().keys() - _names(tensors, whole)):
        raise ArgumentError(f"`{path}` has no {', '.join(f'`{each}`' for each in missing)}")
    if unknown := sorted(tensors.keys() - whole.state_dict().keys()):
        raise ArgumentError(
            f"`{path}` has {', '.join(f'`{each}`' for each in unknown)}, which the given "
            f"{type(module).__name__} does not have"
        )
    try:
        whole.load_state_dict(tensors, strict=False)
    except RuntimeError as problem:
        raise ArgumentError(f"`{path}` does not match the given module: {problem}") from problem
    return whole


def _expect_module(module: object) -> None:
    if not isinstance(module, nn.Module):
        raise ArgumentError(f"`module` must be a torch module, got {type(module).__name__}")


def _described(layer: nn.Module) -> str:
    if not isinstance(layer, nn.Linear | CodebookLinear):
        return f"a {type(layer).__name__}"
    bias = "without" if layer.bias is None else "with"
    return f"a linear layer {layer.in_features} -> {layer.out_features} {bias} a bias"


def _names(tensors: dict[str, Tensor], module: nn.Module) -> set[str]:
    """The names in a file, and those that share a tensor with one of them."""
    shared = {each.data_ptr() for name, each in module.state_dict().items() if name in tensors}
    return {
        name
        for name, each in module.state_dict().items()
        if name in tensors or (each.numel() and each.data_ptr() in shared)
    }


def _distinct(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors by name, each once: safetensors refuses shared ones."""
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
        with safetensors.safe_open(path, "pt", device="cpu") as opened:
            metadata = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        about, sums = metadata.get(_KEY), metadata.get(_SUMS)
        layers = json.loads(about) if about else None
        # Files of earlier versions have none.
        expected = json.loads(sums) if sums is not None else None
    # RecursionError: deeply nested brackets.
    except (safetensors.SafetensorError, ValueError, RecursionError) as problem:
        raise DamagedError(f"`{path}` cannot be read: {problem}") from problem
    except OSError as problem:
        raise StoreError(f"cannot read `{path}`: {problem.strerror or problem}") from None
    if not isinstance(layers, dict):
        raise DamagedError(f"`{path}` was not written by `save_compressed`")
    if expected is not None:
        _expect_checksums(path, expected, _checksums(str(about), tensors))
    return tensors, layers


def _checksums(about: str, tensors: dict[str, Tensor]) -> dict[str, int]:
    """CRC-32 of each tensor with its type and shape, and of the metadata of the layers."""
    sums = {}
    for name, each in tensors.items():
        start = zlib.crc32(f"{each.dtype} {tuple(each.shape)}".encode())
        its = each.detach().cpu().reshape(-1).view(torch.uint8).numpy()
        sums[f"tensor {name}"] = zlib.crc32(its.data, start)
    return {"about": zlib.crc32(about.encode()), **sums}


def _expect_checksums(path: Path, expected: Any, found: dict[str, int]) -> None:
    known = expected if isinstance(expected, dict) else {}
    wrong = [
        name for name in sorted(known.keys() | found) if known.get(name) != found.get(name)
    ]
    if wrong:
        raise DamagedError(
            f"`{path}` is damaged: the checksum of {', '.join(wrong[:4])} does not match"
        )


def _layer(shown: str, parts: dict[str, Tensor | None], about: Any) -> CodebookLinear:
    codes, scale = parts["codes"], parts["scale"]
    known = about if isinstance(about, dict) else {}
    cols = known.get("in_features")
    if (
        codes is None
        or scale is None
        or known.get("form") not in FORMS
        or type(cols) is not int
    ):
        raise DamagedError(f"{shown}: it lacks its codes, its scale or its form: {about}")
    coded = Coded(known["form"], cols, codes, scale, parts["table"], parts["signs"])
    if fault := coded.fault():
        raise DamagedError(f"{shown}: {fault}")
    # Whatever device and type new tensors have by default.
    with torch.device("cpu"):
        made = CodebookLinear(coded, parts["bias"])
    made.measured_error = torch.zeros((), dtype=torch.float32, device="cpu")
    return made
