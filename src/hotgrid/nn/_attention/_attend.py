"""`attention`: SDPA or flex_attention, whichever the mask and the device call for."""

from functools import lru_cache
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError

from ._mask import Mask

CAUSAL = Mask()
# Shorter prompts come in many lengths, each of which would be compiled; a dense mask of them is
# small.
_LONG = 4096
# Queries on a CPU that share their keys: most keys are hidden from others.
_BLOCK = 128


@checked(q="b heads t size", k="b kv s size", v="b kv s out", returns="b heads t out")
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Mask = CAUSAL,
    *,
    offset: int | Tensor = 0,
    scale: float | None = None,
) -> Tensor:
    """Attend from queries to keys and values: softmax(q k^T * scale) v, where the mask allows.

    A causal mask or none goes to the fastest kernel of `scaled_dot_product_attention`.
    A window or documents go to a compiled `flex_attention` on CUDA, which skips what is
    masked, in training and for long sequences. Elsewhere they go to a dense mask, on a CPU
    block of queries by block, without what a whole block does not see.

    Args:
        q: Queries; their heads are a multiple of those of keys, which are shared (GQA).
        k: Keys.
        v: Values.
        mask: Which keys a query sees.
        offset: The position of the first query among the keys; more than 0 with a cache.
        scale: The factor of the scores; by default 1 / sqrt(size).

    Raises:
        ContractError: Shapes do not fit together.
        ArgumentError: Heads cannot be shared evenly, or the mask is not for these keys.
    """
    _expect_sense(q, k, mask, offset)
    queries, keys = q.shape[2], k.shape[2]
    shared: dict[str, Any] = {"scale": scale, "enable_gqa": q.shape[1] != k.shape[1]}
    sees_all = mask.documents is None and (mask.window is None or mask.window >= keys)
    if sees_all and isinstance(offset, int):
        if not mask.causal or (queries == 1 and offset == keys - 1):
            return F.scaled_dot_product_attention(q, k, v, **shared)
        if offset == 0 and queries == keys:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, **shared)
    elif q.is_cuda and isinstance(offset, int) and (q.requires_grad or queries >= _LONG):
        blocks = mask.blocks(queries, keys, offset, q.device)
        return _flex(q, keys, mask)(q, k, v, block_mask=blocks, **shared)
    elif q.device.type == "cpu" and isinstance(offset, int) and _has_blocks(queries):
        return _by_blocks(q, k, v, mask, offset, shared)
    seen = mask.dense(queries, keys, offset, q.device)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, **shared)


def _has_blocks(queries: int) -> bool:
    # A compiled graph for any length has no fixed number of blocks.
    return not torch.compiler.is_compiling() and queries > _BLOCK


def _by_blocks(
    q: Tensor, k: Tensor, v: Tensor, mask: Mask, offset: int, shared: dict[str, Any]
) -> Tensor:
    """Block of queries by block, without the keys that a window hides from all of a block."""
    found: list[Tensor] = []
    reach = mask.window or k.shape[2]
    for start in range(0, q.shape[2], _BLOCK):
        some, at = q[:, :, start : start + _BLOCK], offset + start
        first, behind = max(0, at - reach + 1), at + some.shape[2]
        end = min(k.shape[2], behind if mask.causal else behind + reach - 1)
        seen = mask.part(first, end).dense(some.shape[2], end - first, at - first, q.device)
        keys, values = k[:, :, first:end], v[:, :, first:end]
        found.append(
            F.scaled_dot_product_attention(some, keys, values, attn_mask=seen, **shared)
        )
    return torch.cat(found, 2)


def _expect_sense(q: Tensor, k: Tensor, mask: Mask, offset: int | Tensor) -> None:
    heads, kv_heads = q.shape[1], k.shape[1]
    if heads % kv_heads:
        raise ArgumentError(
            f"{heads} heads of queries cannot share {kv_heads} heads of keys evenly; "
            "the first must be a multiple of the second"
        )
    documents = mask.documents
    if documents is not None and (
        documents.shape[0] != k.shape[0] or documents.shape[1] < k.shape[2]
    ):
        raise ArgumentError(
            f"`documents` of the mask has the shape {list(documents.shape)}, and keys are "
            f"{k.shape[0]} x {k.shape[2]} positions; it needs one entry for each"
        )
    placed = documents is not None or mask.window is not None
    if isinstance(offset, int) and (
        offset < 0 or (placed and offset + q.shape[2] > k.shape[2])
    ):
        raise ArgumentError(
            f"queries are at positions {offset} to {offset + q.shape[2] - 1}, and there are "
            f"{k.shape[2]} keys; a query needs a position among the keys"
        )
    if isinstance(offset, Tensor) and not mask.causal:
        raise ArgumentError(
            "a static cache needs a causal mask, which hides what is not filled yet"
        )


def _flex(q: Tensor, keys: int, mask: Mask) -> Any:
    """`flex_attention`; uncompiled it would keep all scores."""
    from torch.nn.attention.flex_attention import flex_attention

    if torch.compiler.is_compiling():
        return flex_attention
    kind = (mask.causal, mask.window, mask.documents is None, q.shape, keys, q.dtype)
    return _compiled_flex(kind, torch.is_grad_enabled())


@lru_cache(maxsize=64)
def _compiled_flex(*kind: Any) -> Any:
    """One compiled function for every kind of call.

    Dynamo gives up after a few recompilations of one code object and then runs the function
    uncompiled. A copy of the code object has a count of its own.
    """
    from torch.nn.attention.flex_attention import flex_attention

    flex: Any = flex_attention

    def call(*args: Tensor, **options: Any) -> Tensor:
        return flex(*args, **options)

    own = FunctionType(call.__code__.replace(), call.__globals__, closure=call.__closure__)
    return torch.compile(own, dynamic=False)
