"""Exact passes in chunks: keys and values of the last window stay."""

from functools import lru_cache
from typing import Any, NamedTuple, Protocol, cast

import torch
from torch import Tensor, nn

from hotgrid.blt._layers._block import Block, joined_after, joined_before, joined_maps
from hotgrid.errors import ArgumentError
from hotgrid.nn import KVCache, Mask, RMSNorm, Rotary, attention

from ._config import EntropyConfig


class EntropyOutput(NamedTuple):
    """The result of a forward pass.

    Attributes:
        logits: The logits of the next byte, of shape `(b, t, vocabulary)`.
        embeddings: The residual stream before the last norm, of shape `(b, t, size)`.
    """

    logits: Tensor
    embeddings: Tensor


class Layers(Protocol):
    """The parts of an `EntropyModel` that a pass goes through."""

    config: EntropyConfig
    compiled: bool
    embed: nn.Embedding
    layers: nn.ModuleList
    norm: RMSNorm
    head: nn.Linear


@lru_cache(maxsize=2)
def _compiled_parts(joined: bool) -> tuple[Any, Any]:
    """The layers before and after attention, compiled for the first shape, then for any."""
    before, after = (joined_before, joined_after) if joined else (Block.before, Block.after)
    return torch.compile(before), torch.compile(after)


def _is_plain(model: Layers) -> bool:
    """Whether no linear map was replaced, such as by one with weights of 8 bits."""
    return all(
        type(each) is nn.Linear and each.bias is None
        for layer in cast("list[Block]", list(model.layers))
        for each in joined_maps(layer)
    )


@lru_cache(maxsize=4)
def _mask(window: int) -> Mask:
    """One for all passes: blocks of a mask take longer to compute than a layer on a GPU."""
    return Mask(window=window)


class WindowCache:
    """The past of an `EntropyModel`, as far as its window reaches; of any length.

    Args:
        model: The model.
        batch: How many sequences go through together.
        chunk: The most ids in one pass.

    Raises:
        ArgumentError: A chunk and a window do not fit the rotary table.
    """

    def __init__(self, model: Layers, batch: int, chunk: int) -> None:
        config = model.config
        self._past = config.window - 1
        if self._past + chunk > config.length:
            raise ArgumentError(
                f"a `chunk` of {chunk} bytes and a window of {config.window} do not fit "
                f"{config.length} positions; choose at most {config.length - self._past}"
            )
        weight = model.embed.weight
        self._model, self._mask = model, _mask(config.window)
        self._caches = [
            KVCache(
                batch,
                config.heads,
                self._past + chunk,
                config.size // config.heads,
                device=weight.device,
                dtype=weight.dtype,
            )
            for _ in model.layers
        ]
        self._filled = self._position = 0

    def forward(self, ids: Tensor) -> EntropyOutput:
        """Return what the model says of the next ids of each sequence."""
        model, count = self._model, ids.shape[1]
        if self._filled + count > self._caches[0].length:
            self._forget()
        if self._position + count > model.config.length:
            self._turn_back()
        positions = torch.arange(count, device=ids.device) + self._position
        x = model.embed(ids)
        before, after = self._parts()
        # Of a first chunk only what the next one sees is copied.
        first = not self._filled and count > self._past
        for layer, cache in zip(model.layers, self._caches, strict=True):
            q, k, v = before(layer, x, positions)
            if first:
                found = attention(q, k, v, self._mask)
                cache.append(k[:, :, count - self._past :], v[:, :, count - self._past :])
            else:
                found = cache.attend(q, k, v, self._mask)
            x = after(layer, x, found)
        self._filled += self._past if first else count
        self._position += count
        return EntropyOutput(model.head(model.norm(x)), x)

    def _parts(self) -> tuple[Any, Any]:
        if not self._model.compiled:
            return Block.before, Block.after
        return _compiled_parts(self._model.embed.weight.is_cuda and _is_plain(self._model))

    def _forget(self) -> None:
        """Keep the last keys and values that a window can reach."""
        kept = min(self._filled, self._past)
        for cache in self._caches:
            for buffer in (cache.keys, cache.values):
                buffer[:, :, :kept] = buffer[:, :, self._filled - kept : self._filled].clone()
            cache.position = kept
        self._filled = kept

    def _turn_back(self) -> None:
        """Restart positions at the oldest key; only their differences count.

        A key turned by a position and mirrored, turned by the distance and mirrored again
        is turned back by it: the conjugate of a rotation is its inverse.
        """
        self._forget()
        distance = self._position - self._filled
        for layer, cache in zip(self._model.layers, self._caches, strict=True):
            keys = cache.keys[:, :, : self._filled]
            mirror = torch.ones(keys.shape[-1], device=keys.device, dtype=keys.dtype)
            mirror[1::2] = -1
            where = torch.full((self._filled,), distance, device=keys.device)
            rotary = cast("Rotary", cast("Block", layer).attention.rotary)
            keys.copy_(rotary(keys * mirror, where) * mirror)
        self._position = self._filled
