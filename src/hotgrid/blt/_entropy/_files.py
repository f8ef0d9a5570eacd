"""Entropy models in files: ours, facebook/blt-entropy's and those of transformers."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from hotgrid.blt._layers._weights import read_safetensors
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.files import whole_file
from hotgrid.nn import materialize
from hotgrid.train import load_partial

from ._config import EntropyConfig
from ._model import EntropyModel
from ._names import META, TRANSFORMERS, renamed

_KEY = "hotgrid.entropy_model"
_PATCHER = ("model.patcher.", "patcher.")
# The published models have heads of this size; files say nothing about it.
_HEAD = 64
_EMBEDDED = {"nano": Path(__file__).with_name("entropy_nano.safetensors")}


def model_file(name: str | Path) -> Path:
    """Return the file of a model that comes with hotgrid, or the path as it is."""
    return _EMBEDDED.get(str(name), Path(name))


def config_beside(place: Path) -> Path:
    """Return where transformers keeps the config of a model; it need not be there."""
    return (place if place.is_dir() else place.parent) / "config.json"


def load_entropy_model(
    path: str | Path = "nano",
    *,
    config: EntropyConfig | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    compiled: bool = False,
) -> EntropyModel:
    """Load an entropy model from a safetensors file, or from a folder with one.

    The names are those of facebook/blt-entropy, which `save_entropy_model` writes too, or of
    a byte-latent transformer of transformers, of which the patcher is read. Nothing is
    converted beforehand, and nothing in a file is run.

    Args:
        path: The file or folder. `"nano"` is the model that comes with hotgrid, of 2.3 million
            parameters.
        config: The sizes; by default from the metadata of the file, from `config.json` of
            transformers beside it, or from the shapes with heads of 64.
        device: Where the model goes.
        dtype: The dtype of its weights.
        compiled: Compile its layers, see `EntropyModel`.

    Raises:
        ArgumentError: There is no such file, it has another format, or it does not match.
        DamagedError: The file cannot be read.

    Example:
        >>> model = load_entropy_model()
        >>> easy, hard = model.entropies(b"beginnin"), model.entropies(b"x7#q9@z!")
        >>> bool(easy[-1] < 1 < hard[-1])
        True
    """
    place = model_file(path)
    tensors, metadata = read_safetensors(place, _is_wanted)
    tensors = _ours(tensors, place)
    stored = _metadata(metadata, place)
    if config is None:
        sizes = stored.get("config")
        config = (
            _from_transformers(place, tensors) or _from_shapes(tensors, place)
            if sizes is None
            else EntropyConfig.from_table(sizes, f"`{place}`")
        )
    with torch.device("meta"):
        model = EntropyModel(config)
    model.to(dtype)
    materialize(model, device)
    try:
        load_partial(model, tensors)
    except ArgumentError as problem:
        raise ArgumentError(f"`{place}` does not match the model: {problem}") from None
    model.thresholds, model.compiled = stored.get("thresholds", {}), compiled
    return model.eval()


def save_entropy_model(
    model: EntropyModel, path: str | Path, card: Mapping[str, Any] | None = None
) -> None:
    """Write a model with the names of facebook/blt-entropy, and its sizes as metadata.

    Args:
        model: The model; its dtype is kept.
        path: The file; its name must end in `.safetensors`.
        card: What else to keep, as JSON: where the model comes from and what was measured.

    Raises:
        ArgumentError: The path has another ending.
    """
    place = Path(path)
    if place.suffix != ".safetensors":
        raise ArgumentError(f"cannot write `{place}`: the name must end in `.safetensors`")
    back = {ours: theirs for theirs, ours in META.items()}
    tensors = {
        renamed(name, back): tensor.detach().cpu().contiguous()
        for name, tensor in model.state_dict().items()
    }
    stored = {
        "config": asdict(model.config),
        "thresholds": model.thresholds,
        "card": dict(card or {}),
    }
    with whole_file(place) as aside:
        save_file(tensors, aside, metadata={"format": "pt", _KEY: json.dumps(stored)})


def _is_wanted(name: str) -> bool:
    """Whether a tensor can be one of an entropy model; those of a whole BLT are not."""
    if name.startswith(_PATCHER):
        return True
    first = name.partition(".")[0]
    return first in ("layers", "tok_embeddings", "embed_tokens", "norm", "output", "lm_head")


def _ours(tensors: dict[str, Tensor], place: Path) -> dict[str, Tensor]:
    for beginning in _PATCHER:
        inner = {
            name.removeprefix(beginning): tensor
            for name, tensor in tensors.items()
            if name.startswith(beginning)
        }
        if inner:
            return {renamed(name, TRANSFORMERS): each for name, each in inner.items()}
    for table, first in (
        (META, "tok_embeddings.weight"),
        (TRANSFORMERS, "embed_tokens.weight"),
    ):
        if first in tensors:
            return {renamed(name, table): each for name, each in tensors.items()}
    raise ArgumentError(
        f"`{place}` holds no entropy model: there is none of `tok_embeddings.weight`, "
        "`embed_tokens.weight` and `model.patcher.embed_tokens.weight`"
    )


def _metadata(metadata: dict[str, str], place: Path) -> dict[str, Any]:
    try:
        found = json.loads(metadata.get(_KEY, "{}"))
    except ValueError as problem:
        raise DamagedError(f"the metadata of `{place}` is not JSON: {problem}") from problem
    if not isinstance(found, dict):
        raise DamagedError(
            f"the metadata of `{place}` is a {type(found).__name__}, not a table"
        )
    return found


def _from_transformers(place: Path, tensors: Mapping[str, Tensor]) -> EntropyConfig | None:
    """The sizes in `config.json` of transformers; None if there is none."""
    path = config_beside(place)
    if not path.is_file():
        return None
    try:
        table = json.loads(path.read_text("utf-8"))
        if table.get("model_type") == "blt":
            table = table["patcher_config"]
        elif table.get("model_type") != "blt_patcher":
            return None
        # What is left out has the default of transformers, which is that of Meta's model.
        usual = EntropyConfig()
        length = table.get("max_position_embeddings", usual.length)
        window = table.get("sliding_window", usual.window) or length
        return EntropyConfig(
            size=table.get("hidden_size", usual.size),
            layers=table.get("num_hidden_layers", usual.layers),
            heads=table.get("num_attention_heads", usual.heads),
            hidden=table.get("intermediate_size", usual.hidden),
            window=window,
            length=max(length, window),
            base=rotary_base(table, usual.base),
            eps=table.get("rms_norm_eps", usual.eps),
            vocabulary=len(tensors["embed.weight"]),
        )
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        if isinstance(problem, ArgumentError):
            raise
        raise DamagedError(f"`{path}` is not the config of a BLT: {problem!r}") from problem


def rotary_base(table: Mapping[str, Any], usual: float) -> float:
    """The base of rotary angles in a config of transformers, old or new."""
    rotary = table.get("rope_parameters") or {}
    return float(rotary.get("rope_theta", table.get("rope_theta", usual)))


def _from_shapes(tensors: dict[str, Tensor], place: Path) -> EntropyConfig:
    try:
        vocabulary, size = tensors["embed.weight"].shape
        hidden = tensors["layers.0.mlp.gate.weight"].shape[0]
    except (KeyError, ValueError):
        raise ArgumentError(
            f"`{place}` holds an incomplete entropy model: `layers.0` has no MLP"
        ) from None
    if size % _HEAD:
        raise ArgumentError(
            f"`{place}` says nothing about heads, and its size {size} is not a multiple of "
            f"{_HEAD}; give `config=EntropyConfig(...)`"
        )
    numbers = {name.split(".")[1] for name in tensors if name.startswith("layers.")}
    return EntropyConfig(
        size=size,
        layers=len(numbers),
        heads=size // _HEAD,
        hidden=hidden,
        vocabulary=vocabulary,
    )
