"""Layers of image models, against their definitions written out."""

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.errors import ArgumentError, ContractError
from hotgrid.vision import (
    CosineWindowAttention,
    GlobalResponseNorm,
    PatchEmbed,
    PatchMerging,
    WindowAttention,
    attend_fused,
    attend_readable,
    log_spaced_positions,
    relative_position_index,
    shift_mask,
    window_partition,
    window_reverse,
)

WINDOWS = [(1, 0), (2, 0), (2, 1), (3, 1), (4, 2), (7, 3)]


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def filled(module: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    """A module in float64 whose parameters are all random."""
    module.double()
    with torch.no_grad():
        for place, each in enumerate(module.parameters()):
            each.copy_(0.5 * drawn(*each.shape, seed=seed + place))
    return module


# Windows


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.integers(1, 5))
def test_windows_are_cut_row_by_row_and_put_back(batch, rows, columns, window):
    x = drawn(batch, rows * window, columns * window, 2)
    windows = window_partition(x, window)
    place = (batch - 1) * rows * columns + (rows - 1) * columns
    assert torch.equal(windows[place], x[-1, -window:, :window])
    assert torch.equal(window_reverse(windows, rows * window, columns * window), x)


def test_a_map_that_windows_do_not_fill_is_refused():
    with pytest.raises(ContractError, match="window"):
        window_partition(torch.zeros(1, 7, 8, 1), 4)


@pytest.mark.parametrize(("window", "shift"), WINDOWS)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_mask_keeps_apart_what_only_the_shift_brings_together(window, shift, count):
    size = window * count
    mask = shift_mask(size, window, shift)
    assert mask.shape == (count**2, window**2, window**2)
    for number in range(count**2):
        for one in range(window**2):
            for other in range(window**2):
                apart = False
                for axis in (0, 1):
                    at = divmod(number, count)[axis] * window
                    # Whether a token came from the far side when the map was rolled.
                    wrapped = [
                        at + divmod(token, window)[axis] + shift >= size
                        for token in (one, other)
                    ]
                    apart |= wrapped[0] != wrapped[1]
                assert mask[number, one, other] == (-100 if apart else 0)


@pytest.mark.parametrize("window", [1, 2, 3, 7])
def test_the_index_is_that_of_the_step_from_one_token_to_another(window):
    index = relative_position_index(window)
    for one in range(window**2):
        for other in range(window**2):
            down = one // window - other // window
            across = one % window - other % window
            assert divmod(int(index[one, other]), 2 * window - 1) == (
                down + window - 1,
                across + window - 1,
            )


@pytest.mark.parametrize(("window", "trained"), [(1, 0), (2, 0), (7, 0), (16, 12), (3, 6)])
def test_positions_widen_like_a_logarithm(window, trained):
    table = log_spaced_positions(window, trained)
    assert table.shape == (2 * window - 1, 2 * window - 1, 2)
    largest = max((trained or window) - 1, 1)
    for row in range(2 * window - 1):
        step = (row - window + 1) / largest * 8
        wanted = math.copysign(math.log2(abs(step) + 1) / math.log2(8), step)
        assert table[row, 0, 0].item() == pytest.approx(wanted, abs=1e-6)
        assert table[0, row, 1].item() == pytest.approx(wanted, abs=1e-6)


# Attention


def by_hand(attention, x: torch.Tensor, shift: int) -> torch.Tensor:
    """Attention of one token after another: those of its window that were its neighbours."""
    _, height, width, dim = x.shape
    side, heads, cosine = attention.window, attention.heads, hasattr(attention, "q_bias")
    q, k, v = (
        part.unflatten(-1, (heads, -1)) for part in attention.projected(x).chunk(3, dim=-1)
    )
    bias = attention.bias()
    scale = (dim // heads) ** -0.5
    if cosine:
        q, k = q / q.norm(dim=-1, keepdim=True), k / k.norm(dim=-1, keepdim=True)
        scale = attention.logit_scale.flatten().exp().clamp(max=100)
    out = torch.zeros_like(v)
    places = [(row, column) for row in range(height) for column in range(width)]

    def home(place):
        """The window of a place and where it is in there, and which edges it wraps around."""
        rolled = [(each - shift) % size for each, size in zip(place, x.shape[1:3], strict=True)]
        wraps = tuple(each < shift for each in place)
        return [r // side for r in rolled], wraps, (rolled[0] % side, rolled[1] % side)

    for one in places:
        window, wraps, inside = home(one)
        seen = [p for p in places if home(p)[:2] == (window, wraps)]
        scores = torch.stack(
            [
                (q[:, one[0], one[1]] * k[:, p[0], p[1]]).sum(-1) * scale
                + bias[:, inside[0] * side + inside[1], home(p)[2][0] * side + home(p)[2][1]]
                for p in seen
            ],
            -1,
        )
        values = torch.stack([v[:, p[0], p[1]] for p in seen], -2)
        out[:, one[0], one[1]] = (scores.softmax(-1).unsqueeze(-1) * values).sum(-2)
    return attention.proj(out.flatten(-2))


@pytest.mark.parametrize("make", [WindowAttention, CosineWindowAttention])
@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("fused", [True, False])
def test_attention_in_windows_is_what_tokens_do_one_by_one(make, shift, fused):
    attention = filled(make(6, 2, 3, fused=fused))
    x = drawn(2, 6, 9, 6)
    # The mask of a map that is not square is that of its axes.
    mask = None
    if shift:
        rows = (torch.arange(6) >= 6 - shift).long()
        columns = (torch.arange(9) >= 9 - shift).long()
        regions = 2 * rows[:, None] + columns
        windows = window_partition(regions[None, :, :, None], 3).reshape(-1, 9)
        mask = torch.where(windows[:, :, None] == windows[:, None, :], 0.0, -math.inf).double()
    found = attention(x.roll((-shift, -shift), (1, 2)), mask).roll((shift, shift), (1, 2))
    torch.testing.assert_close(found, by_hand(attention, x, shift))


@settings(max_examples=40)
@given(
    window=st.integers(1, 8),
    count=st.integers(1, 3),
    heads=st.integers(1, 3),
    size=st.integers(1, 5),
    batch=st.integers(1, 3),
    align=st.sampled_from([1, 8, 16]),
    shifted=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_fused_attention_equals_its_readable_twin(
    window, count, heads, size, batch, align, shifted, seed
):
    tokens, windows = window**2, count**2
    shape = (batch, windows * heads, tokens, size)
    q, k, v = (drawn(*shape, seed=seed + i).requires_grad_() for i in range(3))
    bias = drawn(heads, tokens, tokens, seed=seed + 3).requires_grad_()
    mask = shift_mask(window * count, window, window // 2).double() if shifted else None
    weights = drawn(*shape, seed=seed + 4)
    results = []
    for attend, more in ((attend_readable, {}), (attend_fused, {"align": align})):
        out = attend(q, k, v, bias, mask, scale=0.7, **more)
        results.append((out, *torch.autograd.grad((out * weights).sum(), (q, k, v, bias))))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("make", [WindowAttention, CosineWindowAttention])
def test_both_paths_agree_under_autocast_in_training(make):
    paths = []
    for fused in (True, False):
        torch.manual_seed(0)
        attention = make(32, 2, 4, fused=fused)
        x = torch.randn(2, 8, 8, 32)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = attention(x, shift_mask(8, 4, 2))
        out.float().square().mean().backward()
        paths.append((out.float(), attention.qkv.weight.grad))
    for one, other in zip(*paths, strict=True):
        assert (one - other).abs().max() < 0.05 * other.abs().max()


def test_the_scale_of_cosines_is_at_most_100():
    attention = filled(CosineWindowAttention(4, 1, 2))
    x = drawn(1, 2, 2, 4)
    with torch.no_grad():
        attention.logit_scale.fill_(math.log(100))
        most = attention(x)
        attention.logit_scale.fill_(50.0)
        assert torch.equal(attention(x), most)


def test_weights_of_one_window_serve_another_as_they_were_trained():
    small, large = CosineWindowAttention(4, 2, 3), CosineWindowAttention(4, 2, 5, trained=3)
    filled(small)
    large.double().load_state_dict(small.state_dict())
    # Tokens that are as far from each other have the same bias in both.
    ours, theirs = small.bias(), large.bias()
    for one in range(9):
        for other in range(9):
            far = [5 * (token // 3) + token % 3 for token in (one, other)]
            torch.testing.assert_close(
                ours[:, one, other], theirs[:, far[0], far[1]], rtol=1e-5, atol=1e-5
            )


def test_heads_must_divide_the_channels():
    for make in (WindowAttention, CosineWindowAttention):
        with pytest.raises(ArgumentError, match="10 channels cannot be shared by 4 heads"):
            make(10, 4, 2)


def test_a_map_that_does_not_fit_the_window_is_refused():
    with pytest.raises(ContractError, match="window"):
        WindowAttention(4, 2, 3)(torch.zeros(1, 4, 3, 4))


# Patches, and the response norm


def test_a_patch_becomes_its_product_with_the_weights():
    embed = filled(PatchEmbed(3, 5, 4))
    images = drawn(2, 3, 8, 12)
    found = embed(images)
    assert found.shape == (2, 2, 3, 5)
    patch = images[1, :, 4:8, 8:12]
    wanted = (embed.proj.weight * patch).sum((1, 2, 3)) + embed.proj.bias
    torch.testing.assert_close(found[1, 1, 2], wanted)
    with pytest.raises(ContractError, match="patch"):
        embed(images[:, :, :6])


@pytest.mark.parametrize("post_norm", [False, True])
@pytest.mark.parametrize(("height", "width"), [(4, 6), (3, 5)])
def test_neighbours_merge_down_first_and_edges_get_zeros(post_norm, height, width):
    merge = filled(PatchMerging(2, post_norm=post_norm))
    x = drawn(2, height, width, 2)
    found = merge(x)
    assert found.shape == (2, -(-height // 2), -(-width // 2), 4)
    row, column = found.shape[1] - 1, found.shape[2] - 1
    zero = torch.zeros(2, dtype=torch.float64)
    near = [
        x[1, 2 * row + down, 2 * column + across]
        if 2 * row + down < height and 2 * column + across < width
        else zero
        for across in (0, 1)
        for down in (0, 1)
    ]
    four = torch.cat(near)
    wanted = (
        merge.norm(merge.reduction(four)) if post_norm else merge.reduction(merge.norm(four))
    )
    torch.testing.assert_close(found[1, row, column], wanted)


def test_the_response_norm_scales_by_energy_and_starts_as_an_identity():
    x = drawn(2, 4, 5, 3)
    norm = GlobalResponseNorm(3).double()
    assert torch.equal(norm(x), x)
    filled(norm)
    energy = x.square().sum((1, 2)).sqrt()
    share = energy / (energy.mean(1, keepdim=True) + 1e-6)
    wanted = x + norm.weight * x * share[:, None, None] + norm.bias
    torch.testing.assert_close(norm(x), wanted)
    first = GlobalResponseNorm(3, channels=1).double()
    first.load_state_dict(norm.state_dict())
    torch.testing.assert_close(first(x.permute(0, 3, 1, 2)), wanted.permute(0, 3, 1, 2))
