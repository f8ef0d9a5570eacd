"""Replay against slow twins: a list, a walk over running sums, a loop over episodes."""

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from hotgrid.errors import ArgumentError, ContractError
from hotgrid.train import rl

ACTIONS = rl.Discrete(3)
ROWS = rl.Rows(2, ACTIONS)
GAMMA = 0.9


def transition(seeds, copies, at, terminated=None, truncated=None):
    """A step whose numbers say which it is."""
    none = torch.zeros(seeds, copies, dtype=torch.bool)
    number = at + torch.arange(seeds * copies).reshape(seeds, copies) / 100
    seen = torch.stack((number, -number), -1)
    return rl.Transition(
        seen,
        torch.full((seeds, copies), at % 3),
        number * 10,
        none if terminated is None else terminated,
        none if truncated is None else truncated,
        seen + 0.5,
    )


def written(ring, step):
    ring.write(ring.rows.packed(step, ring.gamma), step.terminated | step.truncated)


def all_rows(ring):
    """Every transition of a ring, as a batch in the order of its memory."""
    return ring._taken(torch.arange(int(ring.size)).expand(ring.seeds, -1))


@pytest.mark.parametrize("kind", [rl.Uniform, rl.Prioritised])
def test_a_ring_keeps_the_newest(kind):
    ring = rl.replay_of(kind(10), ROWS, 2, 3, gamma=GAMMA)
    steps = [transition(2, 3, at) for at in range(7)]
    for at, step in enumerate(steps):
        written(ring, step)
        newest = [step.reward for step in steps[: at + 1]]
        expected = torch.cat(newest, 1)[:, -10:]
        found = all_rows(ring).reward
        assert torch.equal(found.sort(-1).values, expected.sort(-1).values)


def test_a_sample_is_what_was_written():
    ring = rl.replay_of(rl.Uniform(50), ROWS, 2, 5, gamma=GAMMA)
    for at in range(10):
        written(ring, transition(2, 5, at))
    batch = ring.sample(200, rl.Draws(0, "cpu"))
    number = batch.observation[..., 0]
    torch.testing.assert_close(batch.reward, 10 * number)
    torch.testing.assert_close(batch.following, batch.observation + 0.5)
    assert torch.equal(batch.action, number.floor().long() % 3)
    assert batch.discount.unique().tolist() == pytest.approx([GAMMA])
    # A seed gets its own rows only, and all of them in the long run.
    assert (((number * 100).round() % 100 < 5) == torch.tensor([[True], [False]])).all()
    assert number[0].unique().numel() > 45


def test_termination_ends_the_value_and_truncation_does_not():
    ring = rl.replay_of(rl.Uniform(8), ROWS, 1, 4, gamma=GAMMA)
    ended = torch.tensor([[True, False, True, False]])
    cut = torch.tensor([[False, True, True, False]])
    written(ring, transition(1, 4, 0, ended, cut))
    assert all_rows(ring).discount[0].tolist() == pytest.approx([0, GAMMA, 0, GAMMA])


def joined_slowly(steps, n):
    """The transitions of n steps of one copy, by a loop over what follows each."""
    found = []
    for start, first in enumerate(steps):
        reward, discount, following = 0.0, 1.0, None
        for step in steps[start : start + n]:
            reward += discount * step["reward"]
            discount *= GAMMA * (not step["terminated"])
            following = step["following"]
            if step["terminated"] or step["truncated"]:
                break
        found.append((first["seen"], reward, discount, following))
    return found


@settings(max_examples=40)
@given(
    st.integers(2, 5),
    st.lists(st.sampled_from(["goes on", "terminated", "truncated", "both"]), min_size=6,
             max_size=25),
)  # fmt: skip
def test_transitions_of_n_steps_are_those_of_a_loop(n, ends):
    copies = 2
    ring = rl.replay_of(rl.Uniform(100), ROWS, 1, copies, steps=n, gamma=GAMMA)
    slow = [[] for _ in range(copies)]
    for at, end in enumerate(ends):
        # The second copy never ends.
        flags = {
            name: torch.tensor([[end in (name, "both"), False]])
            for name in ("terminated", "truncated")
        }
        step = transition(1, copies, at, **flags)
        written(ring, step)
        for copy in range(copies):
            slow[copy].append(
                {
                    "seen": step.observation[0, copy].tolist(),
                    "reward": float(step.reward[0, copy]),
                    "following": step.following[0, copy].tolist(),
                    "terminated": bool(step.terminated[0, copy]),
                    "truncated": bool(step.truncated[0, copy]),
                }
            )
    late = len(ends) - (n - 1)
    assert int(ring.size) == late * copies
    found = all_rows(ring)
    for copy in range(copies):
        expected = joined_slowly(slow[copy], n)[:late]
        for at, (seen, reward, discount, following) in enumerate(expected):
            place = at * copies + copy
            assert found.observation[0, place].tolist() == pytest.approx(seen)
            assert found.reward[0, place].item() == pytest.approx(reward, rel=1e-5)
            assert found.discount[0, place].item() == pytest.approx(discount, rel=1e-5)
            assert found.following[0, place].tolist() == pytest.approx(following)


def found_slowly(priorities, share):
    """The place at which the running sum passes a share, and how close it was."""
    left = share * math.fsum(priorities)
    for place, priority in enumerate(priorities):
        if left < priority:
            return place
        left -= priority
    return None


@settings(max_examples=30)
@given(st.integers(1, 9000), st.integers(0, 2**31))
def test_a_wide_tree_finds_what_a_walk_finds(capacity, seed):
    draws = rl.Draws(seed, "cpu")
    tree = rl.WideTree(2, capacity)
    slow = [[0.0] * capacity for _ in range(2)]
    for _ in range(3):
        index = draws.below(capacity, 2, 40)
        priority = draws.uniform(2, 40, dtype=torch.float64) + 0.01
        tree.set(index, priority)
        for number in range(2):
            largest = {}
            for place, value in zip(
                index[number].tolist(), priority[number].tolist(), strict=False
            ):
                largest[place] = max(value, largest.get(place, 0.0))
            for place, value in largest.items():
                slow[number][place] = value
    assert tree.total.tolist() == pytest.approx([math.fsum(each) for each in slow])
    share = draws.uniform(2, 50, dtype=torch.float64)
    found = tree.find(share)
    for number in range(2):
        expected = [found_slowly(slow[number], each) for each in share[number].tolist()]
        assert found[number].tolist() == expected


def test_a_wide_tree_never_finds_what_has_no_priority():
    tree = rl.WideTree(1, 5000)
    chosen = torch.tensor([[64, 127, 4095, 4999]])
    tree.set(chosen, torch.tensor([[1e-12, 1.0, 1e9, 1e-12]]))
    edges = torch.tensor([[0.0, 1e-30, 0.5, 1 - 2**-53]], dtype=torch.float64)
    assert {*tree.find(edges)[0].tolist()} <= {*chosen[0].tolist()}


def test_priorities_set_how_often_a_transition_is_sampled():
    ring = rl.replay_of(rl.Prioritised(4, alpha=1.0, beta=1.0, least=0.0), ROWS, 1, 4)
    written(ring, transition(1, 4, 0))
    draws = rl.Draws(0, "cpu")
    every = all_rows(ring)
    ring.reprioritise(every, torch.tensor([[1.0, -2.0, 3.0, 4.0]]))
    batch = ring.sample(1000, draws)
    assert batch.index is not None
    assert batch.weight is not None
    counts = torch.bincount(batch.index[0], minlength=4)
    assert counts.tolist() == pytest.approx([100, 200, 300, 400], abs=2)
    # With beta = 1, a weight undoes the frequency: all rows count the same in sum.
    sums = torch.zeros(4).index_add(0, batch.index[0], batch.weight[0])
    assert (sums / sums.mean()).tolist() == pytest.approx([1] * 4, rel=0.05)
    assert batch.weight.max() == 1


def test_something_is_sampled_where_no_error_is_left():
    ring = rl.replay_of(rl.Prioritised(8, alpha=1.0, least=0.0), ROWS, 1, 4)
    written(ring, transition(1, 4, 0))
    ring.reprioritise(all_rows(ring), torch.zeros(1, 4))
    batch = ring.sample(40, rl.Draws(0, "cpu"))
    assert batch.index is not None
    assert batch.weight is not None
    assert torch.bincount(batch.index[0]).tolist() == [10] * 4
    assert batch.weight.unique().tolist() == [1]


def test_new_transitions_have_the_largest_priority_so_far():
    ring = rl.replay_of(rl.Prioritised(8, alpha=1.0, least=0.0), ROWS, 1, 4)
    written(ring, transition(1, 4, 0))
    ring.reprioritise(all_rows(ring), torch.tensor([[0.5, 6.0, 0.5, 0.5]]))
    written(ring, transition(1, 4, 1))
    index = ring.sample(630, rl.Draws(0, "cpu")).index
    assert index is not None
    counts = torch.bincount(index[0], minlength=8)
    assert counts.tolist() == pytest.approx([10, 120, 10, 10, 120, 120, 120, 120], abs=2)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ArgumentError, match="5 copies"):
        rl.replay_of(rl.Uniform(4), ROWS, 1, 5)
    with pytest.raises(ArgumentError, match="capacity"):
        rl.Uniform(0)
    with pytest.raises(ArgumentError, match="alpha"):
        rl.Prioritised(alpha=2)
    ring = rl.replay_of(rl.Uniform(8), ROWS, 1, 4)
    with pytest.raises(ContractError):
        ring.write(torch.zeros(1, 4, 9), torch.zeros(1, 4, dtype=torch.bool))


def test_batches_of_a_uniform_ring_are_parts_of_one_sample():
    ring = rl.replay_of(rl.Uniform(50), ROWS, 2, 5, gamma=GAMMA)
    for at in range(10):
        written(ring, transition(2, 5, at))
    parts = list(ring.batches(3, 4, rl.Draws(0, "cpu")))
    whole = ring.sample(12, rl.Draws(0, "cpu"))
    for name in ("observation", "action", "reward", "discount", "following", "index"):
        found = torch.cat([getattr(part, name) for part in parts], 1)
        assert torch.equal(found, getattr(whole, name)), name
    assert all(part.weight is None for part in parts)


def test_batches_by_priority_see_the_priorities_that_the_last_has_left():
    ring = rl.replay_of(rl.Prioritised(4, alpha=1.0, least=0.0), ROWS, 1, 4)
    written(ring, transition(1, 4, 0))
    for at, batch in enumerate(ring.batches(4, 20, rl.Draws(0, "cpu"))):
        if at:
            assert batch.index is not None
            assert batch.index.unique().tolist() == [at - 1]
        ring.reprioritise(all_rows(ring), torch.eye(4)[at : at + 1])
