"""Fourier transforms of split grids against those of whole ones, and what they are made of."""

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor

from hotgrid.cluster import (
    Communicator,
    GridFourier,
    Mesh,
    SingleRank,
    join,
    redistribute,
    run_ranks,
    take,
)
from hotgrid.cluster._fourier import stages
from hotgrid.errors import ArgumentError

# Slabs of even and uneven sizes, meshes that are not slabs, a line, and pencils.
CASES = [
    ((8, 6), "2x1"),
    ((9, 7), "1x2"),
    ((10, 8), "2x2"),
    ((11,), "3"),
    ((6, 5, 8), "2x2x1"),
    ((5, 4, 6), "1x1x2"),
    pytest.param((4, 4, 4), "2x2x2", id="pencils"),
]


def numbers(size: tuple[int, ...]) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(3, *size, generator=generator, dtype=torch.float64)


def smoothed(x: Tensor, fourier: GridFourier) -> Tensor:
    """A function of all cells, by modes of real numbers."""
    square = sum(k * k for k in fourier.wavenumbers())
    return fourier.irfft(fourier.rfft(x) / (1 + square))


@pytest.mark.parametrize(("size", "mesh"), CASES)
def test_transforms_and_gradients_are_those_of_a_whole_grid(size, mesh):
    x = numbers(size).requires_grad_()
    whole = smoothed(x, GridFourier(SingleRank(), "1", size))
    whole.pow(3).sum().backward()
    dims = tuple(range(-len(size), 0))
    phase = torch.fft.fftn(torch.complex(x, x**2), dim=dims)
    expected = torch.fft.ifftn(phase * phase.abs(), dim=dims).detach()

    def part(communicator: Communicator) -> tuple[Tensor, Tensor | None, Tensor]:
        fourier = GridFourier(communicator, mesh, size)
        own = take(x.detach(), fourier.block).requires_grad_()
        found = smoothed(own, fourier)
        found.pow(3).sum().backward()
        modes = fourier.fft(torch.complex(own.detach(), own.detach() ** 2))
        return found.detach(), own.grad, fourier.ifft(modes * modes.abs())

    blocks = Mesh(mesh).blocks(size)
    found, slopes, complex_ones = zip(*run_ranks(Mesh(mesh).ranks, part), strict=True)
    assert x.grad is not None
    torch.testing.assert_close(join(found, blocks), whole.detach(), rtol=0, atol=1e-13)
    torch.testing.assert_close(join(slopes, blocks), x.grad, rtol=0, atol=1e-12)
    torch.testing.assert_close(join(complex_ones, blocks), expected, rtol=1e-12, atol=1e-12)


@given(
    st.lists(st.integers(1, 3), min_size=2, max_size=2),
    st.lists(st.integers(3, 7), min_size=2, max_size=2),
)
def test_layouts_cover_every_cell_once(parts: list[int], size: list[int]):
    ranks = parts[0] * parts[1]
    modes = (size[0] * 3, size[1] * 3)
    plan = stages(modes, ranks)
    assert sorted(axis for stage in plan for axis in stage.axes) == [0, 1]
    for stage in plan:
        seen = torch.zeros(modes)
        for block in stage.blocks(modes):
            assert all(not block.cut[axis] for axis in stage.axes)
            seen[block.slices] += 1
        assert (seen == 1).all()


def test_a_slab_needs_one_exchange_and_another_mesh_two():
    def sent(mesh: str) -> int:
        def part(communicator: Communicator) -> int:
            fourier = GridFourier(communicator, mesh, (8, 6))
            fourier.rfft(take(numbers((8, 6)), fourier.block))
            return fourier.bytes_sent

        return run_ranks(2, part)[0]

    # Half of 3 x 4 x 4 modes of 16 bytes; before that half of 3 x 8 x 3 cells of 8.
    assert sent("2x1") == 3 * 4 * 4 * 16 // 2
    assert sent("1x2") == 3 * 4 * 4 * 16 // 2 + 3 * 8 * 3 * 8 // 2


def test_too_many_ranks_are_refused():
    with pytest.raises(ArgumentError, match=r"9 ranks are too many .* use at most 5"):
        stages((16, 5), 9)


def test_what_does_not_fit_is_reported():
    rows = Mesh("2").blocks((4, 4))
    with pytest.raises(ArgumentError, match="1 ranks need as many blocks, got 2 and 2"):
        redistribute(torch.zeros(2, 4), SingleRank(), rows, rows)
    whole = Mesh("1").blocks((4, 4))
    with pytest.raises(ArgumentError, match=r"must be cells of Block.* got the shape \(2, 4\)"):
        redistribute(torch.zeros(2, 4), SingleRank(), whole, whole)
    with pytest.raises(ArgumentError, match=r"takes real numbers, got torch.complex64; use"):
        fourier = GridFourier(SingleRank(), "1", (4, 4))
        fourier.rfft(torch.zeros(4, 4, dtype=torch.complex64))
