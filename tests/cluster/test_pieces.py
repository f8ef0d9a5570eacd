"""Whole tensors cut into blocks and joined again."""

import pytest
import torch
from hypothesis import given, strategies as st

from hotgrid.cluster import Mesh, join, take
from hotgrid.errors import ArgumentError


@given(st.integers(1, 3), st.integers(1, 3), st.integers(3, 8), st.integers(3, 8))
def test_joined_pieces_are_the_whole(rows, columns, height, width):
    whole = torch.arange(2 * height * width).reshape(2, height, width)
    blocks = Mesh((rows, columns)).blocks((height, width))
    pieces = [take(whole, block) for block in blocks]
    assert all(piece.is_contiguous() for piece in pieces)
    assert torch.equal(join(pieces, blocks), whole)


def test_a_padded_piece_is_wrapped():
    block = Mesh("2x1").block(1, (4, 3)).padded((1, 1))
    whole = torch.arange(12).reshape(4, 3)
    rows, columns = [1, 2, 3, 0], [2, 0, 1, 2, 0]
    assert torch.equal(take(whole, block), whole[rows][:, columns])


def test_a_piece_shares_no_memory_with_the_whole():
    whole = torch.zeros(4)
    take(whole, Mesh("1").block(0, (4,))).fill_(1)
    assert whole.sum() == 0


def test_what_does_not_fit():
    blocks = Mesh("2").blocks((5,))
    with pytest.raises(ArgumentError, match=r"a grid of \(5,\), got \(2, 6\)"):
        take(torch.zeros(2, 6), blocks[0])
    with pytest.raises(ArgumentError, match="1 pieces for 2 blocks"):
        join([torch.zeros(3)], blocks)
    with pytest.raises(ArgumentError, match="without margins"):
        join([torch.zeros(3), torch.zeros(3)], blocks)
