"""The tensor environments are Gymnasium's, step for step."""

import gymnasium
import numpy as np
import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.train import rl

TWINS = {name: env for name, env in rl.environments().items() if env.twin}
every_twin = pytest.mark.parametrize("name", TWINS)
STEPS = 2000


def an_action(space, random):
    if isinstance(space, gymnasium.spaces.Discrete):
        return int(random.integers(space.n))
    return random.uniform(1.2 * space.low, 1.2 * space.high).astype(np.float32)


def given(action) -> torch.Tensor:
    return torch.as_tensor(action)[None]


@every_twin
def test_every_single_step_is_gymnasiums(name):
    """From Gymnasium's own state, one step: no error can grow."""
    env, random = TWINS[name], np.random.default_rng(5)
    peer = gymnasium.make(env.twin)
    inner = peer.unwrapped
    observation, _ = peer.reset(seed=5)
    seen = []
    for _ in range(STEPS):
        before = np.array(inner.state, np.float64), observation
        action = an_action(peer.action_space, random)
        observation, reward, terminated, truncated, _ = peer.step(action)
        after = np.array(inner.state, np.float64), float(reward), terminated
        seen.append((*before, action, *after))
        if terminated or truncated:
            observation, _ = peer.reset()
    states, observations, actions, later, rewards, ends = map(np.array, zip(*seen, strict=True))
    begun = torch.from_numpy(states)
    np.testing.assert_array_equal(env.observe(begun).numpy(), observations)
    state, ours, over = env.step(begun, torch.from_numpy(actions))
    np.testing.assert_allclose(state.numpy(), later, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(ours.numpy(), rewards, rtol=1e-6)
    np.testing.assert_array_equal(over.numpy(), ends)


@every_twin
def test_whole_episodes_are_gymnasiums(name):
    """Free from the first state on: the same returns, ends and cuts."""
    env, random = TWINS[name], np.random.default_rng(6)
    peer = gymnasium.make(env.twin)
    observation, _ = peer.reset(seed=6)
    # Acrobot is chaotic: after a while the last digit of a cosine decides.
    most = 30 if name == "acrobot" else STEPS
    state = torch.tensor(np.array(peer.unwrapped.state, np.float64))[None]
    steps = 0
    for _ in range(most):
        action = an_action(peer.action_space, random)
        observation, reward, terminated, truncated, _ = peer.step(action)
        state, ours, over = env.step(state, given(action))
        steps += 1
        np.testing.assert_allclose(env.observe(state)[0], observation, rtol=1e-5, atol=1e-6)
        assert ours.item() == pytest.approx(float(reward), rel=1e-5)
        assert (over.item(), steps >= env.limit) == (terminated, truncated)
        if terminated or truncated:
            peer.reset()
            state = torch.tensor(np.array(peer.unwrapped.state, np.float64))[None]
            steps = 0


@every_twin
def test_starts_and_spaces_are_gymnasiums(name):
    env = TWINS[name]
    peer = gymnasium.make(env.twin)
    assert peer.spec.max_episode_steps == env.limit
    assert peer.observation_space.shape == (env.observations,)
    if isinstance(env.actions, rl.Discrete):
        assert peer.action_space.n == env.actions.count
    else:
        assert tuple(peer.action_space.low) == env.actions.low
        assert tuple(peer.action_space.high) == env.actions.high
    theirs = []
    for seed in range(400):
        peer.reset(seed=seed)
        theirs.append(np.array(peer.unwrapped.state, np.float64))
    ours = env.initial(rl.Draws(0, "cpu").uniform(4000, env.randoms, dtype=env.dtype)).numpy()
    low, high = np.min(theirs, 0), np.max(theirs, 0)
    wide = np.maximum(high - low, 1e-12)
    # The same box: ours fill it, and leave it by no more than its sampled edge.
    assert (ours.min(0) >= low - 0.05 * wide).all()
    assert (ours.max(0) <= high + 0.05 * wide).all()
    np.testing.assert_allclose(ours.mean(0), (low + high) / 2, atol=0.06 * wide.max())
    np.testing.assert_allclose(ours.std(0), np.std(theirs, 0), atol=0.05 * wide.max())


def test_gymnasiums_copies_keep_the_observation_before_a_new_episode():
    world = rl.GymnasiumCopies("CartPole-v1", 2, 3, seed=1)
    ended = 0
    for _ in range(60):
        found = world.step(torch.ones(2, 3, dtype=torch.int64))
        over = found.terminated | found.truncated
        ended += int(over.sum())
        # Pushed to one side the pole falls: the last angle is beyond the limit.
        assert (found.following[..., 2].abs()[over] > 0.2).all()
        assert (world.observation[..., 2].abs()[over] <= 0.05).all()
        assert torch.equal(found.following[~over], world.observation[~over])
        assert not found.truncated.any()
    counts, returns, lengths = world.episodes()
    assert counts.sum() == ended > 6
    assert torch.equal(returns, lengths)
    world.close()


def test_gymnasiums_limit_is_a_truncation():
    world = rl.GymnasiumCopies("Pendulum-v1", 1, 1, seed=1)
    for step in range(1, 201):
        found = world.step(torch.zeros(1, 1, 1))
        assert found.truncated.item() is (step == 200)
        assert not found.terminated.item()
    world.close()


def test_gymnasiums_copies_and_ours_agree_in_a_loop():
    """The same actions from the same states give the same transitions."""
    world = rl.GymnasiumCopies("CartPole-v1", 1, 4, seed=3)
    ours = rl.Copies(rl.CartPole(), 1, 4, rl.Draws(0, "cpu"))
    states = [np.array(env.unwrapped.state) for env in world._envs.envs]
    ours.state.copy_(torch.tensor(np.array(states))[None])
    ours.observation = ours.environment.observe(ours.state)
    random = torch.Generator().manual_seed(0)
    for _ in range(9):
        action = torch.randint(0, 2, (1, 4), generator=random)
        a, b = world.step(action), ours.step(action)
        for theirs, mine in zip(a, b, strict=True):
            torch.testing.assert_close(mine, theirs)
        assert not (a.terminated | a.truncated).any(), "too short an episode to compare"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CartPole-v9", "CartPole-v1"),
        ("Blackjack-v1", "only boxes"),
        ("Nothing-v0", "Nothing-v0"),
        ("nothing_here:Nothing-v0", "cannot make `nothing_here:Nothing-v0`: No module named"),
    ],
)
def test_an_environment_that_cannot_be_used_is_refused(name, text):
    with pytest.raises(ArgumentError, match=text):
        rl.GymnasiumCopies(name, 1, 1, seed=0)
