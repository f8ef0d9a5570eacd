"""Learning each form from a matrix: `Recipe`s, from the narrowest codes to the widest."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.kernels._codebook._coded import BLOCK, GROUP, Coded, packed, rotated

from ._clusters import clusters, nearest, subvectors

_SAMPLE = 2**18  # weights that levels are learned from
_SEED = 0
_MOST_ROWS = 256  # that a byte can name


@dataclass(frozen=True)
class Sizes:
    """The facts that determine the size of a coded matrix.

    Attributes:
        rows: Rows of the matrix.
        cols: Columns of the matrix.
        different: How many of its rows are not the same as another.
        rotated: Whether `pq` rotates the columns.
    """

    rows: int
    cols: int
    different: int
    rotated: bool = False


@dataclass(frozen=True)
class Recipe:
    """One way to code a matrix.

    Attributes:
        form: `rows`, `pq`, `int4` or `int8`.
        bits: Bits of the codes for each weight; for `rows` almost none.
        fit: `(weight, importance, signs)`: the coded matrix. Importance is how much an
            error in each column matters, `[cols]`; signs, if any, rotate the columns.
        bytes: What the coded matrix takes, everything counted; known before it is learned.
            `rows` may turn out smaller, never larger.
        width: Columns must be a multiple of it.
    """

    form: str
    bits: float
    fit: Callable[[Tensor, Tensor, Tensor | None], Coded]
    bytes: Callable[[Sizes], int]
    width: int = 1


def fit_int8(weight: Tensor, importance: Tensor, signs: Tensor | None) -> Coded:
    """Round rows to 255 steps between plus and minus their largest."""
    scale = weight.abs().amax(1).clamp_min(1e-30) / 127
    codes = (weight / scale[:, None]).round().to(torch.int8)
    return Coded("int8", weight.shape[1], codes, scale)


def fit_int4(weight: Tensor, importance: Tensor, signs: Tensor | None) -> Coded:
    """Round groups of 64 to 16 steps, with the best of several scales for each."""
    rows, cols = weight.shape
    groups = -(-cols // GROUP)
    padded = torch.nn.functional.pad(weight, (0, groups * GROUP - cols))
    matters = torch.nn.functional.pad(importance, (0, groups * GROUP - cols))
    grouped, matters = padded.view(rows, groups, GROUP), matters.view(groups, GROUP)
    most = grouped.abs().amax(2).clamp_min(1e-30)
    best = torch.full_like(most, float("inf"))
    scale = torch.zeros_like(most, dtype=torch.bfloat16)
    for share in (0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0):
        # Rounded before it is used, so that the codes fit the scale that is kept.
        tried = (share * most / 7).bfloat16()
        error = (
            (_steps(grouped, tried) * tried.float()[..., None] - grouped) ** 2 * matters
        ).sum(2)
        better = error < best
        best, scale = torch.where(better, error, best), torch.where(better, tried, scale)
    codes = _steps(grouped, scale) + 8
    return Coded("int4", cols, packed(codes.flatten(1).to(torch.uint8)), scale)


def _steps(grouped: Tensor, scale: Tensor) -> Tensor:
    return (grouped / scale.float()[..., None]).round().clamp(-8, 7)


def fit_rows(weight: Tensor, importance: Tensor, signs: Tensor | None) -> Coded:
    """Cluster whole rows: at most 256 different ones are left."""
    draw = torch.Generator(weight.device).manual_seed(_SEED)
    centres = clusters(weight, importance, min(_MOST_ROWS, weight.shape[0]), draw)
    kept = fit_int8(centres, importance, None)
    used, ids = nearest(weight, importance, kept.decoded()).unique(return_inverse=True)
    table, scale = kept.codes[used], kept.scale[used]
    return Coded("rows", weight.shape[1], ids.to(torch.uint8), scale, table)


def fit_levels(weight: Tensor, importance: Tensor, signs: Tensor | None) -> Coded:
    """Sixteen levels for every weight, the same for all rows; each row has a scale."""
    turned = weight if signs is None else rotated(weight, signs)
    size = row_size(turned)
    plain = turned / size[:, None]
    draw = torch.Generator(weight.device).manual_seed(_SEED)
    matters = importance.expand_as(plain).flatten()
    count = min(_SAMPLE, plain.numel())
    some = torch.randint(plain.numel(), (count,), generator=draw, device=draw.device)
    levels = clusters(plain.flatten()[some, None], matters[some, None], 16, draw).sort(0)[0]
    table = (levels[:, 0] / levels.abs().max().clamp_min(1e-30) * 127).round()
    unit = levels.abs().max() / 127
    edges = (table[1:] + table[:-1]) / 2
    codes = torch.bucketize(plain / unit, edges)
    # The scale that suits the levels as they have been rounded.
    taken = table[codes]
    scale = (importance * taken * turned).sum(1) / (importance * taken * taken).sum(
        1
    ).clamp_min(1e-30)
    return Coded("pq", weight.shape[1], packed(codes), scale, table.to(torch.int8), signs)


def row_size(weight: Tensor) -> Tensor:
    """Return the root mean square of each row."""
    return weight.square().mean(1).sqrt().clamp_min(1e-30)


def _pq(width: int, books: int) -> Callable[[Tensor, Tensor, Tensor | None], Coded]:
    def fit(weight: Tensor, importance: Tensor, signs: Tensor | None) -> Coded:
        turned = weight if signs is None else rotated(weight, signs)
        size = row_size(turned)
        codes, table = subvectors(turned / size[:, None], importance, width, books)
        return Coded("pq", weight.shape[1], codes, size, table, signs)

    return fit


def _bytes_of_rows(sizes: Sizes) -> int:
    centroids = min(_MOST_ROWS, sizes.different)
    return centroids * (sizes.cols + 4) + sizes.rows


def _bytes_of_pq(width: int, books: int) -> Callable[[Sizes], int]:
    def count(sizes: Sizes) -> int:
        blocks, tables = -(-sizes.rows // BLOCK), -(-books * sizes.cols // (4 * width)) * 4
        table = 4 * books * width * 16
        return blocks * tables * 16 + 4 * sizes.rows + table + sizes.rotated * sizes.cols

    return count


def _bytes_of_levels(sizes: Sizes) -> int:
    codes = sizes.rows * -(-sizes.cols // GROUP) * GROUP // 2
    return codes + 4 * sizes.rows + 16 + sizes.rotated * sizes.cols


def _bytes_of_int4(sizes: Sizes) -> int:
    return sizes.rows * -(-sizes.cols // GROUP) * (GROUP // 2 + 2)


def _bytes_of_int8(sizes: Sizes) -> int:
    return sizes.rows * (sizes.cols + 4)


RECIPES = (
    Recipe("rows", 0.0, fit_rows, _bytes_of_rows),
    Recipe("pq", 1.0, _pq(8, 2), _bytes_of_pq(8, 2), width=8),
    Recipe("pq", 2.0, _pq(4, 2), _bytes_of_pq(4, 2), width=4),
    Recipe("pq", 3.0, _pq(4, 3), _bytes_of_pq(4, 3), width=4),
    Recipe("pq", 4.0, fit_levels, _bytes_of_levels),
    Recipe("int4", 4.25, fit_int4, _bytes_of_int4),
    Recipe("int8", 8.0, fit_int8, _bytes_of_int8),
)
"""From the narrowest codes to the widest. Which one is smallest depends on the matrix."""

FORMS = tuple(dict.fromkeys(each.form for each in RECIPES))
