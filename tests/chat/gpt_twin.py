"""The GPT once more, one token and one head at a time."""

import math

import torch
from torch import Tensor

from hotgrid.chat import GPTConfig


def twin_logits(
    state: dict[str, Tensor],
    config: GPTConfig,
    tokens: list[int],
    documents: list[int] | None = None,
) -> Tensor:
    """Return the logits after each token of one sequence, in float64."""
    weights = {name: each.double() for name, each in state.items()}
    documents = documents or [0] * len(tokens)
    starts = [_embedding(weights, config, tokens, documents, at) for at in range(len(tokens))]
    stream, middle = list(starts), list(starts)
    for layer in range(config.layers):
        if config.mixing:
            keep, back = weights["stream_gain"][layer], weights["embed_gain"][layer]
            stream = [keep * x + back * start for x, start in zip(stream, starts, strict=True)]
        stream = _block(weights, config, layer, stream, tokens, documents)
        if layer == config.layers // 2:
            middle = list(stream)
    if config.mixing:
        gain = weights["middle_gain"]
        stream = [x - gain * half for x, half in zip(stream, middle, strict=True)]
    head = weights["embed.weight" if config.tied else "head.linear.weight"]
    rows = []
    for x in stream:
        logits = head @ _norm(x, config, weights.get("norm.weight"))
        if config.cap is not None:
            logits = config.cap * torch.tanh(logits / config.cap)
        rows.append(logits)
    return torch.stack(rows)


def _embedding(
    weights: dict[str, Tensor],
    config: GPTConfig,
    tokens: list[int],
    documents: list[int],
    at: int,
) -> Tensor:
    def plain(place: int) -> Tensor:
        x = weights["embed.weight"][tokens[place]]
        return (
            x / (x.square().mean() + torch.finfo(torch.float32).eps).sqrt()
            if (config.embed_norm)
            else x
        )

    x = plain(at)
    if config.mixing and at and documents[at] == documents[at - 1]:
        share = torch.sigmoid(weights["smear.weight"][0] @ x[:24])
        x = x + weights["smear_gain"] * share * plain(at - 1)
    return x


def _block(
    weights: dict[str, Tensor],
    config: GPTConfig,
    layer: int,
    stream: list[Tensor],
    tokens: list[int],
    documents: list[int],
) -> list[Tensor]:
    own = {
        name.removeprefix(f"h.{layer}."): each
        for name, each in weights.items()
        if name.startswith(f"h.{layer}.")
    }
    normed = [_norm(x, config, own.get("attn_norm.weight")) for x in stream]
    heads = [_heads(own, config, x, at, tokens[at]) for at, x in enumerate(normed)]
    window = config.window_of(layer) or len(tokens)
    after = []
    for at, x in enumerate(stream):
        seen = [
            place
            for place in range(max(0, at - window + 1), at + 1)
            if documents[place] == documents[at]
        ]
        parts = []
        for head in range(config.heads):
            group = head * config.groups // config.heads
            query = heads[at][0][head]
            scores = torch.stack([query @ heads[place][1][group] for place in seen])
            shares = torch.softmax(scores * config.qk_gain / math.sqrt(config.head), 0)
            parts.append(sum(s * heads[p][2][group] for s, p in zip(shares, seen, strict=True)))
        mixed = x + own["attn.out.weight"] @ torch.cat(parts)  # pyright: ignore
        inner = _norm(mixed, config, own.get("mlp_norm.weight"))
        after.append(mixed + _mlp(own, config, inner))
    return after


def _heads(
    own: dict[str, Tensor], config: GPTConfig, x: Tensor, at: int, token: int
) -> tuple[Tensor, Tensor, Tensor]:
    value = (own["attn.v.weight"] @ x).unflatten(0, (-1, config.head))
    if "values.weight" in own:
        gate = 3 * torch.sigmoid(own["gate.weight"] @ x[:12])
        value = value + gate[:, None] * own["values.weight"][token].unflatten(
            0, (-1, config.head)
        )
    turned = []
    for name in ("q", "k"):
        each = (own[f"attn.{name}.weight"] @ x).unflatten(0, (-1, config.head))
        if config.qk_norm:
            each = _norm(each, config, own.get(f"attn.{name}_norm.weight"))
        turned.append(torch.stack([_turned(head, at, config.rotary_base) for head in each]))
    return turned[0], turned[1], value


def _turned(head: Tensor, at: int, base: float) -> Tensor:
    half = len(head) // 2
    found = head.clone()
    for pair in range(half):
        angle = at * base ** (-pair / half)
        a, b = head[pair], head[pair + half]
        found[pair] = a * math.cos(angle) - b * math.sin(angle)
        found[pair + half] = b * math.cos(angle) + a * math.sin(angle)
    return found


def _mlp(own: dict[str, Tensor], config: GPTConfig, x: Tensor) -> Tensor:
    inner = own["mlp.up.weight"] @ x
    if config.activation == "swiglu":
        gate = own["mlp.gate.weight"] @ x
        inner = inner * gate * torch.sigmoid(gate)
    else:
        inner = inner.clamp(min=0).square()
    return own["mlp.down.weight"] @ inner


def _norm(x: Tensor, config: GPTConfig, gain: Tensor | None) -> Tensor:
    normed = x / (x.square().mean(-1, keepdim=True) + config.eps).sqrt()
    return normed if gain is None else normed * gain
