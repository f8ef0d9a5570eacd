"""GPTs in the layout of Hugging Face's Llama: a folder with config.json and safetensors."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.files import read_regular, whole_file

from ._config import GPTConfig
from ._gpt import GPT

_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn.q": "self_attn.q_proj",
    "attn.k": "self_attn.k_proj",
    "attn.v": "self_attn.v_proj",
    "attn.out": "self_attn.o_proj",
    "mlp_norm": "post_attention_layernorm",
    "mlp.up": "mlp.up_proj",
    "mlp.gate": "mlp.gate_proj",
    "mlp.down": "mlp.down_proj",
}
# What a Llama has; another value cannot be written in its layout.
_STYLE = (
    "activation",
    "norm",
    "qk_norm",
    "qk_gain",
    "cap",
    "embed_norm",
    "value_embeddings",
    "mixing",
)


def save_llama(model: GPT, folder: str | Path) -> None:
    """Write a model as `config.json` and `model.safetensors`, as transformers reads them.

    Raises:
        ArgumentError: The model has parts that a Llama does not have; `GPTConfig.llama` makes
            one that fits.

    Example:
        >>> config = GPTConfig.llama(vocabulary=64, layers=1, size=32, heads=2, context=16)
        >>> model, tokens = GPT(config), torch.arange(6).view(1, 6)
        >>> save_llama(model, "llama")
        >>> torch.equal(load_llama("llama")(tokens), model(tokens))
        True
    """
    config, plain = model.config, GPTConfig.llama()
    other = [
        f"{name}={getattr(config, name)!r}"
        for name in _STYLE
        if getattr(config, name) != getattr(plain, name)
    ]
    if any(config.window_of(layer) is not None for layer in range(config.layers)):
        other.append(f"window={config.window!r}")
    if other:
        raise ArgumentError(
            f"the layout of Llama has no place for {', '.join(other)}: make the model with "
            "`GPTConfig.llama`"
        )
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    names = _names(config)
    weights = {
        theirs: model.get_parameter(ours).detach().to("cpu").contiguous()
        for ours, theirs in names.items()
    }
    with whole_file(path / "model.safetensors") as aside:
        save_file(weights, aside, {"format": "pt"})
    with whole_file(path / "config.json") as aside:
        aside.write_text(json.dumps(_described(model), indent=2))


def load_llama(folder: str | Path) -> GPT:
    """Read a model that is in the layout of Llama.

    Raises:
        DamagedError: A file is missing or is not what it should be; the message names it.
        ArgumentError: The model has parts that a GPT of hotgrid does not have.
    """
    path = Path(folder)
    text = read_regular(path / "config.json", 1 << 20)
    try:
        given: Any = json.loads(text)
        config = _config(given)
    except (ValueError, KeyError, TypeError) as problem:
        if isinstance(problem, ArgumentError):
            raise
        raise DamagedError(
            f"`{path / 'config.json'}` does not describe a Llama: {problem}"
        ) from None
    weights = _weights(path)
    model = GPT(config)
    wanted = _names(config)
    state = {}
    for ours, theirs in wanted.items():
        if theirs not in weights:
            raise DamagedError(f"`{path}` has no weight `{theirs}`")
        state[ours] = weights[theirs]
        here = model.get_parameter(ours)
        if state[ours].shape != here.shape:
            raise DamagedError(
                f"`{theirs}` in `{path}` is {list(state[ours].shape)}; config.json says "
                f"{list(here.shape)}"
            )
    unknown = sorted(set(weights) - set(wanted.values()) - {"lm_head.weight"})
    if unknown:
        raise ArgumentError(
            f"`{path}` has weights that a GPT does not have: {', '.join(unknown[:5])}"
        )
    model.to(next(iter(state.values())).dtype)
    with torch.no_grad():
        for ours, value in state.items():
            model.get_parameter(ours).copy_(value)
    return model


def _names(config: GPTConfig) -> dict[str, str]:
    names = {"embed.weight": "model.embed_tokens.weight", "norm.weight": "model.norm.weight"}
    if not config.tied:
        names["head.linear.weight"] = "lm_head.weight"
    for layer in range(config.layers):
        for ours, theirs in _BLOCK.items():
            names[f"h.{layer}.{ours}.weight"] = f"model.layers.{layer}.{theirs}.weight"
    return names


def _described(model: GPT) -> dict[str, Any]:
    config = model.config
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": config.vocabulary,
        "hidden_size": config.size,
        "intermediate_size": config.inner,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.groups,
        "head_dim": config.head,
        "hidden_act": "silu",
        "max_position_embeddings": config.context,
        "rms_norm_eps": config.eps,
        "rope_theta": config.rotary_base,
        "rope_scaling": None,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": config.tied,
        "torch_dtype": str(model.embed.weight.dtype).removeprefix("torch."),
    }


def _config(given: Any) -> GPTConfig:
    if given.get("model_type") != "llama":
        raise ArgumentError(f"a model of the type {given.get('model_type')!r} is not a Llama")
    # Newer versions of transformers keep the base in an object of its own.
    rope = given.get("rope_parameters") or given.get("rope_scaling") or {}
    # Older ones call the kind of rotary positions `type`.
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if kind != "default":
        raise ArgumentError(f"rotary positions of the type {kind!r} are not supported")
    if given.get("hidden_act", "silu") not in ("silu", "swish"):
        raise ArgumentError(
            f"a Llama with `hidden_act` {given['hidden_act']!r} is not supported"
        )
    for name in ("attention_bias", "mlp_bias"):
        if given.get(name):
            raise ArgumentError(f"a Llama with `{name}` is not supported")
    return GPTConfig.llama(
        vocabulary=given["vocab_size"],
        layers=given["num_hidden_layers"],
        size=given["hidden_size"],
        heads=given["num_attention_heads"],
        kv_heads=given.get("num_key_value_heads"),
        head_size=given.get("head_dim"),
        context=given.get("max_position_embeddings", 2048),
        hidden=given["intermediate_size"],
        eps=given.get("rms_norm_eps", 1e-6),
        rotary_base=float(rope.get("rope_theta") or given.get("rope_theta") or 10_000.0),
        tied=bool(given.get("tie_word_embeddings", False)),
        stretch=1,
    )


def _weights(path: Path) -> dict[str, Tensor]:
    files = sorted(path.glob("*.safetensors"))
    if not files:
        raise DamagedError(f"`{path}` has no .safetensors file")
    weights: dict[str, Tensor] = {}
    for file in files:
        try:
            weights |= load_file(file)
        except SafetensorError as problem:
            raise DamagedError(f"`{file}` is not a safetensors file: {problem}") from None
    return weights
