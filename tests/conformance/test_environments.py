"""What every environment must do. One enters by being exported from `hotgrid.train.rl`."""

import inspect

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.train import rl

EXPORTED = {
    value.name: value()
    for value in vars(rl).values()
    if inspect.isclass(value)
    and issubclass(value, rl.Environment)
    and not inspect.isabstract(value)
}
# A wake begins with thousands of steps of a flow.
every_environment = pytest.mark.parametrize(
    "env",
    [
        pytest.param(env, id=name, marks=[pytest.mark.long] * (name == "wake"))
        for name, env in EXPORTED.items()
    ],
)


def starts(env, *shape, seed=0):
    return env.initial(rl.Draws(seed, "cpu").uniform(*shape, env.randoms, dtype=env.dtype))


def any_actions(env, *shape, seed=1):
    draws = rl.Draws(seed, "cpu")
    if isinstance(env.actions, rl.Discrete):
        return draws.below(env.actions.count, *shape)
    low, high = torch.tensor(env.actions.low), torch.tensor(env.actions.high)
    return low + (high - low) * draws.uniform(*shape, env.actions.width)


def test_the_list_has_every_environment():
    assert rl.environments() == EXPORTED
    with pytest.raises(ArgumentError, match="cartpole"):
        rl.find_environment("cartpol")


@every_environment
def test_shapes_and_dtypes(env):
    state = starts(env, 2, 3)
    assert (state.shape, state.dtype) == ((2, 3, *env.shape), env.dtype)
    seen = env.observe(state)
    assert (seen.shape, seen.dtype) == ((2, 3, env.observations), torch.float32)
    found = env.step(state, any_actions(env, 2, 3))
    assert (found.state.shape, found.state.dtype) == (state.shape, env.dtype)
    assert (found.reward.shape, found.reward.dtype) == ((2, 3), torch.float32)
    assert (found.terminated.shape, found.terminated.dtype) == ((2, 3), torch.bool)


@every_environment
def test_a_step_is_a_pure_function(env):
    state, action = starts(env, 3), any_actions(env, 3)
    kept = state.clone()
    first, second = env.step(state, action), env.step(state, action)
    assert torch.equal(state, kept)
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b)


@every_environment
def test_copies_do_not_see_each_other(env):
    state, action = starts(env, 4), any_actions(env, 4)
    together = env.step(state, action)
    for at in range(4):
        alone = env.step(state[at : at + 1], action[at : at + 1])
        for a, b in zip(alone, together, strict=True):
            torch.testing.assert_close(a[0], b[at], rtol=1e-6, atol=1e-7)


@every_environment
def test_episodes_end_and_begin_again(env):
    """By the limit at the latest; the observation before the new episode is kept."""
    short = type(env)(limit=7)
    copies = rl.Copies(short, 1, 3, rl.Draws(0, "cpu"))
    for step in range(1, 22):
        found = copies.step(any_actions(env, 1, 3, seed=step))
        over = found.terminated | found.truncated
        assert torch.isfinite(found.reward).all()
        assert torch.isfinite(found.following).all()
        assert torch.equal(found.following[~over], copies.observation[~over])
    count, _returns, lengths = copies.episodes().flatten().tolist()
    assert count >= 9
    assert lengths <= 7 * count
    assert copies.episodes().sum() == 0


@every_environment
def test_a_truncated_copy_shows_what_followed_its_last_action(env):
    short = type(env)(limit=3)
    copies = rl.Copies(short, 1, 2, rl.Draws(3, "cpu"))
    for step in range(1, 4):
        state, action = copies.state.clone(), any_actions(env, 1, 2, seed=step)
        found = copies.step(action)
        expected = short.observe(short.step(state, action).state)
        torch.testing.assert_close(found.following, expected)
    assert found.truncated.all()
    assert not torch.equal(found.following, copies.observation)


@every_environment
def test_it_can_be_drawn(env):
    first, second = starts(env, 2)
    picture = env.draw(first)
    assert picture.dtype == torch.uint8
    assert picture.ndim == 3
    assert picture.shape[-1] == 3
    # H.264 needs even sizes.
    assert picture.shape[0] % 2 == picture.shape[1] % 2 == 0
    assert picture.float().std() > 1
    if env.randoms:
        assert not torch.equal(picture, env.draw(second))


@every_environment
def test_it_says_what_it_is(env):
    assert env.summary.endswith(".")
    assert env.limit > 1
