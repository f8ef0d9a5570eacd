"""A paged cache: sequences in shuffled blocks, fed in parts, against one whole pass."""

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.nn import Attention, Mask, PagedCache, Pages, Rotary

BLOCK, LONGEST = 4, 16


def layer(kv_heads: int) -> Attention:
    torch.manual_seed(0)
    rotary = Rotary(4, LONGEST, dtype=torch.float64)
    return Attention(16, 4, kv_heads=kv_heads, rotary=rotary, dtype=torch.float64)


def pages(rows: list[tuple[list[int], int, int]], width: int) -> Pages:
    """Rows of blocks, position and count."""
    longest = max(len(blocks) for blocks, _, _ in rows)
    table = torch.tensor([blocks + [0] * (longest - len(blocks)) for blocks, _, _ in rows])
    starts, counts = (torch.tensor([row[i] for row in rows]) for i in (1, 2))
    return Pages(table, starts, counts, width, BLOCK)


@settings(max_examples=40)
@given(
    lengths=st.lists(st.integers(1, LONGEST), min_size=1, max_size=4),
    parts=st.lists(st.integers(1, 5), min_size=16, max_size=16),
    window=st.none() | st.integers(1, 6),
    kv_heads=st.sampled_from([1, 2, 4]),
    order=st.permutations(list(range(1, 17))),
)
@torch.no_grad()
def test_sequences_in_parts_are_as_in_one_pass(lengths, parts, window, kv_heads, order):
    attention = layer(kv_heads)
    cache = PagedCache(17, kv_heads, BLOCK, 4, dtype=torch.float64)
    torch.manual_seed(1)
    texts = [torch.randn(1, length, 16, dtype=torch.float64) for length in lengths]
    blocks: list[list[int]] = [[] for _ in texts]
    found: list[list[Tensor]] = [[] for _ in texts]
    filled = [0] * len(texts)
    free, mask = list(order), Mask(window=window)
    for width in parts:
        counts = [min(width, len(text[0]) - at) for text, at in zip(texts, filled, strict=True)]
        fed = torch.full((len(texts), width, 16), 1e3, dtype=torch.float64)
        for row, (text, at, count) in enumerate(zip(texts, filled, counts, strict=True)):
            fed[row, :count] = text[0, at : at + count]
            while len(blocks[row]) * BLOCK < at + count:
                blocks[row].append(free.pop())
        cache.pages = pages(list(zip(blocks, filled, counts, strict=True)), width)
        out = attention(fed, mask, cache=cache)
        for row, count in enumerate(counts):
            found[row].append(out[row, :count])
            filled[row] += count
    for text, at, rows in zip(texts, filled, found, strict=True):
        whole = attention(text[:, :at], mask)
        torch.testing.assert_close(torch.cat(rows)[None], whole, rtol=1e-12, atol=1e-12)


def test_masks_that_it_cannot_have_and_missing_pages() -> None:
    cache = PagedCache(2, 1, BLOCK, 4)
    x = torch.zeros(1, 1, 1, 4)
    with pytest.raises(ArgumentError, match="set `pages`"):
        cache.attend(x, x, x, Mask())
    cache.pages = pages([([1], 0, 1)], 1)
    with pytest.raises(ArgumentError, match="causal"):
        cache.attend(x, x, x, Mask(causal=False))
