"""Solids from distances, boxes, balls and pictures."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, strategies as st
from matplotlib.image import imsave

from hotgrid.errors import ArgumentError
from hotgrid.grid.lbm import ball, box, from_distance, from_image


@given(st.floats(0, 11), st.floats(0, 13), st.floats(0.5, 6))
def test_a_ball_is_all_cells_nearer_than_its_radius(y: float, x: float, radius: float):
    found = ball((y, x), radius)((12, 14))
    for i in range(12):
        for j in range(14):
            assert found[i, j] == ((i - y) ** 2 + (j - x) ** 2 < radius**2)


def test_a_box_takes_its_edges_in():
    found = box((1, 2, 0), (2, 3, 1))((4, 5, 2))
    assert found.sum() == 2 * 2 * 2
    assert found[1:3, 2:4].all()


def test_a_distance_sees_the_coordinates_in_the_order_of_the_axes():
    found = from_distance(lambda z, y, x: z + 10 * y + 100 * x - 210.5)((2, 3, 4))
    z, y, x = torch.meshgrid(*[torch.arange(n) for n in (2, 3, 4)], indexing="ij")
    assert torch.equal(found, z + 10 * y + 100 * x <= 210)


def test_a_distance_may_leave_out_an_axis():
    assert from_distance(lambda y, x: x - 1.5)((3, 4)).sum() == 6


def test_a_picture_is_stretched_over_the_grid():
    picture = torch.tensor([[0, 255], [255, 0]], dtype=torch.uint8)
    found = from_image(picture)((4, 6))
    assert torch.equal(found, (picture == 0).repeat_interleave(2, 0).repeat_interleave(3, 1))
    assert torch.equal(from_image(picture, dark=False)((4, 6)), ~found)


@pytest.mark.parametrize("channels", [3, 4])
def test_a_picture_file_is_read(tmp_path: Path, channels: int):
    pixels = torch.ones(3, 5, channels)
    pixels[1, 2:4, :3] = 0
    file = tmp_path / "body.png"
    imsave(file, pixels.numpy())
    found = from_image(file)((3, 5))
    assert found.nonzero().tolist() == [[1, 2], [1, 3]]


def test_what_is_no_solid_is_refused(tmp_path: Path):
    with pytest.raises(ArgumentError, match=r"`radius` must be above 0, got 0"):
        ball((1, 1), 0)
    with pytest.raises(
        ArgumentError, match=r"`low` \(2, 0\) must not be above `high` \(1, 3\)"
    ):
        box((2, 0), (1, 3))
    with pytest.raises(
        ArgumentError, match=r"a picture is \[h, w\] or \[h, w, channels\], got"
    ):
        from_image(torch.zeros(3))
    with pytest.raises(ArgumentError, match=r"a solid in 2 dims, but the grid is \(2, 2, 2\)"):
        from_image(torch.zeros(3, 3))((2, 2, 2))
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"not a picture")
    for path in (broken, tmp_path / "missing.png"):
        with pytest.raises(ArgumentError, match=r"the picture '.*' cannot be read"):
            from_image(path)
