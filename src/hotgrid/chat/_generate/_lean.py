"""`LeanStep`: one token of one sequence on the CPU, with as few operations as can be.

It computes what `GPT.features` and the head compute. For a small model most of their time
goes into modules, checks and many small tensors; tests compare the two.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hotgrid.chat._model._gpt import GPT, Memory
from hotgrid.nn import MLP, Attention, softcap

_NORMS = ("rms", "rms_plain")
_Map = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class _Layer:
    """The maps of a block."""

    attn_norm: _Map
    q: _Map
    k: _Map
    v: _Map
    qk_norm: _Map
    out: _Map
    mlp_norm: _Map
    mlp: _Map
    window: int | None


class LeanStep:
    """Feeds one token at a time to a model.

    Args:
        model: The model, without mixing or value embeddings, on the CPU, in float32 or
            float64; its linear maps may be compressed.
    """

    def __init__(self, model: GPT) -> None:
        config = model.config
        self._config, self._head, self._embed = config, _linear(model.head.linear), model.embed
        blocks: list[Any] = list(model.h)
        rotary = blocks[0].attn.rotary
        # Both halves of a head turn by the same angles: x * cos + swapped(x) * sin.
        self._cos = torch.cat((rotary.cos, rotary.cos), 1)
        self._sin = torch.cat((-rotary.sin, rotary.sin), 1)
        half = torch.arange(config.head).chunk(2)
        self._swap = torch.cat((half[1], half[0]))
        self._scale = config.qk_gain * config.head**-0.5
        self._norm = _norm(model.norm)
        tiny = torch.finfo(model.embed.weight.dtype).eps
        self._embed_norm = functools.partial(_rms, eps=tiny, weight=None)
        self._layers = [
            _Layer(
                _norm(block.attn_norm),
                _linear(block.attn.q),
                _linear(block.attn.k),
                _linear(block.attn.v),
                _head_norm(block.attn),
                _linear(block.attn.out),
                _norm(block.mlp_norm),
                _mlp(block.mlp),
                config.window_of(layer),
            )
            for layer, block in enumerate(blocks)
        ]

    @classmethod
    def of(cls, model: GPT) -> Self | None:
        """Return one for a model; None for a model that it cannot feed."""
        config, weight = model.config, model.embed.weight
        plain = not config.mixing and not config.value_embeddings and config.norm in _NORMS
        wide = weight.device.type == "cpu" and weight.dtype in (torch.float32, torch.float64)
        if not plain or not wide or type(model.embed) is not nn.Embedding:
            return None
        return cls(model)

    @torch.inference_mode()
    def __call__(self, token: int, memory: Memory) -> Tensor:
        """Return the logits after one more token, of shape (1, vocabulary)."""
        config, at = self._config, memory.position
        if isinstance(at, Tensor):
            raise TypeError("a lean step needs a memory that is not static")
        cos, sin = self._cos[at], self._sin[at]
        x = self._embed.weight[token : token + 1]
        if config.embed_norm:
            x = self._embed_norm(x)
        for layer, cache in zip(self._layers, memory.caches, strict=True):
            h = layer.attn_norm(x)
            qk = torch.cat((layer.q(h), layer.k(h)), 1).view(-1, config.head)
            qk = layer.qk_norm(qk)
            qk = torch.addcmul(qk * cos, qk.index_select(1, self._swap), sin)
            keys, values = cache.keys[0], cache.values[0]
            keys[:, at] = qk[config.heads :]
            values[:, at] = layer.v(h).view(-1, config.head)
            first = 0 if layer.window is None else max(0, at + 1 - layer.window)
            q = (qk[: config.heads] * self._scale).view(config.groups, -1, config.head)
            scores = torch.bmm(q, keys[:, first : at + 1].transpose(1, 2))
            found = torch.bmm(scores.softmax(-1), values[:, first : at + 1])
            x = x + layer.out(found.view(1, -1))
            x = x + layer.mlp(layer.mlp_norm(x))
            cache.position = at + 1
        logits = self._head(self._norm(x))
        wide = torch.promote_types(logits.dtype, torch.float32)
        return softcap(logits.to(wide), config.cap)


def _linear(module: nn.Module) -> _Map:
    if type(module) is nn.Linear:
        return functools.partial(F.linear, weight=module.weight, bias=module.bias)
    return module.forward


def _rms(x: Tensor, eps: float, weight: Tensor | None) -> Tensor:
    """Norm one row; a number of Python costs less than small tensors."""
    row = x[0]
    normed = x * (torch.dot(row, row).item() / row.numel() + eps) ** -0.5
    return normed if weight is None else normed * weight


def _norm(module: Any) -> _Map:
    return functools.partial(_rms, eps=module.eps, weight=module.weight)


def _head_norm(attn: Attention) -> _Map:
    """Return the norm of the heads of queries and keys together."""
    q, k = attn.q_norm, attn.k_norm
    if q is None or k is None:
        return lambda qk: qk
    eps: Any = q.eps
    gain = None
    if isinstance(q.weight, Tensor) and isinstance(k.weight, Tensor):
        gain = torch.cat((q.weight.expand(attn.heads, -1), k.weight.expand(attn.kv_heads, -1)))

    def normed(qk: Tensor) -> Tensor:
        found = F.rms_norm(qk, (attn.head_size,), None, eps)
        return found if gain is None else found * gain

    return normed


def _mlp(module: MLP) -> _Map:
    up, down, activation = _linear(module.up), _linear(module.down), module.activation.forward
    if module.gate is None:
        return lambda x: down(activation(up(x)))
    gate = _linear(module.gate)
    return lambda x: down(activation(gate(x)) * up(x))
