"""The planner counts what the exchange sends, and chooses as its formula says."""

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.cluster import HaloExchange, Mesh, run_ranks
from hotgrid.cluster.plan import (
    Device,
    Job,
    Link,
    best_plan,
    estimate,
    known_devices,
    strong_scaling,
    weak_scaling,
)
from hotgrid.cluster.plan._plan import DEPTHS, factorizations
from hotgrid.errors import ArgumentError

GPU = Device("plain", memory_bytes=80e9, bandwidth=2e12)
LINK = Link(bandwidth=1e11, latency=5e-6)


def job(size=(4096, 4096), periodic=True, **changes):
    values = {
        "size": size,
        "bytes_moved_per_cell": 72.0,
        "bytes_stored_per_cell": 108.0,
        "bytes_sent_per_cell": 36.0,
        "reach": lambda depth: (depth,) * len(size),
        "periodic": periodic,
    }
    return Job(**{**values, **changes})


@pytest.mark.parametrize("periodic", [True, False], ids=["periodic", "bounded"])
@pytest.mark.parametrize(
    ("mesh", "size", "depth"),
    [("2x2", (8, 12), 2), ("4", (16, 6), 3), ("1x3", (5, 12), 2), ("2x1x2", (6, 4, 8), 1)],
)
def test_messages_and_bytes_are_those_of_the_exchange(mesh, size, depth, periodic):
    found = estimate(job(size, periodic), GPU, LINK, mesh, depth)
    margin = [depth * (parts > 1) for parts in Mesh(mesh).over(len(size)).shape]

    def sent(communicator):
        halo = HaloExchange(communicator, mesh, size, margin, periodic)
        halo.exchange(torch.zeros(9, *halo.padded.size))
        return halo.traffic.messages, halo.traffic.bytes, math.prod(halo.padded.size)

    busiest = [max(each) for each in zip(*run_ranks(Mesh(mesh).ranks, sent), strict=True)]
    assert busiest == [
        found.messages * depth,
        found.bytes * depth,
        math.prod(found.padded),
    ]


def test_the_time_of_a_step_is_its_bytes_and_a_share_of_one_exchange():
    found = estimate(job(), GPU, LINK, "2x2", 4)
    padded = 2048 + 2 * 4
    first, second = 4 * 2048 * 36, 4 * padded * 36
    assert found.padded == (padded, padded)
    assert found.compute == pytest.approx(padded**2 * 72 / 2e12)
    assert found.travel == pytest.approx((2 * 5e-6 + 2 * (first + second) / 1e11) / 4)
    assert found.packing == pytest.approx(4 * 2 * (first + second) / 2e12 / 4)
    assert found.step_time == pytest.approx(found.compute + found.travel + found.packing)
    assert found.memory_bytes == padded**2 * 108 + 2 * 2 * (first + second)
    assert found.mlups == pytest.approx(4096**2 / found.step_time / 1e6)


def test_overhead_is_added_and_the_host_is_hidden_behind_long_steps():
    slow = Device("slow", 80e9, 2e12, step_overhead=7e-6, host_time=40e-6)
    assert job().step_time(slow, 10) == 40e-6
    assert job().step_time(slow, 10**8) == pytest.approx(72e8 / 2e12 + 7e-6)
    assert job(share=0.5).step_time(GPU, 100) == pytest.approx(2 * job().step_time(GPU, 100))


def test_overlap_hides_what_fits_behind_the_interior_and_nothing_else():
    for latency in (1e-6, 1e-3, 1e-1):
        plain = estimate(job(), GPU, Link(1e11, latency), "2x2", 4)
        overlapped = plain.with_overlap(True)
        assert plain.hidden == 0
        assert overlapped.hidden == min(plain.travel, plain.interior)
        assert overlapped.step_time == pytest.approx(plain.step_time - overlapped.hidden)
    interior = sum((2048 - 2 * k) ** 2 for k in (1, 2, 3, 4)) / 4
    assert plain.interior == pytest.approx(interior * 72 / 2e12)


def test_one_device_sends_nothing_and_is_fully_efficient():
    alone = estimate(job(), GPU, LINK, "1", 1)
    assert (alone.messages, alone.bytes, alone.communication_share) == (0, 0, 0)
    assert alone.efficiency == 1
    assert alone.padded == alone.block == (4096, 4096)


@settings(deadline=None)
@given(st.integers(1, 64), st.floats(1e-7, 1e-2), st.floats(1e8, 1e12), st.booleans())
def test_the_best_is_the_fastest_that_fits(devices, latency, bandwidth, overlap):
    link = Link(bandwidth, latency)
    task = job()
    best = best_plan(task, GPU, link, devices, overlap=overlap).best
    assert best.mesh.ranks == devices
    assert best.efficiency <= 1 + 1e-9
    for shape in factorizations(devices, 2):
        for depth in DEPTHS:
            other = estimate(task, GPU, link, shape, depth, overlap=overlap)
            assert best.step_time <= other.step_time * (1 + 1e-12)


def test_high_latency_asks_for_deep_margins():
    depths = [
        best_plan(job(), GPU, Link(1e11, latency), 16).best.depth
        for latency in (0.0, 1e-5, 1e-3)
    ]
    assert depths == sorted(depths)
    assert depths[0] == 1
    assert depths[-1] > 8


def test_mesh_and_depth_can_be_fixed():
    best = best_plan(job(), GPU, LINK, 8, mesh="8x1", depth=16).best
    assert (str(best.mesh), best.depth) == ("8x1", 16)
    with pytest.raises(ArgumentError, match="needs 4 ranks, but 8"):
        best_plan(job(), GPU, LINK, 8, mesh="2x2")


def test_what_does_not_fit_comes_last_and_is_reported():
    small = Device("small", memory_bytes=1e9, bandwidth=2e12)
    plan = best_plan(job(), small, LINK, 1)
    assert not plan.best.fits
    assert plan.fewest_devices == math.ceil(4096**2 * 108 / 0.9e9)
    assert best_plan(job(), small, LINK, plan.fewest_devices + 1).best.fits


def test_alternatives_show_every_mesh_once():
    plan = best_plan(job(), GPU, LINK, 16)
    meshes = [str(each.mesh) for each in plan.alternatives(99)]
    assert sorted(meshes) == ["16x1", "1x16", "2x8", "4x4", "8x2"]
    assert meshes[0] == str(plan.best.mesh)


def test_a_grid_that_cannot_be_cut_is_refused_with_the_reason():
    with pytest.raises(ArgumentError, match=r"4x4 cannot be cut over 64 devices.*4 cells"):
        best_plan(job((4, 4)), GPU, LINK, 64, mesh="64x1")
    with pytest.raises(ArgumentError, match=r"margin of 64 \(`depth` 64\) does not fit"):
        estimate(job((64, 64)), GPU, LINK, "4", 64)
    with pytest.raises(ArgumentError, match="0 devices"):
        best_plan(job(), GPU, LINK, 0)


def test_strong_scaling_falls_and_weak_scaling_holds():
    counts = (1, 4, 16, 64)
    h200 = known_devices()["H200"]
    strong = strong_scaling(job(), h200, LINK, counts)
    weak = weak_scaling(job(), h200, LINK, counts, block=(4096, 4096))
    assert [each.devices for each in strong] == [each.devices for each in weak] == [*counts]
    efficiencies = [each.efficiency for each in strong]
    assert efficiencies == sorted(efficiencies, reverse=True)
    assert weak[-1].estimate.size == (8 * 4096, 8 * 4096)
    assert weak[-1].efficiency > 0.9 > efficiencies[-1]


def test_words_of_bits_count_as_the_cells_they_hold():
    packed = job((1024, 32), updates_per_cell=32)
    found = estimate(packed, GPU, LINK, "1", 1)
    assert found.mlups == pytest.approx(1024 * 1024 / found.step_time / 1e6)


@given(st.integers(1, 500), st.integers(1, 3))
def test_factorizations_are_all_of_them_once(count, axes):
    found = list(factorizations(count, axes))
    assert all(math.prod(each) == count for each in found)
    assert len(found) == len(set(found))
    divisors = [n for n in range(1, count + 1) if count % n == 0]
    assert {each[0] for each in found} == (set(divisors) if axes > 1 else {count})
