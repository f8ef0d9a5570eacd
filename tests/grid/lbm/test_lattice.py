"""Lattices: the symmetries that a fluid needs."""

from itertools import product

import pytest

from hotgrid.errors import ArgumentError
from hotgrid.grid.lbm import D2Q9, D3Q19, D3Q27, Flow, Lattice
from hotgrid.grid.lbm._lattice import find_lattice

LATTICES = pytest.mark.parametrize("lattice", [D2Q9, D3Q19, D3Q27], ids=lambda x: x.name)


def moment(lattice: Lattice, *axes: int) -> float:
    """The weighted mean of a product of velocity components."""
    found = 0.0
    for w, c in zip(lattice.weights, lattice.velocities, strict=True):
        term = w
        for axis in axes:
            term *= c[axis]
        found += term
    return found


@LATTICES
def test_it_has_the_velocities_of_its_name(lattice: Lattice):
    assert lattice.name == f"D{lattice.rank}Q{lattice.count}"
    assert len(set(lattice.velocities)) == lattice.count
    assert {c for v in lattice.velocities for c in v} == {-1, 0, 1}


@LATTICES
def test_moments_up_to_the_fourth_are_isotropic(lattice: Lattice):
    axes = range(lattice.rank)
    assert moment(lattice) == pytest.approx(1, abs=1e-15)
    for a in axes:
        assert moment(lattice, a) == 0
    for a, b in product(axes, axes):
        assert moment(lattice, a, b) == pytest.approx((a == b) / 3, abs=1e-15)
    for a, b, c in product(axes, axes, axes):
        assert moment(lattice, a, b, c) == 0
    for a, b, c, d in product(axes, axes, axes, axes):
        even = (a == b) * (c == d) + (a == c) * (b == d) + (a == d) * (b == c)
        assert moment(lattice, a, b, c, d) == pytest.approx(even / 9, abs=1e-15)


@LATTICES
def test_opposites_come_in_pairs(lattice: Lattice):
    assert lattice.velocities[0] == (0,) * lattice.rank
    assert lattice.pairs == tuple((i, i + 1) for i in range(1, lattice.count, 2))
    for i, o in enumerate(lattice.opposite):
        assert lattice.velocities[o] == tuple(-c for c in lattice.velocities[i])
        assert lattice.weights[o] == lattice.weights[i]


@LATTICES
def test_a_mirror_turns_one_component(lattice: Lattice):
    for axis in range(lattice.rank):
        for i, v in enumerate(lattice.velocities):
            other = lattice.velocities[lattice.mirrored(i, axis)]
            assert [a + b for a, b in zip(v, other, strict=True)] == [
                0 if a == axis else 2 * c for a, c in enumerate(v)
            ]


def test_a_lattice_is_found_by_name():
    assert find_lattice("d3q19") is D3Q19
    assert Flow(lattice="D3Q27").fields[0].components == 27
    with pytest.raises(
        ArgumentError, match=r"`lattice` 'D2Q8' is unknown; use .*; did you mean `D2Q9`\?$"
    ):
        find_lattice("D2Q8")
