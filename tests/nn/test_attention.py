"""Attention against a twin of a few lines; decoding with a cache against the whole pass."""

import math
from typing import Any
from unittest.mock import patch

import pytest
import torch
import torch._dynamo.testing
from hypothesis import given, strategies as st
from torch import Tensor, nn

from hotgrid.errors import ArgumentError, ContractError
from hotgrid.nn import Attention, KVCache, Mask, Rotary, attention
from hotgrid.nn._attention import _attend


def drawn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def twin(q, k, v, causal=True, window=None, documents=None, offset=0, scale=None) -> Tensor:
    """One query at a time, one key at a time."""
    batch, heads, queries, size = q.shape
    group = heads // k.shape[1]
    scale = 1 / math.sqrt(size) if scale is None else scale
    out = q.new_zeros(batch, heads, queries, v.shape[-1])
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                at = i + offset
                seen = [
                    j
                    for j in range(k.shape[2])
                    if (not causal or j <= at)
                    and (window is None or abs(at - j) < window)
                    and (documents is None or documents[b, at] == documents[b, j])
                ]
                scores = torch.stack([q[b, h, i] @ k[b, h // group, j] * scale for j in seen])
                weights = scores.softmax(0)
                out[b, h, i] = sum(
                    w * v[b, h // group, j] for w, j in zip(weights, seen, strict=True)
                )
    return out


@given(
    kv_heads=st.sampled_from([1, 2]),
    group=st.sampled_from([1, 3]),
    length=st.integers(1, 7),
    causal=st.booleans(),
    window=st.none() | st.integers(1, 8),
    packed=st.booleans(),
    scale=st.none() | st.just(0.3),
    past=st.integers(0, 3),
    block=st.sampled_from([2, 3, 128]),
)
def test_attention_is_its_twin(
    kv_heads, group, length, causal, window, packed, scale, past, block
):
    past = min(past, length - 1)
    q = drawn(2, kv_heads * group, length - past, 4)
    k, v = drawn(2, kv_heads, length, 4, seed=1), drawn(2, kv_heads, length, 3, seed=2)
    documents = torch.tensor([[0, 0, 1, 1, 1, 2, 2], [3, 3, 3, 3, 3, 4, 3]])[:, :length]
    documents = documents if packed else None
    mask = Mask(causal, window, documents)
    with patch.object(_attend, "_BLOCK", block):
        found = attention(q, k, v, mask, offset=past, scale=scale)
    wanted = twin(q, k, v, causal, window, documents, past, scale)
    torch.testing.assert_close(found, wanted)


def test_a_mask_for_flex_attention_is_the_dense_one():
    documents = torch.arange(200).div(60, rounding_mode="floor").expand(2, -1).contiguous()
    for mask in (Mask(window=30, documents=documents), Mask(causal=False, documents=documents)):
        q, k, v = (drawn(2, 2, n, 16, seed=n).float() for n in (150, 200, 200))
        blocks = mask.blocks(150, 200, 50, torch.device("cpu"))
        from torch.nn.attention.flex_attention import create_mask, flex_attention

        drawn_out = create_mask(blocks.mask_mod, 2, None, 150, 200, device="cpu")
        dense = mask.dense(150, 200, 50, torch.device("cpu"))
        assert torch.equal(drawn_out, dense.expand(2, 1, 150, 200))
        found = torch.compile(flex_attention, backend="aot_eager")(q, k, v, block_mask=blocks)
        torch.testing.assert_close(found, attention(q, k, v, mask, offset=50))


def test_a_mask_keeps_what_it_computed_but_not_for_ever():
    mask, cpu = Mask(window=2), torch.device("cpu")
    assert mask.dense(4, 4, 0, cpu) is mask.dense(4, 4, 0, cpu)
    for offset in range(50):
        mask.dense(2, 60, offset, cpu)
    assert len(mask._kept) <= 8


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_turns_pairs_as_complex_numbers(interleaved: bool):
    rotary = Rotary(6, 9, base=100.0, interleaved=interleaved, dtype=torch.float64)
    x = drawn(2, 3, 5, 6)
    found = rotary(x, 4)
    for t in range(5):
        for i in range(3):
            first, second = (2 * i, 2 * i + 1) if interleaved else (i, i + 3)
            pair = torch.complex(x[..., t, first], x[..., t, second])
            turned = pair * torch.exp(torch.tensor(1j * (t + 4) / 100.0 ** (2 * i / 6)))
            torch.testing.assert_close(found[..., t, first], turned.real)
            torch.testing.assert_close(found[..., t, second], turned.imag)


def test_the_conventions_of_rotary_differ_by_an_order_of_elements():
    split, woven = (Rotary(8, 4, interleaved=each, dtype=torch.float64) for each in (0, 1))
    x = drawn(1, 2, 4, 8)
    order = torch.arange(8).view(2, 4).T.flatten()  # 0 4 1 5 ...
    torch.testing.assert_close(split(x)[..., order], woven(x[..., order]))


def test_scores_after_rotary_depend_on_distances_only():
    rotary = Rotary(8, 100, dtype=torch.float64)
    q, k = drawn(1, 1, 1, 8), drawn(1, 1, 1, 8, seed=1)
    near = rotary(q, 5) @ rotary(k, 3).mT
    torch.testing.assert_close(near, rotary(q, 92) @ rotary(k, 90).mT)


def test_rotary_takes_a_position_for_each():
    rotary = Rotary(4, 9)
    x = drawn(2, 1, 3, 4).float()
    torch.testing.assert_close(rotary(x, torch.tensor([2, 3, 4])), rotary(x, 2))
    each = rotary(x, torch.tensor([[2, 3, 4], [0, 1, 2]]))
    torch.testing.assert_close(each[0], rotary(x, 2)[0])
    torch.testing.assert_close(each[1], rotary(x)[1])
    with pytest.raises(ArgumentError, match="positions 7 to 9 do not fit a table of 9"):
        rotary(x, 7)
    with pytest.raises(ArgumentError, match="positions -2 to 0 do not fit a table of 9"):
        Rotary(4, length=9)(torch.ones(1, 1, 3, 4), -2)
    with pytest.raises(ArgumentError, match="must be even"):
        Rotary(5, 9)


def test_tables_of_rotary_stay_precise():
    rotary = Rotary(4, 2000).bfloat16()
    assert rotary.cos.dtype == torch.float32
    assert torch.equal(rotary.cos, Rotary(4, 2000).cos)
    assert rotary(drawn(1, 1, 2, 4).bfloat16(), 1500).dtype == torch.bfloat16
    wide = Rotary(4, 2000).double()
    assert torch.equal(wide.sin, Rotary(4, 2000, dtype=torch.float64).sin)
    assert wide(drawn(1, 1, 2, 4)).dtype == torch.float64


def layer(**options) -> Attention:
    torch.manual_seed(0)
    rotary = Rotary(4, 32, dtype=torch.float64)
    made = Attention(12, 4, kv_heads=2, head_size=4, rotary=rotary, qk_norm="rms", **options)
    return made.double()


def module_twin(made: Any, x: Tensor) -> Tensor:
    """The module with the parts written out."""
    q, k, v = (
        (x @ w.weight.T).view(*x.shape[:2], -1, 4).transpose(1, 2)
        for w in (made.q, made.k, made.v)
    )
    q = made.rotary(q / (q.square().mean(-1, keepdim=True) + 1e-6).sqrt() * made.q_norm.weight)
    k = made.rotary(k / (k.square().mean(-1, keepdim=True) + 1e-6).sqrt() * made.k_norm.weight)
    out = twin(q, k, v)
    return out.transpose(1, 2).reshape(*x.shape[:2], -1) @ made.out.weight.T


def test_the_module_is_its_twin():
    made, x = layer(), drawn(2, 5, 12)
    nn.init.normal_(made.q_norm.weight)
    torch.testing.assert_close(made(x), module_twin(made, x))


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("parts", [[1] * 9, [4, 1, 1, 3], [9], [2, 7]])
def test_decoding_with_a_cache_is_the_whole_pass(static: bool, window, parts: list[int]):
    made, x = layer(), drawn(2, 9, 12)
    mask = Mask(window=window)
    cache = KVCache(2, 2, 16, 4, static=static, dtype=torch.float64)
    for _ in range(2):
        found = [made(part, mask, cache=cache) for part in x.split(parts, 1)]
        torch.testing.assert_close(torch.cat(found, 1), made(x, mask))
        assert int(cache.position) == 9
        cache.reset()


def test_decoding_with_documents_is_the_whole_pass():
    made, x = layer(), drawn(2, 6, 12)
    documents = torch.tensor([[0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 2, 2]])
    cache = KVCache(2, 2, 6, 4, dtype=torch.float64)
    mask = Mask(documents=documents)
    found = [made(part, mask, cache=cache) for part in x.split(2, 1)]
    torch.testing.assert_close(torch.cat(found, 1), made(x, mask))


def test_a_static_cache_compiles_once_for_all_positions():
    made, x = layer(), drawn(2, 6, 12)
    cache = KVCache(2, 2, 8, 4, static=True, dtype=torch.float64)
    graphs = torch._dynamo.testing.CompileCounter()
    torch._dynamo.reset()
    step = torch.compile(lambda part: made(part, cache=cache), backend=graphs, fullgraph=True)
    with torch.no_grad():
        found = [step(part) for part in x.split(1, 1)]
        torch.testing.assert_close(torch.cat(found, 1), made(x))
    assert graphs.frame_count == 1


def test_wrong_arguments_are_named():
    q, k = drawn(1, 3, 4, 4), drawn(1, 2, 4, 4)
    with pytest.raises(ArgumentError, match="3 heads of queries cannot share 2"):
        attention(q, k, k)
    with pytest.raises(ContractError):
        attention(drawn(1, 2, 4, 5), k, k)
    with pytest.raises(ArgumentError, match="at least 1 key, got 0"):
        Mask(window=0)
    with pytest.raises(ArgumentError, match=r"documents.*\[4\]"):
        Mask(documents=torch.zeros(4))
    with pytest.raises(ArgumentError, match="1 x 4 positions"):
        attention(k, k, k, Mask(documents=torch.zeros(1, 3)))
    for mask, offset in (
        (Mask(window=2), 2),
        (Mask(documents=torch.zeros(1, 4)), 1),
        (Mask(), -1),
    ):
        with pytest.raises(
            ArgumentError, match=f"at positions {offset} to .* there are 4 keys"
        ):
            attention(*torch.ones(3, 1, 1, 4, 2), mask, offset=offset)
    with pytest.raises(ArgumentError, match="static cache needs a causal mask"):
        attention(k, k, k, Mask(causal=False), offset=torch.tensor(0))
    with pytest.raises(ArgumentError, match="multiple of `kv_heads`, got 4 and 3"):
        Attention(8, 4, kv_heads=3)
    with pytest.raises(ArgumentError, match="not a multiple of 3 heads"):
        Attention(8, 3)
    with pytest.raises(ArgumentError, match="heads of 6, not of 4"):
        Attention(8, 2, rotary=Rotary(6, 9))
    cache = KVCache(1, 2, 4, 4)
    cache.append(drawn(1, 2, 3, 4), drawn(1, 2, 3, 4))
    with pytest.raises(ArgumentError, match="4 positions, 3 of them filled, so 2 more"):
        cache.append(drawn(1, 2, 2, 4), drawn(1, 2, 2, 4))
    with pytest.raises(ContractError):
        cache.append(drawn(1, 3, 1, 4), drawn(1, 3, 1, 4))


@pytest.mark.parametrize("given", [{"window": "x"}, {"window": 2.5}, {"documents": [[0, 1]]}])
def test_masks_of_other_types_are_refused(given):
    with pytest.raises(ArgumentError, match=f"`{next(iter(given))}` must be"):
        Mask(**given)
