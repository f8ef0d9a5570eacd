"""Weights of models, from files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from hotgrid.errors import ArgumentError, DamagedError, StoreError, near

from ._model import VisionModel

# A checkpoint of a training script has its weights under one of these.
_INSIDE = ("state_dict", "model", "model_state_dict")


def load_weights(model: VisionModel, path: Path, *, new_head: bool = False) -> None:
    """Fill a model with the weights of a file.

    Args:
        model: The model; it keeps its device and dtype.
        path: The file, `.safetensors` or of `torch.save`; the latter is read without running
            code.
        new_head: Whether the model keeps its own head if that has other classes.

    Raises:
        ArgumentError: The weights are those of another model.
        StoreError: The file cannot be read.
    """
    weights = model.renamed(_read(path))
    wanted = model.state_dict()
    head = {f"{model.head_name}.{part}" for part in ("weight", "bias")}
    _fit_head(model, weights, path, new_head=new_head)
    _fit_first(model, weights)
    for name, weight in weights.items():
        if name in wanted and weight.shape != wanted[name].shape:
            weights[name] = model.resized(name, weight, wanted[name])
    missing = [name for name in wanted if name not in weights and name not in head]
    # Counted by BatchNorm; files of old versions of torch have none.
    missing = [name for name in missing if not name.endswith("num_batches_tracked")]
    extra = [name for name in weights if name not in wanted]
    if missing or extra:
        raise _mismatch(model, path, missing, extra)
    for name, weight in weights.items():
        if weight.shape != wanted[name].shape:
            raise ArgumentError(
                f"`{name}` has the shape {list(weight.shape)} in `{path}` and "
                f"{list(wanted[name].shape)} in `{model.config.name}`; is it the file of "
                "another model, or of another `image_size`?"
            )
    model.load_state_dict(weights, strict=False)


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise StoreError(
            f"there is no file `{path}`; `pretrained` is the path of a file of weights"
        )
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        given: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as problem:  # noqa: BLE001 - pickle raises what it likes for other files
        reason = f"{type(problem).__name__} {problem}"
        raise DamagedError(f"`{path}` is not a file of weights: {reason}") from None
    for key in _INSIDE:
        if isinstance(given, Mapping) and isinstance(given.get(key), Mapping):
            given = given[key]
    if not isinstance(given, Mapping) or not all(
        isinstance(value, Tensor) for value in given.values()
    ):
        raise ArgumentError(f"`{path}` has no weights by name; it has {_outline(given)}")
    # Of a model that was wrapped for several devices, or compiled.
    return {_bare(str(name)): value for name, value in given.items()}


def _bare(name: str) -> str:
    return name.removeprefix("module.").removeprefix("_orig_mod.")


def _outline(given: Any) -> str:
    if isinstance(given, Mapping):
        return "the keys " + ", ".join(map(str, list(given)[:5]))
    return f"a {type(given).__name__}"


def _fit_head(
    model: VisionModel, weights: dict[str, Tensor], path: Path, *, new_head: bool
) -> None:
    name = f"{model.head_name}.weight"
    has, wants = len(weights.get(name, ())), model.config.num_classes
    if has == wants:
        return
    if not new_head:
        if has == 0:
            raise ArgumentError(
                f"`{path}` has no head (`{name}`); give `num_classes` for a new one, 0 for none"
            )
        raise ArgumentError(
            f"`{path}` has {has} classes and `{model.config.name}` {wants}; give "
            f"`num_classes={has}` to load its head, or another `num_classes` for a new one"
        )
    for part in ("weight", "bias"):
        weights.pop(f"{model.head_name}.{part}", None)


def _fit_first(model: VisionModel, weights: dict[str, Tensor]) -> None:
    """Images of other channels: grey sums the channels, more of them repeat."""
    name = f"{model.first_name}.weight"
    first = model.get_submodule(model.first_name)
    if name not in weights or not isinstance(first, nn.Conv2d) or weights[name].ndim != 4:
        return
    has, wants = weights[name].shape[1], first.in_channels
    if has == wants:
        return
    if wants == 1:
        weights[name] = weights[name].sum(1, keepdim=True)
        return
    repeated = weights[name].repeat(1, -(-wants // has), 1, 1)[:, :wants]
    weights[name] = repeated * (has / wants)


def _mismatch(
    model: VisionModel, path: Path, missing: list[str], extra: list[str]
) -> ArgumentError:
    parts = [f"`{path}` is not a file of weights of `{model.config.name}`:"]
    if missing:
        instead = near(missing[0], extra, " (it has `{}`)")
        parts.append(f"it lacks {len(missing)}, first `{missing[0]}`{instead}")
    if extra:
        known = [name for name, _ in model.named_parameters()]
        parts.append(f"it has {len(extra)} too many, first `{extra[0]}`{near(extra[0], known)}")
    return ArgumentError("\n  ".join(parts))
