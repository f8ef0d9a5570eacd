"""Linear maps of one token of each sequence, with what comes before and after them.

A program has a few rows of a matrix. With `PDL` (programmatic dependent launch) a kernel begins
before the one in front of it has ended: everything before `gdc_wait` depends on weights alone.
So for one sequence a program has its rows in registers when its input arrives. Sums and the
stream of the model are in fp32.
"""

import triton
import triton.language as tl


@triton.jit
def embedded(
    token, b, table, x, size, eps, NORMED: tl.constexpr, WIDTH: tl.constexpr
):  # fmt: skip
    """Begin the stream of sequence `b` with a token; `x` is `[sequences, size]`."""
    k = tl.arange(0, WIDTH)
    found = tl.load(table + token * size + k, mask=k < size, other=0).to(tl.float32)
    if NORMED:
        found *= tl.rsqrt(tl.sum(found * found, 0) / size + eps)
    tl.store(x + b * size + k, found, mask=k < size)


@triton.jit
def embed(
    tokens, table, x, size, eps,
    NORMED: tl.constexpr, WIDTH: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Begin the stream of each sequence with its token."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    b = tl.program_id(0)
    embedded(tl.load(tokens + b), b, table, x, size, eps, NORMED, WIDTH)


@triton.jit
def _inputs(
    x, stats, b, k, head, known, here, columns, HEAD: tl.constexpr, SPLITS: tl.constexpr
):  # fmt: skip
    """Numbers `k` of sequences `b`; with `HEAD`, from the parts that `attend` has left.

    `head` is the head of each, which may be the same for all of them: `known` says which are.
    """
    if HEAD == 0:
        found = tl.load(x + b * columns + k, mask=here, other=0).to(tl.float32)
    else:
        at = (b * (columns // HEAD) + head) * SPLITS
        best = tl.load(stats + 2 * at, mask=known, other=0)
        total = tl.load(stats + 2 * at + 1, mask=known, other=1)
        found = tl.load(x + at * HEAD + k % HEAD, mask=here, other=0)
        for s in tl.static_range(1, SPLITS):
            high = tl.load(stats + 2 * (at + s), mask=known, other=0)
            share = tl.load(stats + 2 * (at + s) + 1, mask=known, other=0)
            more = tl.load(x + (at + s) * HEAD + k % HEAD, mask=here, other=0)
            most = tl.maximum(best, high)
            old, new = tl.exp(best - most), tl.exp(high - most)
            found, total, best = found * old + more * new, total * old + share * new, most
        found /= total
    return found


@triton.jit
def _product(
    w, x, stats, gain, row, rows, columns, batch, eps,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, STEPS: tl.constexpr, BATCH: tl.constexpr,
    EVEN: tl.constexpr, NORMED: tl.constexpr, GAINED: tl.constexpr, HEAD: tl.constexpr,
    SPLITS: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Some rows of a matrix times the input of each sequence: `[ROWS, BATCH]`.

    The factor of a norm is the same for a whole input, so it comes last.
    """
    lines = w + row.to(tl.int64)[:, None] * columns
    step = tl.arange(0, BLOCK)
    if BATCH == 1:
        parts = ()
        for i in tl.static_range(STEPS):
            k = i * BLOCK + step
            if EVEN:
                parts = parts + (tl.load(lines + k[None, :], eviction_policy="evict_first"),)
            else:
                here = (row < rows)[:, None] & (k < columns)[None, :]
                parts = parts + (tl.load(lines + k[None, :], mask=here, other=0),)
        if PDL:
            tl.extra.cuda.gdc_wait()
        sums = tl.zeros([ROWS, BLOCK], tl.float32)
        squares = tl.zeros([BLOCK], tl.float32)
        for i in tl.static_range(STEPS):
            k = i * BLOCK + step
            here, head = k < columns, k
            if HEAD > 0:
                head = k // HEAD
            given = _inputs(x, stats, 0, k, head, here, here, columns, HEAD, SPLITS)
            squares += given * given
            if GAINED:
                given *= tl.load(gain + k, mask=k < columns, other=0).to(tl.float32)
            sums += parts[i].to(tl.float32) * given[None, :]
        found = tl.sum(sums, 1)[:, None]
        if NORMED:
            found *= tl.rsqrt(tl.sum(squares, 0) / columns + eps)
    else:
        if PDL:
            tl.extra.cuda.gdc_wait()
        b = tl.arange(0, BATCH)[None, :]
        found = tl.zeros([ROWS, BATCH], tl.float32)
        squares = tl.zeros([BATCH], tl.float32)
        for at in range(0, columns, BLOCK):
            k = at + step
            if EVEN:
                part = tl.load(lines + k[None, :], eviction_policy="evict_first")
            else:
                here = (row < rows)[:, None] & (k < columns)[None, :]
                part = tl.load(lines + k[None, :], mask=here, other=0)
            k = k[:, None]
            here = (k < columns) & (b < batch)
            if HEAD == 0:
                given = _inputs(x, stats, b, k, k, here, here, columns, HEAD, SPLITS)
            elif HEAD % BLOCK == 0:
                head = at // HEAD
                given = _inputs(x, stats, b, k, head, b < batch, here, columns, HEAD, SPLITS)
            else:
                given = _inputs(x, stats, b, k, k // HEAD, here, here, columns, HEAD, SPLITS)
            if NORMED:
                squares += tl.sum(given * given, 0)
            if GAINED:
                given *= tl.load(gain + k, mask=k < columns, other=0).to(tl.float32)
            found = tl.dot(part, given.to(part.dtype), found, input_precision="ieee")
        if NORMED:
            found *= tl.rsqrt(squares / columns + eps)[None, :]
    return found


@triton.jit
def project(
    q, k, v, x, gain, y, size, of_q, of_kv, batch, eps,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, STEPS: tl.constexpr, BATCH: tl.constexpr,
    EVEN: tl.constexpr, GAINED: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Norm, then queries, keys and values side by side."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    program = tl.program_id(0)
    w, rows, to = q, of_q, program * 0
    if program >= tl.cdiv(of_q, ROWS):
        program -= tl.cdiv(of_q, ROWS)
        w, rows, to = k, of_kv, of_q
        if program >= tl.cdiv(of_kv, ROWS):
            program -= tl.cdiv(of_kv, ROWS)
            w, to = v, of_q + of_kv
    row = program * ROWS + tl.arange(0, ROWS)
    found = _product(
        w, x, x, gain, row, rows, size, batch, eps,
        ROWS, BLOCK, STEPS, BATCH, EVEN, True, GAINED, 0, 1, PDL,
    )  # fmt: skip
    b = tl.arange(0, BATCH)[None, :]
    here = (row < rows)[:, None] & (b < batch)
    tl.store(y + b * (of_q + 2 * of_kv) + to + row[:, None], found, mask=here)


@triton.jit
def add(
    w, given, stats, x, rows, columns, batch,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, STEPS: tl.constexpr, BATCH: tl.constexpr,
    EVEN: tl.constexpr, HEAD: tl.constexpr, SPLITS: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Add what a linear map makes of its input to the stream `x`."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    found = _product(
        w, given, stats, x, row, rows, columns, batch, 0.0,
        ROWS, BLOCK, STEPS, BATCH, EVEN, False, False, HEAD, SPLITS, PDL,
    )  # fmt: skip
    b = tl.arange(0, BATCH)[None, :]
    here = (row < rows)[:, None] & (b < batch)
    to = x + b * rows + row[:, None]
    tl.store(to, tl.load(to, mask=here, other=0) + found, mask=here)


@triton.jit
def _activated(x, NAME: tl.constexpr):
    if NAME == "relu2":
        found = tl.maximum(x, 0) * tl.maximum(x, 0)
    elif NAME == "relu":
        found = tl.maximum(x, 0)
    elif NAME == "gelu":
        found = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
    elif NAME == "silu":
        found = x * tl.sigmoid(x)
    else:
        tl.static_assert(NAME == "sigmoid")
        found = tl.sigmoid(x)
    return found


@triton.jit
def widen(
    up, gate, x, gain, y, size, rows, batch, eps,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, STEPS: tl.constexpr, BATCH: tl.constexpr,
    EVEN: tl.constexpr, GAINED: tl.constexpr, NAME: tl.constexpr, GATED: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    """Norm, then the first half of an MLP."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    found = _product(
        up, x, x, gain, row, rows, size, batch, eps,
        ROWS, BLOCK, STEPS, BATCH, EVEN, True, GAINED, 0, 1, PDL,
    )  # fmt: skip
    if GATED:
        gates = _product(
            gate, x, x, gain, row, rows, size, batch, eps,
            ROWS, BLOCK, STEPS, BATCH, EVEN, True, GAINED, 0, 1, PDL,
        )  # fmt: skip
        found *= _activated(gates, NAME)
    else:
        found = _activated(found, NAME)
    b = tl.arange(0, BATCH)[None, :]
    here = (row < rows)[:, None] & (b < batch)
    tl.store(y + b * rows + row[:, None], found.to(y.dtype.element_ty), mask=here)


@triton.jit
def score(
    w, x, gain, y, temperature, best, likeliest, totals, size, rows, batch, eps, cap,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, STEPS: tl.constexpr, BATCH: tl.constexpr,
    EVEN: tl.constexpr, GAINED: tl.constexpr, CAPPED: tl.constexpr, CHOICE: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    """Norm, then the logits; and what `choose` needs to know of each program's part of them.

    That is the best logit and its token, and with `CHOICE` 2 the sum of their exponentials
    over the temperature, from the best one down; `[sequences, programs]` each.
    """
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    found = _product(
        w, x, x, gain, row, rows, size, batch, eps,
        ROWS, BLOCK, STEPS, BATCH, EVEN, True, GAINED, 0, 1, PDL,
    )  # fmt: skip
    if CAPPED:
        # The hyperbolic tangent, by its series where the difference would lose digits.
        z = found / cap
        z2 = z * z
        series = z * (1 - z2 * (1 / 3 - z2 * (2 / 15 - z2 * (17 / 315))))
        found = cap * tl.where(z2 < 0.01, series, 2 * tl.sigmoid(2 * z) - 1)
    b = tl.arange(0, BATCH)
    here = (row < rows)[:, None] & (b < batch)[None, :]
    tl.store(y + b.to(tl.int64)[None, :] * rows + row[:, None], found, mask=here)
    if CHOICE > 0:
        # NaN must not be overlooked.
        found = tl.where(found == found, found, float("inf"))
        found = tl.where((row < rows)[:, None], found, float("-inf"))
        high = tl.max(found, 0)
        to = b * tl.num_programs(0) + tl.program_id(0)
        tl.store(best + to, high, mask=b < batch)
        token = tl.min(tl.where(found == high[None, :], row[:, None], rows), 0)
        tl.store(likeliest + to, token, mask=b < batch)
        if CHOICE == 2:
            heat = tl.load(temperature + b, mask=b < batch, other=1)
            heat = tl.where(heat == 0, 1.0, heat)
            down = (found.to(tl.float64) - high.to(tl.float64)[None, :]) / heat[None, :]
            tl.store(totals + to, tl.sum(tl.exp(down), 0), mask=b < batch)
