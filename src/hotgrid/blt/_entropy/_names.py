"""The names of weights: ours, those of Meta's files and those of transformers."""

from collections.abc import Mapping
from types import MappingProxyType

META = MappingProxyType(
    {
        "tok_embeddings": "embed",
        "attention.wq": "attention.q",
        "attention.wk": "attention.k",
        "attention.wv": "attention.v",
        "attention.wo": "attention.out",
        "attention_norm": "attention_norm",
        "feed_forward.w1": "mlp.gate",
        "feed_forward.w3": "mlp.up",
        "feed_forward.w2": "mlp.down",
        "ffn_norm": "mlp_norm",
        "norm": "norm",
        "output": "head",
    }
)
"""Names in `model.safetensors` of facebook/blt-entropy, and ours."""

TRANSFORMERS = MappingProxyType(
    {
        "embed_tokens": "embed",
        "self_attn.q_proj": "attention.q",
        "self_attn.k_proj": "attention.k",
        "self_attn.v_proj": "attention.v",
        "self_attn.o_proj": "attention.out",
        "input_layernorm": "attention_norm",
        "mlp.gate_proj": "mlp.gate",
        "mlp.up_proj": "mlp.up",
        "mlp.down_proj": "mlp.down",
        "post_attention_layernorm": "mlp_norm",
        "norm": "norm",
        "lm_head": "head",
    }
)
"""Names in files of transformers, without their beginning, and ours."""


def renamed(name: str, table: Mapping[str, str]) -> str:
    """Return a name with its middle translated; one that the table lacks stays.

    Example:
        >>> renamed("layers.3.attention.wq.weight", META)
        'layers.3.attention.q.weight'
    """
    parts = name.split(".")
    begin = 2 if parts[0] == "layers" else 0
    middle = ".".join(parts[begin:-1])
    return ".".join([*parts[:begin], table.get(middle, middle), parts[-1]])
