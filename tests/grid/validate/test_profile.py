"""Reading a profile at the points of a table."""

import pytest
import torch
from hypothesis import given, strategies as st

from hotgrid.grid.validate._references import (
    _botella_peyret as botella_peyret,
    _ghia as ghia,
    interpolated,
)


def centres(n: int) -> torch.Tensor:
    """Cell centres between two walls, and the walls."""
    inside = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    return torch.cat([torch.zeros(1).double(), inside, torch.ones(1).double()])


@given(st.lists(st.floats(-3, 3), min_size=4, max_size=4), st.integers(4, 40))
def test_a_cubic_is_met_exactly_on_uneven_points(factors: list[float], n: int):
    def cubic(x: torch.Tensor) -> torch.Tensor:
        return sum((a * x**k for k, a in enumerate(factors)), torch.zeros_like(x))

    at = torch.tensor(ghia.Y, dtype=torch.float64)
    found = interpolated(centres(n), cubic(centres(n)), at)
    torch.testing.assert_close(found, cubic(at), rtol=0, atol=1e-11)


def test_a_profile_like_that_of_the_cavity_is_met_at_fourth_order():
    def profile(x: torch.Tensor) -> torch.Tensor:
        return torch.exp(20 * (x - 1)) - 0.3 * torch.sin(3 * x)

    at = torch.tensor(ghia.Y, dtype=torch.float64)
    errors = [
        (interpolated(centres(n), profile(centres(n)), at) - profile(at)).abs().max().item()
        for n in (64, 128)
    ]
    assert errors[1] < 1e-5
    assert errors[0] / errors[1] > 8


def test_points_and_ends_are_met():
    x = centres(8)
    y = torch.sin(5 * x)
    torch.testing.assert_close(interpolated(x, y, x), y)


@pytest.mark.parametrize("table", [ghia.U, ghia.V])
@pytest.mark.parametrize("reynolds", [100, 400, 1000])
def test_a_column_of_the_tables_has_a_value_for_every_point(
    table: dict[int, tuple[float, ...]], reynolds: int
):
    points = ghia.Y if table is ghia.U else ghia.X
    assert len(table[reynolds]) == len(points) == 15
    assert list(points) == sorted(points)


@pytest.mark.parametrize(("name", "places"), [("u", ghia.Y), ("v", ghia.X)])
def test_the_points_in_doubt_are_those_off_the_spectral_solution(
    name: str, places: tuple[float, ...]
):
    printed = {"u": ghia.U, "v": ghia.V}[name][1000]
    spectral = {"u": botella_peyret.U, "v": botella_peyret.V}[name]
    off = [x for x, a, b in zip(places, printed, spectral, strict=True) if abs(a - b) > 0.01]
    assert tuple(off) == ghia.DOUBTED.get((name, 1000), ())
