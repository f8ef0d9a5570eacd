"""Attention in the windows of a map in one Triton kernel, forward and backward.

A program takes one head and some windows in turn. It finds the tokens of a window in the map,
shifted or not, by their places, so nothing is rolled, cut into windows or permuted in memory.
Scores stay in registers: the backward pass computes them again.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from hotgrid.kernels.tune import TritonLauncher

# How many programs share the work: several for each multiprocessor of an H200, and fewer where
# each writes a sum of its own.
_PROGRAMS, _PROGRAMS_BACK = 1056, 1056
# The warps of a program, and how many windows are loaded at once: for products on tensor cores
# and, where those of float32 are to be exact, without.
_TUNED, _TUNED_EXACT = (4, 3), (8, 1)


@triton.jit
def _found(window, token, height, width, SIDE: tl.constexpr, SHIFT: tl.constexpr):
    """Where the map of a window begins, its tokens in there, and which edges it is at."""
    across = width // SIDE
    count = (height // SIDE) * across
    inside = window % count
    y = (inside // across) * SIDE + SHIFT
    x = (inside % across) * SIDE + SHIFT
    edges = (y + SIDE > height).to(tl.int32) * 2 + (x + SIDE > width).to(tl.int32)
    y += token // SIDE
    x += token % SIDE
    y = tl.where(y < height, y, y - height)
    x = tl.where(x < width, x, x - width)
    return (window // count).to(tl.int64) * (height * width), y * width + x, edges


@triton.jit
def _over(token, SIDE: tl.constexpr, SHIFT: tl.constexpr):
    """Which edges a shift takes tokens over, where their window is at them."""
    down = (token // SIDE >= SIDE - SHIFT).to(tl.int32)
    return down * 2 + (token % SIDE >= SIDE - SHIFT).to(tl.int32)


@triton.jit
def _added(bias, head, token, N: tl.constexpr):
    """The bias that is added to scores; nothing sees a padded token."""
    real = token < N
    place = head * (N * N) + token[:, None] * N + token[None, :]
    found = tl.load(bias + place, mask=real[:, None] & real[None, :], other=0.0)
    return tl.where(real[None, :], found.to(tl.float32), float("-inf"))


@triton.jit
def _shares(q, k, added, over, edges, scale, SHIFT: tl.constexpr):
    """The softmax of scores; -100 is what `shift_mask` adds."""
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale + added
    if SHIFT > 0:
        over = over & edges
        scores += tl.where(over[:, None] == over[None, :], 0.0, -100.0)
    powers = tl.exp(scores - tl.max(scores, 1)[:, None])
    return powers * (1.0 / tl.sum(powers, 1))[:, None]


@triton.jit
def _forward(
    qkv, bias, out, windows, each, height, width, scale,
    HEADS: tl.constexpr, SIZE: tl.constexpr, SIDE: tl.constexpr, SHIFT: tl.constexpr,
    BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    dim: tl.constexpr = HEADS * SIZE
    tokens: tl.constexpr = SIDE * SIDE
    head = tl.program_id(0) % HEADS
    first = tl.program_id(0) // HEADS * each
    token = tl.arange(0, BLOCK)
    real = (token < tokens)[:, None]
    channel = tl.arange(0, SIZE)[None, :]
    added = _added(bias, head, token, tokens)
    over = _over(token, SIDE, SHIFT)
    last = tl.minimum(first + each, windows)
    for window in tl.range(first, last, num_stages=STAGES):
        start, place, edges = _found(window, token, height, width, SIDE, SHIFT)
        start = start * dim
        place = place[:, None] * dim
        given = qkv + start * 3 + head * SIZE + (place * 3 + channel)
        q = tl.load(given, mask=real, other=0.0)
        k = tl.load(given + dim, mask=real, other=0.0)
        v = tl.load(given + 2 * dim, mask=real, other=0.0)
        shares = _shares(q, k, added, over, edges, scale, SHIFT)
        seen = tl.dot(shares.to(v.dtype), v, input_precision="ieee")
        tl.store(out + start + head * SIZE + (place + channel), seen.to(v.dtype), mask=real)


@triton.jit
def _backward(
    qkv, bias, grad, to_qkv, to_bias, windows, each, height, width, scale,
    HEADS: tl.constexpr, SIZE: tl.constexpr, SIDE: tl.constexpr, SHIFT: tl.constexpr,
    BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    dim: tl.constexpr = HEADS * SIZE
    tokens: tl.constexpr = SIDE * SIDE
    kind: tl.constexpr = qkv.dtype.element_ty
    head = tl.program_id(0) % HEADS
    first = tl.program_id(0) // HEADS * each
    token = tl.arange(0, BLOCK)
    real = (token < tokens)[:, None]
    channel = tl.arange(0, SIZE)[None, :]
    added = _added(bias, head, token, tokens)
    over = _over(token, SIDE, SHIFT)
    total = tl.zeros([BLOCK, BLOCK], tl.float32)
    last = tl.minimum(first + each, windows)
    for window in tl.range(first, last, num_stages=STAGES):
        start, place, edges = _found(window, token, height, width, SIDE, SHIFT)
        start = start * dim
        place = place[:, None] * dim
        given = qkv + start * 3 + head * SIZE + (place * 3 + channel)
        q = tl.load(given, mask=real, other=0.0)
        k = tl.load(given + dim, mask=real, other=0.0)
        v = tl.load(given + 2 * dim, mask=real, other=0.0)
        at = grad + start + head * SIZE + (place + channel)
        g = tl.load(at, mask=real, other=0.0)
        shares = _shares(q, k, added, over, edges, scale, SHIFT)
        to = to_qkv + start * 3 + head * SIZE + (place * 3 + channel)
        to_v = tl.dot(tl.trans(shares.to(kind)), g, input_precision="ieee")
        tl.store(to + 2 * dim, to_v.to(kind), mask=real)
        to_shares = tl.dot(g, tl.trans(v), input_precision="ieee")
        to_scores = shares * (to_shares - tl.sum(shares * to_shares, 1)[:, None])
        total += to_scores
        small = (to_scores * scale).to(kind)
        to_q = tl.dot(small, k, input_precision="ieee")
        tl.store(to, to_q.to(kind), mask=real)
        to_k = tl.dot(tl.trans(small), q, input_precision="ieee")
        tl.store(to + dim, to_k.to(kind), mask=real)
    # The programs of a head are HEADS apart, so this is `parts heads tokens tokens`.
    sums = to_bias + tl.program_id(0) * (tokens * tokens)
    sums += token[:, None] * tokens + token[None, :]
    tl.store(sums, total, mask=real & (token < tokens)[None, :])


_FORWARD, _BACKWARD = TritonLauncher(_forward), TritonLauncher(_backward)


def attend_forward(qkv: Tensor, bias: Tensor, side: int, shift: int, scale: float) -> Tensor:
    """Return what tokens see in the windows of a shifted map, where the tokens were.

    Arguments:
        qkv: `batch height width (3 heads size)`, contiguous.
        bias: `heads tokens tokens`, contiguous.
        side: Height and width of a window.
        shift: How far the map is shifted up and left.
        scale: The factor of scores.
    """
    out = qkv.new_empty(*qkv.shape[:3], qkv.shape[3] // 3)
    parts, numbers, constants, warps = _plan(qkv, bias, side, shift, _PROGRAMS)
    grid = (parts * len(bias), 1, 1)
    _FORWARD(grid, (qkv, bias, out), (*numbers, scale), constants, warps)
    return out


def attend_backward(
    grad: Tensor, qkv: Tensor, bias: Tensor, side: int, shift: int, scale: float
) -> tuple[Tensor, Tensor]:
    """Return the gradients of `qkv` and `bias`, from that of the result, contiguous."""
    parts, numbers, constants, warps = _plan(qkv, bias, side, shift, _PROGRAMS_BACK)
    to_qkv = torch.empty_like(qkv)
    to_bias = bias.new_empty((parts, *bias.shape), dtype=torch.float32)
    grid = (parts * len(bias), 1, 1)
    tensors = (qkv, bias, grad, to_qkv, to_bias)
    _BACKWARD(grid, tensors, (*numbers, scale), constants, warps)
    return to_qkv, to_bias.sum(0).to(bias.dtype)


def _plan(
    qkv: Tensor, bias: Tensor, side: int, shift: int, programs: int
) -> tuple[int, tuple[int, ...], tuple[int, ...], int]:
    """In how many parts windows are divided; numbers, constants and warps of a kernel."""
    (batch, height, width, channels), heads = qkv.shape, len(bias)
    windows = batch * (height // side) * (width // side)
    each = max(1, triton.cdiv(windows * heads, programs))
    block = max(16, triton.next_power_of_2(side * side))
    warps, stages = _TUNED_EXACT if qkv.dtype == torch.float32 else _TUNED
    constants = (heads, channels // (3 * heads), side, shift, block, stages)
    return triton.cdiv(windows, each), (windows, each, height, width), constants, warps
