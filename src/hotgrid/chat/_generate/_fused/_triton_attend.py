"""Attention of one token of each sequence to those before it, in blocks of a cache."""

import triton
import triton.language as tl

from ._triton_linear import embedded


@triton.jit
def _turned(
    x, gain, cos, sin, half, eps,
    HEAD: tl.constexpr, NORMED: tl.constexpr, GAINED: tl.constexpr,
):  # fmt: skip
    """The halves of a query or key, normed and turned."""
    here = half < HEAD // 2
    a = tl.load(x + half, mask=here, other=0)
    b = tl.load(x + HEAD // 2 + half, mask=here, other=0)
    if NORMED:
        factor = tl.rsqrt((tl.sum(a * a, 0) + tl.sum(b * b, 0)) / HEAD + eps)
        a, b = a * factor, b * factor
        if GAINED:
            a *= tl.load(gain + half, mask=here, other=0).to(tl.float32)
            b *= tl.load(gain + HEAD // 2 + half, mask=here, other=0).to(tl.float32)
    return a * cos - b * sin, a * sin + b * cos


@triton.jit
def _held(
    keys, values, pages, token, end, along, start, half, whole,
    HEAD: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """The halves of the keys of some tokens, and their values; 0 from the end on."""
    here = token < end
    page = tl.load(pages + token // PAGE, mask=here, other=0)
    line = ((page * PAGE + token % PAGE) * along + start)[:, None]
    low = here[:, None] & (half < HEAD // 2)[None, :]
    a = tl.load(keys + line + half[None, :], mask=low, other=0)
    b = tl.load(keys + line + HEAD // 2 + half[None, :], mask=low, other=0)
    all = here[:, None] & (whole < HEAD)[None, :]
    return a, b, tl.load(values + line + whole[None, :], mask=all, other=0)


@triton.jit
def attend(
    qkv, q_gain, k_gain, cosines, sines, keys, values, table, position, parts, stats,
    heads, groups, width, blocks, along, across, reach, window, splits, eps, scale,
    HEAD: tl.constexpr, HALF: tl.constexpr, PADDED: tl.constexpr, PAGE: tl.constexpr,
    BLOCK: tl.constexpr, NORMED: tl.constexpr, GAINED: tl.constexpr, WHOLE: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    """One head's attention of a sequence to a part of its tokens, and the new key and value.

    `parts` are values weighted by exponentials of scores, `[sequences, heads, splits, HEAD]`;
    `stats` are the best score and the sum of exponentials. The first part has the new token.
    With `WHOLE` there is one part, and it is the result.
    """
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    b, h, s = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    g = h // (heads // groups)
    half, whole = tl.arange(0, HALF), tl.arange(0, PADDED)
    low, all = half < HEAD // 2, whole < HEAD
    # Everything older than this step is already stored.
    at = tl.load(position + b)
    angle = tl.minimum(at, reach - 1) * (HEAD // 2) + half
    cos = tl.load(cosines + angle, mask=low, other=0).to(tl.float32)
    sin = tl.load(sines + angle, mask=low, other=0).to(tl.float32)
    pages = table + b * blocks
    # Tokens beyond a sequence's blocks, which are never read, go to the first block.
    page = tl.load(pages + at // PAGE, mask=at // PAGE < blocks, other=0)
    first = tl.maximum(at + 1 - window, 0)
    span = tl.cdiv(tl.cdiv(at - first, splits), BLOCK) * BLOCK
    start = first + s * span
    end = tl.minimum(start + span, at)
    token = start + tl.arange(0, BLOCK)
    ka, kb, kv = _held(
        keys, values, pages, token, end, along, g * across, half, whole, HEAD, PAGE
    )  # fmt: skip
    if PDL:
        tl.extra.cuda.gdc_wait()
    new = qkv + b * width
    q1, q2 = _turned(new + h * HEAD, q_gain, cos, sin, half, eps, HEAD, NORMED, GAINED)
    q1, q2 = q1 * scale, q2 * scale
    key = new + (heads + g) * HEAD
    k1, k2 = _turned(key, k_gain, cos, sin, half, eps, HEAD, NORMED, GAINED)
    v = tl.load(new + (heads + groups + g) * HEAD + whole, mask=all, other=0)
    own = tl.sum(q1 * k1, 0) + tl.sum(q2 * k2, 0)
    best = tl.where(s == 0, own, float("-inf"))
    total = tl.where(s == 0, 1.0, 0.0)
    found = tl.where(s == 0, v, 0.0)
    to = (page * PAGE + at % PAGE) * along + g * across
    kind: tl.constexpr = keys.dtype.element_ty
    writes = (s == 0) & (h % (heads // groups) == 0)
    tl.store(keys + to + half, k1.to(kind), mask=low & writes)
    tl.store(keys + to + HEAD // 2 + half, k2.to(kind), mask=low & writes)
    tl.store(values + to + whole, v.to(kind), mask=all & writes)
    for _ in range(start, end, BLOCK):
        here = token < end
        token += BLOCK
        # The next ones are loaded while these are used.
        na, nb, nv = _held(
            keys, values, pages, token, end, along, g * across, half, whole, HEAD, PAGE
        )  # fmt: skip
        scores = tl.sum(ka.to(tl.float32) * q1[None, :], 1)
        scores += tl.sum(kb.to(tl.float32) * q2[None, :], 1)
        scores = tl.where(here, scores, float("-inf"))
        most = tl.maximum(best, tl.max(scores, 0))
        old, shares = tl.exp(best - most), tl.exp(scores - most)
        total = total * old + tl.sum(shares, 0)
        found = found * old + tl.sum(shares[:, None] * kv.to(tl.float32), 0)
        best = most
        ka, kb, kv = na, nb, nv
    if WHOLE:
        found /= total
    part = (b * heads + h) * splits + s
    tl.store(parts + part * HEAD + whole, found, mask=all)
    tl.store(stats + 2 * part, best)
    tl.store(stats + 2 * part + 1, total)


@triton.jit
def choose(
    logits, temperature, uniforms, best, likeliest, totals, forced, place, position, chosen,
    table, x, rows, parts, batch, size, eps,
    ROWS: tl.constexpr, PARTS: tl.constexpr, CHOICE: tl.constexpr, NORMED: tl.constexpr,
    WIDTH: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """The next token of each sequence, from the logits that `score` computed.

    It is noted in `chosen`, `[steps, sequences]`, and begins the stream of the next step,
    unless `forced` has another one.
    -1 is noted where the best logit is not finite. As in `_sampling.choose`, the cumulative
    distribution is inverted in the order of the vocabulary and in fp64.
    """
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    b = tl.program_id(0)
    part = tl.arange(0, PARTS)
    if PDL:
        tl.extra.cuda.gdc_wait()
    at = b * parts + part
    highs = tl.load(best + at, mask=part < parts, other=float("-inf"))
    high = tl.max(highs, 0)
    here = (highs == high) & (part < parts)
    token = tl.min(tl.where(here, tl.load(likeliest + at, mask=here, other=rows), rows), 0)
    step = tl.load(place + b)
    if CHOICE == 2:
        heat = tl.load(temperature + b)
        divisor = tl.where(heat == 0, 1.0, heat)
        top = high.to(tl.float64)
        shares = tl.load(totals + at, mask=part < parts, other=0)
        shares *= tl.exp((highs.to(tl.float64) - top) / divisor)
        sums = tl.cumsum(shares, 0)
        target = tl.load(uniforms + step * batch + b) * tl.max(sums, 0)
        which = tl.minimum(tl.sum((sums <= target).to(tl.int32), 0), parts - 1)
        before = tl.max(tl.where(part < which, sums, 0.0), 0)
        row = which * ROWS + tl.arange(0, ROWS)
        row = tl.minimum(row, rows - 1)  # once more at the end, where it does not count
        some = tl.load(logits + b.to(tl.int64) * rows + row)
        some = before + tl.cumsum(tl.exp((some.to(tl.float64) - top) / divisor), 0)
        drawn = which * ROWS + tl.sum((some <= target).to(tl.int32), 0)
        drawn = tl.minimum(tl.minimum(drawn, which * ROWS + ROWS - 1), rows - 1)
        token = tl.where(heat == 0, token, drawn)
    finite = (high > float("-inf")) & (high < float("inf"))
    tl.store(chosen + step * batch + b, tl.where(finite, token, -1))
    given = tl.load(forced + step * batch + b)
    token = tl.where(given >= 0, given, tl.where(finite, token, 0))
    embedded(token, b, table, x, size, eps, NORMED, WIDTH)
    tl.store(position + b, tl.load(position + b) + 1)
    tl.store(place + b, step + 1)
