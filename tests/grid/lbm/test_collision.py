"""Collisions: what they conserve, and how they relate to each other."""

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.errors import ArgumentError
from hotgrid.grid import Simulation
from hotgrid.grid.lbm import (
    BGK,
    D2Q9,
    D3Q19,
    D3Q27,
    KBC,
    MRT,
    TRT,
    Collision,
    Flow,
    Lattice,
    Regularized,
    Smagorinsky,
    moments,
)
from hotgrid.grid.lbm._collision import find_collision, stress

OPERATORS = (BGK(), TRT(), MRT(), KBC(), Regularized(), Smagorinsky())
lattices = st.sampled_from([D2Q9, D3Q19, D3Q27])
seeds = st.integers(0, 2**31)
omegas = st.floats(0.1, 1.99)


def populations(lattice: Lattice, seed: int) -> list[torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    noise = torch.rand(lattice.count, 4, generator=g, dtype=torch.float64) - 0.5
    return list(0.02 * noise)


def collided(
    collision: Collision, lattice: Lattice, g: list[torch.Tensor], omega: float, force=()
) -> list[torch.Tensor]:
    flow = Flow(lattice=lattice, collision=collision)
    return flow._collide(g, torch.tensor(omega, dtype=torch.float64), force)


def deviation(lattice: Lattice, seed: int) -> list[torch.Tensor]:
    """Populations without mass and momentum, as a collision is given."""
    g = populations(lattice, seed)
    return [b - a for a, b in zip(g, collided(BGK(), lattice, g, 1.0), strict=True)]


@pytest.mark.parametrize("collision", OPERATORS, ids=lambda c: type(c).__name__)
@settings(max_examples=20)
@given(lattices, seeds, omegas)
def test_mass_and_momentum_are_conserved(
    collision: Collision, lattice: Lattice, seed: int, omega: float
):
    g = populations(lattice, seed)
    before, after = (
        moments(lattice, g),
        moments(lattice, collided(collision, lattice, g, omega)),
    )
    torch.testing.assert_close(after[0], before[0], rtol=0, atol=1e-15)
    torch.testing.assert_close(after[1], before[1], rtol=0, atol=1e-15)


@pytest.mark.parametrize("collision", OPERATORS, ids=lambda c: type(c).__name__)
@settings(max_examples=20)
@given(lattices, seeds, omegas)
def test_a_force_adds_just_itself_to_the_momentum(
    collision: Collision, lattice: Lattice, seed: int, omega: float
):
    g = populations(lattice, seed)
    force = (1e-3, 0.0, 2e-3)[-lattice.rank :]
    before = moments(lattice, g)
    after = moments(lattice, collided(collision, lattice, g, omega, force))
    torch.testing.assert_close(after[0], before[0], rtol=0, atol=1e-15)
    for a, b, f in zip(after[1], before[1], force, strict=True):
        torch.testing.assert_close(a - b, torch.full_like(a, f), rtol=0, atol=1e-15)


@settings(max_examples=20)
@given(lattices, seeds, omegas)
def test_every_operator_relaxes_the_stress_at_the_rate_of_viscosity(
    lattice: Lattice, seed: int, omega: float
):
    h, one = deviation(lattice, seed), torch.ones(4, dtype=torch.float64)
    rate = torch.tensor(omega, dtype=torch.float64)
    for collision in (BGK(), TRT(), Regularized()):
        left = stress(lattice, collision.relaxed(lattice, h, one, rate))
        for axes, pi in stress(lattice, h).items():
            torch.testing.assert_close(left[axes], (1 - rate) * pi, rtol=0, atol=1e-15)


@settings(max_examples=20)
@given(lattices, seeds, omegas)
def test_trt_with_one_rate_is_bgk(lattice: Lattice, seed: int, omega: float):
    h, one = deviation(lattice, seed), torch.ones(4, dtype=torch.float64)
    rate = torch.tensor(omega, dtype=torch.float64)
    same = TRT(magic=(1 / omega - 0.5) ** 2).relaxed(lattice, h, one, rate)
    torch.testing.assert_close(same, BGK().relaxed(lattice, h, one, rate), rtol=0, atol=1e-14)


# After Lallemand and Luo 2000: e, eps, qx, qy, pxx, pxy, of the velocities (cx, cy) below.
LUO_ORDER = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
LUO_ROWS = (
    (1, 1, 1, 1, 1, 1, 1, 1, 1),
    (-4, -1, -1, -1, -1, 2, 2, 2, 2),
    (4, -2, -2, -2, -2, 1, 1, 1, 1),
    (0, 1, 0, -1, 0, 1, -1, -1, 1),
    (0, -2, 0, 2, 0, 1, -1, -1, 1),
    (0, 0, 1, 0, -1, 1, 1, -1, -1),
    (0, 0, -2, 0, 2, 1, 1, -1, -1),
    (0, 1, -1, 1, -1, 0, 0, 0, 0),
    (0, 0, 0, 0, 0, 1, -1, 1, -1),
)


@settings(max_examples=20)
@given(seeds, omegas)
def test_mrt_in_the_plane_is_that_of_the_published_matrix(seed: int, omega: float):
    h, one = deviation(D2Q9, seed), torch.ones(4, dtype=torch.float64)
    q = 8 * (2 - omega) / (8 - omega)
    rates = torch.tensor([0, 1.3, 1.6, 0, q, 0, q, omega, omega], dtype=torch.float64)
    matrix = torch.tensor(LUO_ROWS, dtype=torch.float64)
    order = [D2Q9.velocities.index((cy, cx)) for cx, cy in LUO_ORDER]
    moved = torch.linalg.inv(matrix) @ ((1 - rates)[:, None] * (matrix @ torch.stack(h)[order]))
    rate = torch.tensor(omega, dtype=torch.float64)
    found = MRT(bulk=1.3, high=1.6).relaxed(D2Q9, h, one, rate)
    torch.testing.assert_close(torch.stack(found)[order], moved, rtol=0, atol=1e-15)


def applied(collision: Collision, lattice: Lattice, omega: float) -> torch.Tensor:
    """The matrix of a collision, on what has neither mass nor momentum."""
    velocities = torch.tensor(lattice.velocities, dtype=torch.float64)
    kept = torch.linalg.qr(torch.cat([torch.ones_like(velocities[:, :1]), velocities], 1)).Q
    unit = torch.eye(lattice.count, dtype=torch.float64) - kept @ kept.T
    one = torch.ones(lattice.count, dtype=torch.float64)
    rate = torch.tensor(omega, dtype=torch.float64)
    return torch.stack(collision.relaxed(lattice, list(unit), one, rate))


@pytest.mark.parametrize("lattice", [D2Q9, D3Q19, D3Q27], ids=str)
def test_mrt_has_the_rates_that_it_declares_and_orthogonal_moments(lattice: Lattice):
    """A symmetric matrix, so its eigenvectors are orthogonal, with these eigenvalues."""
    omega, collision = 1.7, MRT(bulk=0.9, high=1.2)
    _, odd = TRT().rates(torch.tensor(omega, dtype=torch.float64))
    matrix = applied(collision, lattice, omega)
    torch.testing.assert_close(matrix, matrix.T, rtol=0, atol=1e-14)
    found = torch.linalg.eigvalsh(matrix).sort().values
    rank, pairs = lattice.rank, len(lattice.pairs)
    shears = (rank - 1) * (rank + 2) // 2
    wanted = [1 - omega] * shears + [1 - 0.9] + [1 - 1.2] * (pairs - shears - 1)
    wanted += [1 - odd.item()] * (pairs - rank) + [0] * (1 + rank)
    expected = torch.tensor(sorted(wanted), dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)


@settings(max_examples=20)
@given(lattices, seeds, omegas)
def test_mrt_with_one_rate_for_even_moments_is_trt(lattice: Lattice, seed: int, omega: float):
    h, one = deviation(lattice, seed), torch.ones(4, dtype=torch.float64)
    rate = torch.tensor(omega, dtype=torch.float64)
    same = MRT(bulk=omega, high=omega).relaxed(lattice, h, one, rate)
    torch.testing.assert_close(same, TRT().relaxed(lattice, h, one, rate), rtol=0, atol=1e-15)


@pytest.mark.parametrize("bulk", [0.5, 1.5])
def test_the_bulk_rate_of_mrt_damps_sound_as_in_theory(bulk: float):
    """The amplitude of a plane wave falls by (nu + zeta) k^2 / 2 in a step."""
    n, nu = 64, 0.02
    wave = torch.cos(2 * torch.pi * torch.arange(n, dtype=torch.float64) / n).expand(4, n)
    flow = Flow(
        collision=MRT(bulk=bulk),
        viscosity=nu,
        start=lambda size, _: (1 + 1e-4 * wave, [torch.zeros(size)] * 2),
    )
    sim = Simulation(flow, size=(4, n), dtype=torch.float64, compiled=False, device="cpu")
    energies = []
    for _ in range(2):
        # A mean over a whole period of sound: that of motion is half of all.
        found = []
        for _ in range(111):
            sim.run(1, progress=False)
            found.append(sim.observe()["kinetic_energy"])
        energies.append(sum(found))
    fall = math.log(energies[0] / energies[1]) / (2 * 111)
    zeta = (1 / bulk - 0.5) / 3
    assert fall == pytest.approx((nu + zeta) / 2 * (2 * math.pi / n) ** 2, rel=0.03)


@settings(max_examples=20)
@given(lattices, seeds)
def test_a_regularized_deviation_stays_when_nothing_relaxes(lattice: Lattice, seed: int):
    h, one = deviation(lattice, seed), torch.ones(4, dtype=torch.float64)
    none = torch.tensor(0.0, dtype=torch.float64)
    once = Regularized().relaxed(lattice, h, one, none)
    twice = Regularized().relaxed(lattice, once, one, none)
    torch.testing.assert_close(twice, once, rtol=0, atol=1e-15)


@settings(max_examples=20)
@given(lattices, seeds, omegas)
def test_smagorinsky_adds_the_viscosity_of_the_local_shear(
    lattice: Lattice, seed: int, omega: float
):
    h, density = deviation(lattice, seed), torch.full((4,), 1.1, dtype=torch.float64)
    rate = torch.tensor(omega, dtype=torch.float64)
    plain = BGK().relaxed(lattice, h, density, rate)
    off = Smagorinsky(constant=0).relaxed(lattice, h, density, rate)
    torch.testing.assert_close(off, plain, rtol=0, atol=1e-15)

    constant = 0.15
    left = Smagorinsky(constant).relaxed(lattice, h, density, rate)
    tau = 1 / (1 - left[1] / h[1])
    pi = stress(lattice, h)
    size = sum((1 if a == b else 2) * p**2 for (a, b), p in pi.items()) ** 0.5
    # The stress in terms of shear, with the viscosity that includes the eddies.
    shear = 2**0.5 * 3 * size / (2 * density * tau)
    torch.testing.assert_close(tau, 1 / rate + 3 * constant**2 * shear, rtol=1e-9, atol=0)


def test_a_collision_is_found_by_name():
    assert find_collision("Regularized") == Regularized()
    said = r"`collision` 'tr' is unknown; use one of bgk, .*; did you mean `trt`\?$"
    with pytest.raises(ArgumentError, match=said):
        find_collision("tr")


def test_constants_without_meaning_are_refused():
    with pytest.raises(ArgumentError, match=r"`magic` must be above 0, got 0"):
        TRT(magic=0)
    with pytest.raises(ArgumentError, match=r"`bulk` must be .* 2, got 3"):
        MRT(bulk=3)
    with pytest.raises(ArgumentError, match=r"`constant` must be at least 0, got -1"):
        Smagorinsky(constant=-1)
