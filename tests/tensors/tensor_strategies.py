"""Random arrays for the property tests of tensors."""

from collections.abc import Sequence

import numpy as np
from hypothesis import settings, strategies as st

from hotgrid.tensors._slices import SliceItem

quick = settings(deadline=None, max_examples=60)

DTYPES = (np.bool_, np.int64, np.float64)


@st.composite
def arrays(
    draw: st.DrawFn, min_rank: int = 1, max_rank: int = 3, min_side: int = 0, max_side: int = 5
):
    """An array of random shape (empty ones too), dtype and content."""
    shape = draw(
        st.lists(st.integers(min_side, max_side), min_size=min_rank, max_size=max_rank)
    )
    return draw(filled(shape))


@st.composite
def filled(draw: st.DrawFn, shape: Sequence[int]):
    dtype = draw(st.sampled_from(DTYPES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if dtype is np.float64:
        return rng.standard_normal(shape)
    return rng.integers(0, 2 if dtype is np.bool_ else 100, shape).astype(dtype)


@st.composite
def some_dims(draw: st.DrawFn, rank: int):
    """One or more different dims of a rank, in any order, some counted from the end."""
    chosen = draw(st.permutations(range(rank)))[: draw(st.integers(1, rank))]
    return tuple(draw(st.sampled_from([dim, dim - rank])) for dim in chosen)


ends = st.none() | st.integers(-8, 8)
slice_items = st.builds(slice, ends, ends, st.none() | st.integers(1, 4))


@st.composite
def indices(draw: st.DrawFn, shape: tuple[int, ...]):
    """An index that is legal for `shape`, with ints, slices and perhaps an ellipsis."""
    items: list[SliceItem] = [
        draw(slice_items | st.integers(-n, n - 1) if n else slice_items)
        for n in shape[: draw(st.integers(0, len(shape)))]
    ]
    place = draw(st.integers(0, len(items)))
    if draw(st.booleans()) and len(items) == len(shape):
        items.insert(place, ...)
    return tuple(items) or (...,)
