"""That it learns: a short run for every day, and the stated results as long ones."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from hotgrid.train import rl
from hotgrid.train.rl._environments import _wake

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"


def test_the_stated_results_are_those_of_the_recipes():
    [file] = RESULTS.glob("rl-learning-cpu-*.json")
    recipes = json.loads(file.read_text(encoding="utf-8"))["machine"]["recipes"]
    assert recipes.keys() == {"cartpole", "pendulum", "wake"}
    for name, text in recipes.items():
        recipe = rl.recipe_for(name)
        assert text == f"{recipe.learner}, {recipe.settings}"


def test_cartpole_is_balanced_after_some_seconds():
    """Random actions give 22; three seeds reach 200 and more within 6,000 steps."""
    recipe = rl.recipe_for("cartpole")
    settings = dataclasses.replace(recipe.settings, episodes=10, final_episodes=20)
    trainer = rl.RLTrainer(
        "cartpole",
        learner=dataclasses.replace(recipe.learner, rate=1e-3),
        settings=settings,
        steps=6000,
        seeds=3,
        show=False,
    )
    returns = trainer.run().returns.mean(-1)
    assert returns.mean() > 200, returns
    assert returns.min() > 100, returns


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_cartpole_is_solved_by_ten_of_ten_seeds():
    trainer = rl.RLTrainer("cartpole", seeds=10, seed=1, show=False)
    assert trainer.steps <= 100_000
    returns = trainer.run().returns
    assert returns.shape == (10, 100)
    assert (returns.mean(-1) >= 475).all(), returns.mean(-1)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_pendulum_is_held_upright():
    returns = rl.RLTrainer("pendulum", seeds=3, seed=1, show=False).run().returns
    assert (returns.mean(-1) > -200).all(), returns.mean(-1)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_wake_has_less_drag_than_without_control():
    trainer = rl.RLTrainer("wake", seed=1, show=False)
    trainer.run()
    trainer._best.exchange()
    env = rl.Wake()
    states, _ = _wake._developed(env)
    drags = []
    for controlled in (True, False):
        state, total = states[None], 0.0
        for _ in range(env.limit):
            action = trainer.agent.act(env.observe(state))
            goal = (
                env.fastest * env.speed * (action[..., 0] if controlled else 0 * action[..., 0])
            )
            state, force = env.flow(state, goal, env.interval)
            total += force[..., 1].mean().item()
        drags.append(total / env.limit)
    assert drags[0] < 0.97 * drags[1], drags
    assert torch.isfinite(state).all()
