"""Spherical harmonics against the addition theorem, quadrature and closed forms."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.blt import angular_density, spherical_harmonics
from hotgrid.errors import ArgumentError

part = st.floats(-1, 1)
directions = st.tuples(part, part, part).filter(lambda v: math.hypot(*v) > 1e-3)


def unit(values: tuple[float, float, float]) -> torch.Tensor:
    vector = torch.tensor([values], dtype=torch.float64)
    return vector / vector.norm()


def test_low_degrees_have_closed_forms():
    u = torch.nn.functional.normalize(
        torch.randn(50, 3, generator=torch.Generator().manual_seed(0)).double(), dim=1
    )
    x, y, z = u.unbind(1)
    one, two = math.sqrt(3 / (4 * math.pi)), math.sqrt(15 / (4 * math.pi))
    wanted = [torch.full_like(x, math.sqrt(1 / (4 * math.pi))), one * y, one * z, one * x]
    wanted += [two * x * y, two * y * z, math.sqrt(5 / (16 * math.pi)) * (3 * z * z - 1)]
    wanted += [two * x * z, two / 2 * (x * x - y * y)]
    torch.testing.assert_close(spherical_harmonics(u, 2), torch.stack(wanted, 1))


@settings(deadline=None, max_examples=40)
@given(directions, directions)
def test_the_addition_theorem(a: tuple, b: tuple):
    """For each degree, products summed over orders are a Legendre polynomial of the cosine."""
    degree = 24
    one, other = unit(a), unit(b)
    products = (spherical_harmonics(one, degree) * spherical_harmonics(other, degree))[0]
    cosine = float((one * other).sum())
    for level in range(degree + 1):
        wanted = np.polynomial.legendre.Legendre.basis(level)(cosine)
        found = float(products[level**2 : (level + 1) ** 2].sum())
        assert found == pytest.approx((2 * level + 1) / (4 * math.pi) * wanted, abs=1e-10)


def test_they_are_orthonormal_up_to_degree_64():
    degree = 64
    heights, weights = np.polynomial.legendre.leggauss(degree + 1)
    turns = 2 * degree + 2
    phi = 2 * math.pi * np.arange(turns) / turns
    z = np.repeat(heights, turns)
    wide = np.sqrt(1 - z**2)
    angle = np.tile(phi, len(heights))
    units = np.stack([wide * np.cos(angle), wide * np.sin(angle), z], 1)
    area = torch.from_numpy(np.repeat(weights, turns) * 2 * math.pi / turns)
    # Some columns are enough; all of them are 4225 squared.
    some = torch.tensor([0, 1, 5, 100, 1000, 2500, 4000, *range(4096, 4225, 7)])
    found = spherical_harmonics(torch.from_numpy(units), degree)[:, some]
    products = (found * area[:, None]).T @ found
    torch.testing.assert_close(products, torch.eye(len(some)).double(), atol=1e-10, rtol=0)


def test_density_of_even_and_of_crowded_directions():
    generator = torch.Generator().manual_seed(0)
    even = torch.randn(20_000, 3, generator=generator).double()
    even /= even.norm(dim=1, keepdim=True)
    assert float((angular_density(even, degree=8) - 1).abs().max()) < 0.2
    crowd = torch.tensor([0.0, 0.6, 0.8]).double().expand(20_000, 3)
    found = angular_density(torch.cat([even, crowd]), degree=16)
    # All at one place: the kernel at its middle, and half of the points.
    levels = np.arange(17)
    kernel = ((2 * levels + 1) * np.exp(-5 * levels * (levels + 1) / (16 * 17))).sum()
    assert float(found[-1]) == pytest.approx(0.5 * kernel + 0.5, rel=0.02)
    away = even @ crowd[0] < 0
    assert float((found[: len(even)][away] - 0.5).abs().max()) < 0.25


@settings(deadline=None, max_examples=20)
@given(st.lists(directions, min_size=1, max_size=20), directions)
def test_density_does_not_depend_on_how_the_sphere_is_turned(points: list, normal: tuple):
    units = torch.cat([unit(each) for each in points])
    axis = unit(normal)
    mirrored = units - 2 * (units @ axis.T) * axis
    torch.testing.assert_close(
        angular_density(units, degree=6), angular_density(mirrored, degree=6)
    )


def test_what_is_wrong_is_said():
    with pytest.raises(ArgumentError, match="`degree` is -1"):
        spherical_harmonics(torch.zeros(1, 3), -1)
    with pytest.raises(ArgumentError, match="at least 1"):
        angular_density(torch.zeros(1, 3), degree=0)
    assert angular_density(torch.zeros(0, 3)).shape == (0,)
