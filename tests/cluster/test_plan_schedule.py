"""The simulated schedule: the formula without jitter, and a slow twin with it."""

import heapq

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hotgrid.cluster import Mesh
from hotgrid.cluster.plan import (
    Job,
    Link,
    Round,
    estimate,
    known_devices,
    rounds_of,
    simulate_schedule,
)
from hotgrid.errors import ArgumentError

H200 = known_devices()["H200"]
ROUNDS = (Round(0, 4e-6, 3e-6), Round(1, 2e-6, 5e-6))


def by_events(mesh, rounds, compute, interior, overlap, jitter, cycles, periodic, seed):
    """The same, one event after the other from a queue: when the last rank is done."""
    layout = Mesh(mesh)
    generator = np.random.default_rng(seed)
    slowness = [
        1 + jitter * generator.exponential(size=layout.shape).ravel() for _ in range(cycles)
    ]
    queue: list[tuple[float, int, int, int, str]] = []
    got: dict[tuple[int, int, int], list[float]] = {}
    done = {}
    begun = {}

    def neighbours(rank, axis):
        for step in (-1, 1):
            offset = [step * (k == axis) for k in range(len(layout.shape))]
            other = layout.neighbour(rank, offset, periodic)
            if other is not None:
                yield other

    def post(time, rank, cycle, stage):
        """Send both messages of a round; return when the port is free."""
        for other in neighbours(rank, rounds[stage].axis):
            time += rounds[stage].transfer
            arrival = time + rounds[stage].latency
            heapq.heappush(queue, (arrival, other, cycle, stage, "message"))
        heapq.heappush(queue, (time, rank, cycle, stage, "left"))

    def start(time, rank, cycle):
        if cycle == cycles:
            done[rank] = time
            return
        begun[rank, cycle] = time
        leave = time if overlap else time + compute * slowness[cycle][rank]
        post(leave, rank, cycle, 0)

    for rank in range(layout.ranks):
        start(0.0, rank, 0)
    while queue:
        time, rank, cycle, stage, _ = heapq.heappop(queue)
        seen = got.setdefault((rank, cycle, stage), [])
        seen.append(time)
        if len(seen) < 1 + len(list(neighbours(rank, rounds[stage].axis))):
            continue
        if stage + 1 < len(rounds):
            post(max(seen), rank, cycle, stage + 1)
            continue
        end = max(seen)
        if overlap:
            slow = slowness[cycle][rank]
            end = max(end, begun[rank, cycle] + interior * slow) + (compute - interior) * slow
        start(end, rank, cycle + 1)
    return max(done.values())


@settings(deadline=None, max_examples=40)
@given(
    mesh=st.sampled_from(["2x2", "3x4", "5x2", "2x7"]),
    overlap=st.booleans(),
    periodic=st.booleans(),
    jitter=st.sampled_from([0.0, 0.1, 2.0]),
    seed=st.integers(0, 2**32),
)
def test_it_equals_a_queue_of_events(mesh, overlap, periodic, jitter, seed):
    options = {"interior": 4e-5, "overlap": overlap, "jitter": jitter}
    options |= {"cycles": 4, "periodic": periodic, "seed": seed}
    found = simulate_schedule(mesh, ROUNDS, 5e-5, **options)
    assert found.seconds == pytest.approx(by_events(mesh, ROUNDS, 5e-5, **options), rel=1e-12)


@pytest.mark.parametrize("periodic", [True, False], ids=["periodic", "bounded"])
@pytest.mark.parametrize("overlap", [True, False], ids=["overlapped", "plain"])
@pytest.mark.parametrize("mesh", ["4x4", "8x1", "3x3x3"])
def test_without_jitter_it_is_the_formula(mesh, overlap, periodic):
    axes = 3 if mesh.count("x") == 2 else 2
    job = Job(
        (768,) * axes, 72, 108, 36, lambda depth: (depth,) * axes, periodic=periodic, share=0.9
    )
    link = Link(5e10, 5e-6)
    found = estimate(job, H200, link, mesh, 4, overlap=overlap)
    acted = simulate_schedule(
        found.mesh,
        rounds_of(found, job, link),
        4 * (found.compute + found.packing),
        interior=4 * found.interior,
        overlap=overlap,
        cycles=5,
        periodic=periodic,
    )
    if periodic or overlap:
        assert acted.seconds_per_cycle == pytest.approx(4 * found.step_time, rel=1e-9)
        return
    # A rank at an end has one message to send, so its neighbour waits for one the less.
    saved = sum(each.transfer for each in rounds_of(found, job, link))
    most = 4 * found.step_time * (1 + 1e-9)
    assert most - saved <= acted.seconds_per_cycle <= most


@given(st.floats(0, 1e-3), st.floats(0, 1e-3), st.floats(0, 1))
def test_overlap_hides_exactly_the_smaller_of_interior_and_exchange(compute, latency, part):
    rounds = [Round(0, latency, 1e-6)]
    exchange = latency + 2e-6
    interior = part * compute
    plain = simulate_schedule("4", rounds, compute, cycles=3)
    overlapped = simulate_schedule(
        "4", rounds, compute, interior=interior, overlap=True, cycles=3
    )
    hidden = plain.seconds_per_cycle - overlapped.seconds_per_cycle
    assert hidden == pytest.approx(min(interior, exchange), abs=1e-12)


def test_more_of_anything_never_makes_it_faster():
    def seconds(latency=1e-6, transfer=1e-6, jitter=0.1, compute=1e-4):
        rounds = [Round(0, latency, transfer), Round(1, latency, transfer)]
        return simulate_schedule("6x5", rounds, compute, jitter=jitter, seed=3).seconds

    for name in ("latency", "transfer", "jitter", "compute"):
        rising = [seconds(**{name: value}) for value in (0.0, 1e-6, 1e-4, 1e-3, 0.5)]
        assert rising == sorted(rising)
        assert rising[-1] > rising[0]


def test_a_seed_gives_the_same_run_again_and_another_one_another():
    runs = [simulate_schedule("8x8", ROUNDS, 1e-4, jitter=0.2, seed=seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_overlap_holds_its_promise_on_4096_ranks_that_are_not_equally_fast():
    job = Job.of_radius((131072, 131072), bytes_per_cell=36)
    link = Link(5e10, 5e-6)
    found = estimate(job, H200, link, "64x64", 4)
    rounds = rounds_of(found, job, link)
    times = {"compute": 4 * found.compute, "interior": 4 * found.interior}
    plain, overlapped = (
        simulate_schedule(found.mesh, rounds, **times, overlap=o, jitter=0.02, cycles=100)
        for o in (False, True)
    )
    assert plain.ranks == 4096
    assert overlapped.seconds_per_cycle > 4 * found.compute
    # At least what the formula says is hidden, and with it some of the waiting.
    gain = plain.seconds_per_cycle - overlapped.seconds_per_cycle
    assert gain >= 4 * found.with_overlap(True).hidden
    assert overlapped.waiting < 0.05 < plain.waiting


def test_an_axis_of_one_rank_exchanges_nothing():
    assert simulate_schedule("1x1", ROUNDS, 1e-4, cycles=7).seconds == pytest.approx(7e-4)


@pytest.mark.parametrize(
    "wrong", [{"compute": -1.0}, {"jitter": -0.1}, {"cycles": 0}, {"interior": 2.0}]
)
def test_invalid_arguments_are_refused(wrong):
    with pytest.raises(ArgumentError, match="0 or more"):
        simulate_schedule("2", ROUNDS[:1], **{"compute": 1.0, **wrong})
