"""Shells and cones, against loops and brute force."""

import math
from decimal import Decimal, localcontext

import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.blt import Placement, SphereIndex, angles_between, log_weights, place, relax
from hotgrid.errors import ArgumentError, ContractError

finite = st.floats(-5, 5, allow_nan=False, width=32)


@given(st.lists(finite, max_size=60), st.integers(1, 9))
def test_shells_are_full_and_in_order(values: list[float], shells: int):
    weights = torch.tensor(values, dtype=torch.float64)
    found = place(weights, shells=shells, inner=2, outer=5)
    radii = torch.linspace(2, 5, shells, dtype=torch.float64)
    assert torch.equal(found.radii, radii[found.shells])
    counts = torch.bincount(found.shells, minlength=shells).double()
    wanted = len(values) * radii**2 / (radii**2).sum()
    assert (counts - wanted).abs().max() <= 1  # whole points
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            assert a >= b or found.shells[i] <= found.shells[j]


@settings(max_examples=40, deadline=None)
@given(st.lists(finite, min_size=1, max_size=50), st.integers(1, 8))
def test_moves_between_neighbours_end_in_the_same_state(values: list[float], shells: int):
    weights = torch.tensor(values)
    wanted = place(weights, shells=shells)
    found, steps = relax(weights, shells=shells)
    assert torch.equal(found.shells, wanted.shells)
    assert steps <= 2 * (shells + len(values))


def test_a_relaxation_that_is_stopped_stays_in_order():
    weights = torch.randn(500, generator=torch.Generator().manual_seed(0)).exp()
    found, steps = relax(weights, shells=32, steps=3)
    assert steps == 3
    order = weights.argsort()
    assert bool((found.shells[order].diff() >= 0).all())


def test_weights_do_not_underflow():
    generator = torch.Generator().manual_seed(0)
    prominence = torch.rand(200, generator=generator) + 0.5
    entropies = torch.rand(200, generator=generator) * 3
    small = log_weights(prominence, entropies, temperature=1e-5)
    assert bool(small.isfinite().all())
    # At this temperature the order is that of entropies; as plain numbers all are 0.
    assert torch.equal(small.argsort(), (-entropies).argsort())
    assert not (prominence**2 * torch.exp(-entropies / 1e-5)).any()
    plain = (prominence.double() ** 2 * torch.exp(-entropies.double() / 0.5)).log()
    torch.testing.assert_close(log_weights(prominence, entropies), plain)
    assert log_weights(torch.zeros(1)).item() == -math.inf
    for weights in (log_weights(torch.tensor([1.0, 0.0])), torch.full((2,), -math.inf)):
        even = {"shells": 2, "inner": 1.0, "outer": 1.0}
        assert torch.equal(place(weights, **even).shells, relax(weights, **even)[0].shells)
    assert place(log_weights(torch.tensor([1.0, 0.0])), **even).shells.tolist() == [1, 0]


@given(
    st.lists(st.tuples(st.floats(1e-30, 1e30), st.floats(0, 6)), min_size=2, max_size=30),
    st.sampled_from([1e-300, 1e-8, 1e-5, 1e-3, 0.5, 1e3]),
)
def test_the_order_of_weights_is_that_of_exact_arithmetic(
    points: list[tuple[float, float]], temperature: float
):
    """Weights far below the smallest float keep their order, for any temperature."""
    prominence, entropies = (
        torch.tensor(x, dtype=torch.float64) for x in zip(*points, strict=True)
    )
    found = log_weights(prominence, entropies, temperature=temperature)
    assert not found.isnan().any()
    with localcontext() as context:
        context.prec = 60
        exact = [2 * Decimal(p).ln() - Decimal(h) / Decimal(temperature) for p, h in points]
    for i, a in enumerate(exact):
        for j, b in enumerate(exact):
            # Closer ones than this are equal in float64; and some are below all its numbers.
            if a - b > abs(b) * Decimal("1e-14") + Decimal("1e-12"):
                assert found[i] > found[j] or found[j] == -math.inf
    wanted = place(found, shells=4)
    assert torch.equal(relax(found, shells=4)[0].shells, wanted.shells)


@pytest.mark.parametrize("temperature", [1e-300, 1e-5, 1.0])
@pytest.mark.parametrize("prominence", [0.0, 1e-200, 1.0])
def test_equal_points_spread_over_all_shells(prominence: float, temperature: float):
    weights = log_weights(
        torch.full((90,), prominence, dtype=torch.float64),
        torch.full((90,), 3.0),
        temperature=temperature,
    )
    found, _ = relax(weights, shells=3, inner=1.0, outer=1.0)
    assert torch.bincount(found.shells).tolist() == [30, 30, 30]


def seen(points: torch.Tensor, axis: torch.Tensor, angle: float, least=0.0, most=math.inf):
    radii = points.double().norm(dim=1)
    unit = axis.double() / axis.double().norm()
    angles = angles_between(points.double() / radii[:, None], unit)
    inside = (angles <= angle) & (radii >= least) & (radii <= most)
    return inside.nonzero()[:, 0]


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 5),
    axis=st.one_of(
        st.tuples(finite, finite, finite).filter(lambda v: max(map(abs, v)) > 1e-3),
        st.sampled_from([(0, 0, 1), (0, 0, -1), (-1, 0, 0), (-1, 1e-9, 0), (1e-9, 0, 1)]),
    ),
    angle=st.one_of(st.floats(0, math.pi), st.sampled_from([0.0, math.pi / 2, math.pi])),
    cells=st.one_of(st.none(), st.integers(1, 400)),
)
def test_cones_against_brute_force(seed: int, axis: tuple, angle: float, cells: int | None):
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(300, 3, generator=generator)
    points[:6] = torch.cat([torch.eye(3), -torch.eye(3)])
    index = SphereIndex(points, cells=cells)
    direction = torch.tensor(axis, dtype=torch.float64)
    found = index.cone(direction, angle)
    wanted = seen(points, direction, angle)
    # A point on the side itself is rounded one way or the other.
    differ = set(found.tolist()) ^ set(wanted.tolist())
    unit = direction / direction.norm()
    for i in differ:
        apart = float(angles_between(points[i : i + 1].double(), unit))
        assert abs(apart - angle) < 2e-12
    assert bool((found.diff() > 0).all())


@settings(max_examples=60, deadline=None)
@given(
    scale=st.sampled_from([1e-12, 1e-9, 1e-8, 1e-7, 1e-3]),
    share=st.floats(0.01, 3),
    pole=st.sampled_from([1.0, -1.0]),
    turn=st.floats(-4, 4),
)
def test_small_cones_near_a_pole(scale: float, share: float, pole: float, turn: float):
    """Where longitudes change fast and cosines are all 1."""
    offsets = torch.randn(200, 2, generator=torch.Generator().manual_seed(0)).double() * scale
    points = torch.cat([offsets, torch.full((200, 1), pole, dtype=torch.float64)], 1)
    index = SphereIndex(points, cells=5000)
    near = [scale * math.cos(turn), scale * math.sin(turn), pole]
    axis = torch.tensor(near, dtype=torch.float64)
    found = set(index.cone(axis, share * scale).tolist())
    unit = axis / axis.norm()
    angles = angles_between(points / points.norm(dim=1, keepdim=True), unit)
    for number, angle in enumerate(angles.tolist()):
        if abs(angle - share * scale) > 4e-12:
            assert (number in found) == (angle < share * scale)


def test_a_point_is_in_the_cone_of_its_own_direction():
    points = torch.randn(500, 3, generator=torch.Generator().manual_seed(2)) * 1e3
    index = SphereIndex(points)
    for number in range(0, 500, 7):
        assert number in index.cone(points[number], 0.0).tolist()
        assert number in index.cone(points[number].double() * 1e-200, 0.0).tolist()
        assert number not in index.cone(-points[number], 3.0).tolist()


def test_radii_bound_a_cone_and_few_points_are_looked_at():
    points = torch.randn(20_000, 3, generator=torch.Generator().manual_seed(1))
    index, axis = SphereIndex(points), torch.tensor([1.0, 2.0, 0.5])
    found = index.cone(axis, 0.2, least=1.0, most=1.5)
    assert torch.equal(found, seen(points, axis, 0.2, 1.0, 1.5))
    looked_at = len(index._candidates(axis.double() / axis.norm(), 0.2))
    assert len(index.cone(axis, 0.2)) <= looked_at < len(points) / 20


def test_wrong_input_says_what_is_wrong():
    with pytest.raises(ArgumentError, match="`temperature` is 0"):
        log_weights(torch.ones(2), torch.ones(2), temperature=0)
    with pytest.raises(ArgumentError, match="from 0"):
        log_weights(torch.tensor([-1.0]))
    with pytest.raises(ArgumentError, match="0 shells"):
        place(torch.ones(2), shells=0)
    with pytest.raises(ArgumentError, match="at most 1,048,576"):
        relax(torch.ones(2), shells=10**10)
    with pytest.raises(ArgumentError, match="to inf"):
        relax(torch.ones(2), outer=math.inf)
    with pytest.raises(ArgumentError, match="not numbers"):
        place(torch.tensor([math.nan]))
    with pytest.raises(ContractError):
        SphereIndex(torch.zeros(3, 2))
    index = SphereIndex(torch.zeros(1, 3))
    assert index.cone(torch.ones(3), math.pi).tolist() == []
    with pytest.raises(ArgumentError, match=r"`axis` is \[0.0, 0.0, 0.0\]"):
        index.cone(torch.zeros(3), 1.0)
    with pytest.raises(ArgumentError, match="0 to pi"):
        index.cone(torch.ones(3), 4.0)
    assert isinstance(place(torch.empty(0)), Placement)
