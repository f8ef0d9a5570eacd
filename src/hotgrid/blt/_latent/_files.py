"""Byte-latent transformers in files, with the names and configs of transformers."""

import json
from pathlib import Path
from typing import Any

import torch

from hotgrid.blt._entropy._files import rotary_base
from hotgrid.blt._entropy._names import TRANSFORMERS, renamed
from hotgrid.blt._layers._weights import read_safetensors
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.nn import materialize
from hotgrid.train import load_partial

from ._config import LatentConfig
from ._model import LatentTransformer

_PARTS = (
    ("model.local_encoder.", "encoder."),
    ("model.global_transformer.", "latent."),
    ("model.local_decoder.", "decoder."),
)
_INNER = {
    "patch_embedding_projection.": "project.",
    "token_embedding_projection.": "project.",
}
_WHOLE = {
    "lm_head.weight": "head.weight",
    "model.encoder_hash_tok_embedding.weight": "encoder.ngrams.table.weight",
}
_CROSS = "cross_attn_layers."


def our_name(name: str) -> str | None:
    """Return our name of a tensor of transformers' BLT; None for those of its patcher.

    Example:
        >>> our_name("model.local_decoder.cross_attn_layers.2.q_proj.weight")
        'decoder.cross.2.q.weight'
    """
    if name.startswith("model.patcher."):
        return None
    if name in _WHOLE:
        return _WHOLE[name]
    part = next((each for each in _PARTS if name.startswith(each[0])), None)
    if part is None:
        return name
    inner, ours = name.removeprefix(part[0]), part[1]
    for old, new in _INNER.items():
        if inner.startswith(old):
            return f"{ours}{new}{inner.removeprefix(old)}"
    if inner.startswith(_CROSS):
        number, _, rest = inner.removeprefix(_CROSS).partition(".")
        rest = rest.replace("o_proj.", "out.").replace("_proj.", ".")
        # The encoder has one, after its last layer.
        return f"{ours}cross.{rest}" if ours == "encoder." else f"{ours}cross.{number}.{rest}"
    return ours + renamed(inner, TRANSFORMERS)


def load_latent_model(
    path: str | Path,
    *,
    config: LatentConfig | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> LatentTransformer:
    """Load a byte-latent transformer from safetensors files of transformers.

    The entropy model in them is left out; `load_entropy_model` reads it from the same path.

    Args:
        path: A folder with `model.safetensors`, or several and their index; or a file.
        config: The sizes; by default from `config.json` in the folder.
        device: Where the model goes.
        dtype: The dtype of its weights.

    Raises:
        ArgumentError: There is no such file, or it does not match the model.
        DamagedError: A file cannot be read.
    """
    place = Path(path)
    if config is None:
        config = _read_config((place if place.is_dir() else place.parent) / "config.json")
    tensors, _ = read_safetensors(place, lambda name: our_name(name) is not None)
    with torch.device("meta"):
        model = LatentTransformer(config)
    model.to(dtype)
    materialize(model, device)
    try:
        load_partial(model, tensors, rename=our_name)
    except ArgumentError as problem:
        raise ArgumentError(f"`{place}` does not match the model: {problem}") from None
    return model.eval()


def _read_config(path: Path) -> LatentConfig:
    if not path.is_file():
        raise ArgumentError(f"there is no `{path}`; give `config=LatentConfig(...)`")
    try:
        return _from_transformers(json.loads(path.read_text("utf-8")))
    except (ValueError, LookupError, TypeError) as problem:
        if isinstance(problem, ArgumentError):
            raise
        raise DamagedError(f"`{path}` is not the config of a BLT: {problem!r}") from problem


def _from_transformers(table: dict[str, Any]) -> LatentConfig:
    encoder, decoder = table["encoder_config"], table["decoder_config"]
    latent = table["global_config"]
    for name, of_encoder, of_decoder in (
        ("hidden_size", encoder["hidden_size"], decoder["hidden_size"]),
        ("intermediate_size", encoder["intermediate_size"], decoder["intermediate_size"]),
        ("num_attention_heads", encoder["num_attention_heads"], decoder["num_attention_heads"]),
    ):
        if of_encoder != of_decoder:
            raise ArgumentError(
                f"`{name}` is {of_encoder} in the encoder and {of_decoder} in the decoder; "
                "only equal ones are supported"
            )
    bases = {rotary_base(each, LatentConfig.base) for each in (encoder, decoder, latent)}
    if len(bases) > 1:
        raise ArgumentError(
            f"`rope_theta` is {' and '.join(f'{each:g}' for each in sorted(bases))} in the "
            "parts of the model; only equal ones are supported"
        )
    return LatentConfig(
        local=encoder["hidden_size"],
        local_heads=encoder["num_attention_heads"],
        local_hidden=encoder["intermediate_size"],
        encoder_layers=encoder["num_hidden_layers"],
        decoder_layers=decoder["num_hidden_layers"],
        latent=latent["hidden_size"],
        latent_heads=latent["num_attention_heads"],
        latent_hidden=latent["intermediate_size"],
        latent_layers=latent["num_hidden_layers"],
        vectors=table["cross_attn_k"],
        window=table.get("local_attention_window_len", 512),
        ngrams=tuple(table["encoder_hash_byte_group_size"]),
        ngram_rows=table["encoder_hash_byte_group_vocab"],
        ngram_functions=table["encoder_hash_byte_group_nb_functions"],
        local_length=encoder["max_position_embeddings"],
        latent_length=latent["max_position_embeddings"],
        base=bases.pop(),
        eps=encoder["rms_norm_eps"],
        vocabulary=table["vocab_size"],
    )
