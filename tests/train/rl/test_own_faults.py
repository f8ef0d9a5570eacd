"""Environments and learners of one's own: shared memory, names, ends."""

import signal
from dataclasses import dataclass

import pytest
import torch

from hotgrid.errors import ArgumentError
from hotgrid.train import read_events, rl
from hotgrid.train.rl._training import _evaluation, _trainer

SMALL = rl.OffPolicy(
    copies=4,
    updates=1,
    batch=8,
    warmup=40,
    replay=rl.Uniform(200),
    evaluate_every=400,
    episodes=3,
    final_episodes=4,
)


@dataclass(frozen=True)
class Count(rl.Environment):
    """The reward is the state in which the action was taken, and lies in its memory."""

    name = "count"
    summary = "-"
    actions = rl.Discrete(2)
    observations = 1
    shape = (1,)
    randoms = 0
    limit: int = 5

    def initial(self, random):
        return torch.zeros(*random.shape[:-1], 1)

    def observe(self, state):
        return state

    def step(self, state, action):
        over = torch.zeros_like(action, dtype=torch.bool)
        return rl.Stepped(state + 1, state[..., 0], over)


@dataclass(frozen=True)
class Bandit(Count):
    """The state stays, and is returned as it is."""

    randoms = 1
    limit: int = 2

    def initial(self, random):
        return random.clone()

    def step(self, state, action):
        over = torch.zeros_like(action, dtype=torch.bool)
        return rl.Stepped(state, state[..., 0].clone(), over)


def steps_of(environment, count):
    copies = rl.Copies(environment, 1, 1, rl.Draws(0, "cpu"))
    action = torch.zeros(1, 1, dtype=torch.int64)
    return [copies.step(action) for _ in range(count)]


def test_rewards_may_lie_in_the_memory_of_the_state():
    found = [step.reward.item() for step in steps_of(Count(), 7)]
    assert found == [0, 1, 2, 3, 4, 0, 1]


def test_the_observation_before_a_new_episode_is_kept_if_the_state_stays():
    for step in steps_of(Bandit(), 4):
        assert step.following.item() == step.observation.item() == step.reward.item()


@dataclass(frozen=True)
class Kept(Count):
    """Begins from a tensor that it keeps, and that is the same memory for all copies."""

    begun = torch.zeros(1)

    def initial(self, random):
        return self.begun.expand(*random.shape[:-1], 1)


def test_a_start_that_an_environment_keeps_is_not_overwritten():
    found = [step.reward.item() for step in steps_of(Kept(), 7)]
    assert found == [0, 1, 2, 3, 4, 0, 1]
    copies = rl.Copies(Kept(), 1, 3, rl.Draws(0, "cpu"))
    copies.step(torch.zeros(1, 3, dtype=torch.int64))
    assert copies.state.tolist() == [[[1.0], [1.0], [1.0]]]
    assert Kept.begun.item() == 0


@dataclass(frozen=True)
class Heavy(rl.CartPole):
    """Derived from one of hotgrid's, with its name and other numbers."""

    gravity: float = 30.0


def test_a_class_derived_from_another_environment_is_not_taken_for_it(tmp_path):
    def run(environment, resume=False):
        made = rl.RLTrainer(environment, settings=SMALL, steps=80, folder=tmp_path, show=False)
        made.run(resume=resume)

    run(Heavy())
    with pytest.raises(ArgumentError, match="of `Heavy\\(\\)`, which hotgrid does not have"):
        rl.load_policy(tmp_path)
    with pytest.raises(ArgumentError, match="the environment given is `cartpole`"):
        rl.load_policy(tmp_path, environment="cartpole")
    assert rl.load_policy(tmp_path, environment=Heavy()).step == 80
    with pytest.raises(ArgumentError, match="environment"):
        run("cartpole", resume=True)


def test_a_run_of_hotgrids_is_not_shown_in_a_class_derived_from_it(tmp_path):
    rl.RLTrainer("cartpole", settings=SMALL, steps=80, folder=tmp_path, show=False).run()
    with pytest.raises(ArgumentError, match="the environment given is `Heavy\\(\\)`"):
        rl.load_policy(tmp_path, environment=Heavy())


@dataclass(frozen=True)
class Own(rl.DQN):
    name = "own"


def test_a_learner_of_ones_own_can_be_loaded(tmp_path):
    rl.RLTrainer(
        "cartpole", learner=Own(hidden=(8,)), settings=SMALL, steps=80, folder=tmp_path,
        show=False,
    ).run()  # fmt: skip
    with pytest.raises(ArgumentError, match="there is no learner 'own'"):
        rl.load_policy(tmp_path)
    assert rl.load_policy(tmp_path, learner=Own).step == 80


def test_a_trainer_that_was_stopped_shows_the_same_when_it_continues(tmp_path):
    def made(folder, steps=1200):
        return rl.RLTrainer(
            "cartpole", learner=rl.DQN(hidden=(8,)), settings=SMALL, steps=steps,
            folder=tmp_path / folder, log_every=200, show=False,
        )  # fmt: skip

    def curve(folder):
        found = [e for e in read_events(tmp_path / folder) if e["event"] == "train"]
        return [(e["step"], e["values"].get("train/loss")) for e in found]

    made("whole").run()
    trainer = made("parts")
    make = trainer._rounds.make

    def interrupted(*given, **options):
        make(*given, **options)
        if trainer.step == 596:
            signal.raise_signal(signal.SIGTERM)

    trainer._rounds.make = interrupted  # pyright: ignore[reportAttributeAccessIssue]
    assert trainer.run().why == "stopped"
    trainer._rounds.make = make
    trainer.run(resume=True)
    assert curve("parts") == curve("whole")
    assert curve("whole")[-1][1] > 0


@dataclass(frozen=True)
class Endless(Count):
    limit: int = 1 << 30


def test_an_evaluation_that_does_not_end_is_refused(monkeypatch):
    monkeypatch.setattr(_evaluation, "_MOST_STEPS", 50)
    with pytest.raises(ArgumentError, match="has not ended after 50 steps"):
        rl.RLTrainer(Endless(), settings=SMALL, steps=400, show=False).run()


def test_a_run_can_be_stopped_in_an_evaluation(tmp_path, monkeypatch):
    monkeypatch.setattr(_trainer, "_GRACE", 0.0)
    trainer = rl.RLTrainer(Endless(), settings=SMALL, steps=400, folder=tmp_path, show=False)
    evaluate = _trainer.evaluate

    def signalled(*given, **options):
        signal.raise_signal(signal.SIGTERM)
        return evaluate(*given, **options)

    monkeypatch.setattr(_trainer, "evaluate", signalled)
    assert trainer.run().why == "stopped"


def test_what_was_learned_before_an_evaluation_that_was_left_is_saved(tmp_path, monkeypatch):
    def made(folder):
        return rl.RLTrainer(
            "cartpole", learner=rl.DQN(hidden=(8,)), settings=SMALL, steps=440,
            folder=tmp_path / folder, log_every=200, show=False,
        )  # fmt: skip

    whole = made("whole")
    returns = whole.run().returns
    parts = made("parts")
    with monkeypatch.context() as patch:
        patch.setattr(_trainer, "_GRACE", 0.0)
        patch.setattr(_evaluation, "_UNASKED", 1)
        evaluate = _trainer.evaluate

        def signalled(*given, **options):
            signal.raise_signal(signal.SIGTERM)
            return evaluate(*given, **options)

        patch.setattr(_trainer, "evaluate", signalled)
        outcome = parts.run()
    assert (outcome.step, outcome.why) == (400, "stopped")
    again = made("parts")
    assert torch.equal(again.run(resume=True).returns, returns)
    first, second = (each._folder._state.tensors() for each in (whole, again))
    assert all(torch.equal(x, second[name]) for name, x in first.items())
    evaluations = [
        [
            (e["step"], e["values"])
            for e in read_events(tmp_path / f)
            if e["event"] == "evaluate"
        ]
        for f in ("whole", "parts")
    ]
    assert evaluations[0] == evaluations[1]
    events = read_events(tmp_path / "parts")
    assert [event["step"] for event in events if event["event"] == "resume"] == [400]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: rl.Prioritised(least=-1.0), "`least` is -1.0; expected a number from 0"),
        (lambda: rl.Prioritised(least=float("nan")), "`least` is nan"),
        (lambda: rl.Prioritised(alpha="a"), "`alpha` is 'a'; expected 0 to 1"),
        (lambda: rl.OffPolicy(replay=None), "`replay` is None; expected Uniform"),
    ],
)
def test_wrong_settings_are_named(make, text):
    with pytest.raises(ArgumentError, match=text):
        make()


class Whole(Count):
    dtype = torch.int64


def test_a_state_of_whole_numbers_is_refused():
    with pytest.raises(ArgumentError, match=r"`Whole.dtype` is torch.int64; expected"):
        rl.RLTrainer(Whole(), steps=2000)
