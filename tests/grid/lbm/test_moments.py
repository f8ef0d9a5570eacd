"""Equilibrium carries the density and momentum it was made from, and the right stress."""

import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.grid.lbm import D2Q9, D3Q19, D3Q27, Lattice, at_equilibrium, equilibrium, moments
from hotgrid.grid.lbm._collision import stress
from hotgrid.grid.lbm._moments import half_source

lattices = st.sampled_from([D2Q9, D3Q19, D3Q27])
seeds = st.integers(0, 2**31)


def fluid(lattice: Lattice, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A density near one and a slow velocity for three cells."""
    g = torch.Generator().manual_seed(seed)
    excess = 0.1 * (torch.rand(3, generator=g, dtype=torch.float64) - 0.5)
    velocity = 0.2 * (torch.rand(lattice.rank, 3, generator=g, dtype=torch.float64) - 0.5)
    return excess, velocity


@settings(max_examples=30)
@given(lattices, seeds)
def test_equilibrium_has_its_density_momentum_and_stress(lattice: Lattice, seed: int):
    excess, u = fluid(lattice, seed)
    momentum = (1 + excess) * u
    g = equilibrium(lattice, excess, list(momentum))
    found_excess, found_momentum = moments(lattice, g)
    torch.testing.assert_close(found_excess, excess, rtol=0, atol=1e-15)
    torch.testing.assert_close(torch.stack(found_momentum), momentum, rtol=0, atol=1e-15)
    for (a, b), pi in stress(lattice, g).items():
        wanted = momentum[a] * u[b] + (a == b) * excess / 3
        torch.testing.assert_close(pi, wanted, rtol=0, atol=1e-15)


@settings(max_examples=30)
@given(lattices, seeds)
def test_shifted_equilibrium_is_the_textbook_one_minus_weights(lattice: Lattice, seed: int):
    excess, u = fluid(lattice, seed)
    rho = 1 + excess
    g = equilibrium(lattice, excess, list(rho * u))
    square = (u * u).sum(0)
    for i, c in enumerate(lattice.velocities):
        cu = (torch.tensor(c, dtype=torch.float64).unsqueeze(1) * u).sum(0)
        f = lattice.weights[i] * rho * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * square)
        torch.testing.assert_close(g[i] + lattice.weights[i], f, rtol=0, atol=1e-15)


@settings(max_examples=30)
@given(lattices, seeds, st.sampled_from([0, 1, -1]))
def test_a_force_adds_momentum_and_no_mass(lattice: Lattice, seed: int, still: int):
    _, u = fluid(lattice, seed)
    force = [0.0 if a == still % lattice.rank else 0.01 * (a + 1) for a in range(lattice.rank)]
    excess, momentum = moments(lattice, half_source(lattice, list(u), force))
    torch.testing.assert_close(excess, torch.zeros_like(excess), rtol=0, atol=1e-16)
    for m, f in zip(momentum, force, strict=True):
        torch.testing.assert_close(m, torch.full_like(m, f / 2), rtol=0, atol=1e-16)


@pytest.mark.parametrize("lattice", [D2Q9, D3Q19, D3Q27], ids=lambda x: x.name)
def test_a_fluid_at_rest_is_stored_as_zeros(lattice: Lattice):
    size = (2, 3, 4)[-lattice.rank :]
    state = at_equilibrium(lattice, torch.ones(size), [torch.zeros(size)] * lattice.rank)
    assert state.shape == (lattice.count, *size)
    assert not state.any()
