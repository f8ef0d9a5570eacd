"""What goes wrong in an environment of one's own, or in learning, is said in plain words."""

import dataclasses
from dataclasses import dataclass
from typing import Any, cast

import pytest
import torch

from hotgrid.errors import ArgumentError, UnstableError
from hotgrid.store import Checkpoints
from hotgrid.train import Saving, read_events, rl
from hotgrid.train.rl._environments import _capture, find_environment, host_work

SMALL = rl.OffPolicy(
    copies=4,
    updates=1,
    batch=8,
    warmup=16,
    replay=rl.Uniform(200),
    evaluate_every=40,
    episodes=2,
    final_episodes=2,
)


@dataclass(frozen=True)
class Line(rl.Environment):
    """Walk to 3; what a step or a look gives can be spoilt from the third step on."""

    name = "line"
    summary = "Walk to 3."
    actions = rl.Discrete(2)
    observations = 1
    shape = (2,)
    randoms = 1

    reward: float = -1.0
    seen: float = 0.0
    limit: int = 10

    def initial(self, random):
        return torch.cat((random - 0.5, torch.zeros_like(random)), -1)

    def observe(self, state):
        late = state[..., 1:] >= 3
        return torch.where(late, state[..., :1] + self.seen, state[..., :1])

    def step(self, state, action):
        place = state[..., 0] + (2 * action - 1)
        age = state[..., 1] + 1
        reward = torch.where(age >= 3, self.reward, -1.0)
        return rl.Stepped(torch.stack((place, age), -1), reward, place >= 3)


def trained(environment, steps=200, **options):
    options = {"settings": SMALL, "learner": rl.DQN(hidden=(8,)), "log_every": 20} | options
    return rl.RLTrainer(environment, steps=steps, show=False, **options)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("part", ["reward", "seen"])
def test_numbers_that_are_not_finite_end_a_run(part, value, tmp_path):
    spoilt = Line(**{part: value})
    with pytest.raises(UnstableError, match=r"the .* is -?(nan|inf) at step \d+") as found:
        trained(spoilt, folder=tmp_path).run()
    assert found.value.step is not None
    assert found.value.step < 200
    assert read_events(tmp_path)[-1]["event"] == "fault"


def test_a_run_that_diverges_keeps_its_last_good_checkpoint(tmp_path):
    good = trained("pendulum", 40, learner=rl.SAC(hidden=(8,)), folder=tmp_path, seeds=2)
    good.run()
    [step] = Checkpoints(tmp_path / "checkpoints").steps()
    again = trained("pendulum", 4000, learner=rl.SAC(hidden=(8,)), folder=tmp_path, seeds=2,
                    saving=Saving(every=4, last=1), log_every=10_000,
                    settings=SMALL)  # fmt: skip
    run_round = again._rounds.make

    def spoilt(chance, *, learn):
        run_round(chance, learn=learn)
        if again.step >= 80:
            again.agent.policy()["actor"][1] = float("nan")

    again._rounds.make = spoilt
    with pytest.raises(UnstableError, match=r"weight of `actor` is nan at step \d+ in run 1"):
        again.run(resume=True)
    trained_again = rl.load_policy(tmp_path)
    assert trained_again.step > step
    assert all(torch.isfinite(x).all() for x in trained_again.agent.policy().values())


def test_a_rate_that_is_far_too_high_is_refused():
    wild = rl.SAC(hidden=(8,), rate=1e30)
    with pytest.raises(UnstableError, match="Lower the learning rate"):
        trained("pendulum", learner=wild).run()


def spoilt(**parts):
    """Line with other parts."""
    return type("Spoilt", (Line,), parts)()


def stepping(change):
    """A step whose results are changed."""
    return lambda self, state, action: change(*Line.step(self, state, action))


WRONG = {
    "initial": ({"initial": lambda self, random: random}, "Spoilt.initial", r"\[2, 3, 2\]"),
    "observe": (
        {"observe": lambda self, state: state.double()},
        "Spoilt.observe",
        r"float64 \[2, 3, 2\]; expected float32 \[2, 3, 1\]",
    ),
    "state": (
        {"step": stepping(lambda s, r, t: (s[..., 0], r, t))},
        "Spoilt.step",
        r"the state as float32 \[2, 3\]; expected float32 \[2, 3, 2\]",
    ),
    "reward": (
        {"step": stepping(lambda s, r, t: (s, r[..., None], t))},
        "Spoilt.step",
        r"the reward as float32 \[2, 3, 1\]; expected float32 \[2, 3\]",
    ),
    "double": (
        {"step": stepping(lambda s, r, t: (s, r.double(), t))},
        "Spoilt.step",
        "the reward as float64",
    ),
    "terminated": (
        {"step": stepping(lambda s, r, t: (s, r, t.float()))},
        "Spoilt.step",
        r"`terminated` as float32 \[2, 3\]; expected bool \[2, 3\]",
    ),
    "no tensor": (
        {"step": stepping(lambda s, r, t: (s, -1.0, t))},
        "Spoilt.step",
        "the reward as a float",
    ),
    "a pair": ({"step": stepping(lambda s, r, t: (s, r))}, "Spoilt.step", "returned a tuple"),
    "raises": (
        {"step": lambda self, state, action: state @ action},
        "Spoilt.step",
        r"fails with RuntimeError.* float32 \[2, 3, 2\] and int64 \[2, 3\]",
    ),
    "units": ({"units": (1.0, 2.0)}, "Spoilt.units", "1 numbers above 0"),
    "no unit": ({"units": (0.0,)}, "Spoilt.units", "1 numbers above 0"),
    "actions": ({"actions": 2}, "Spoilt.actions", "is 2; expected Discrete"),
    "limit": ({"limit": 2.5, "__init__": lambda self: None}, "Spoilt.limit", "is 2.5"),
    "no limit": ({"limit": 0, "__init__": lambda self: None}, "Spoilt.limit", "is 0"),
}


@pytest.mark.parametrize(("parts", "place", "text"), WRONG.values(), ids=WRONG)
def test_an_environment_with_a_wrong_part_is_refused_by_name(parts, place, text):
    with pytest.raises(ArgumentError, match=text) as found:
        trained(spoilt(**parts))
    assert f"`{place}`" in str(found.value)


def test_a_missing_part_and_a_field_without_default():
    @dataclass(frozen=True)
    class Bare(rl.Environment):
        actions = rl.Discrete(2)
        initial = observe = step = cast("Any", Line.step)

    with pytest.raises(ArgumentError, match="`Bare` has no `name`"):
        trained(Bare())

    @dataclass(frozen=True)
    class Needy(Line):
        far: float = dataclasses.field(kw_only=True)

    assert trained(Needy(far=3.0))._place.name == "line"
    with pytest.raises(ArgumentError, match=r"such as\s+CartPole\(\)"):
        trained(Line)


@pytest.mark.parametrize("count", [0, -1, 2.0, True])
def test_no_actions_are_refused(count):
    with pytest.raises(ArgumentError, match=f"`count` is {count}"):
        rl.Discrete(count)


def test_recipes_say_where_they_were_chosen():
    own = {name for name in rl.environments() if rl.recipe_for(name).chosen_on == name}
    assert own == {"cartpole", "pendulum", "wake"}
    for name in ("Pendulum-v1", "gymnasium:Pendulum-v1", "pendulum"):
        assert rl.recipe_for(name) == rl.recipe_for("pendulum")
        assert rl.recipe_for(name).learner.name == "sac"
    assert rl.recipe_for("Other-v0", continuous=True).learner.name == "sac"


@pytest.mark.parametrize("name", ["mountain-car", "acrobot"])
def test_distributions_hold_the_returns_of_negative_rewards(name):
    learner = rl.recipe_for(name).learner
    limit = rl.find_environment(name).limit
    least = -sum(learner.gamma**k for k in range(limit))
    assert learner.low * learner.scale <= least
    assert learner.high == 0


# The wake begins with seconds of flow.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=[pytest.mark.long] * (each == "wake"))
        for each in rl.environments()
    ],
)
def test_environments_leave_the_host_out(name):
    """A CUDA graph of a round must not copy from the host, or wait for it."""
    assert host_work(find_environment(name), torch.device("cpu")) is None


@dataclass(frozen=True)
class Numbers(rl.Pendulum):
    """Makes a tensor of numbers in every start."""

    def initial(self, random):
        return super().initial(random) * torch.tensor((1.0, 1.0), dtype=random.dtype)


@dataclass(frozen=True)
class Listed(rl.Pendulum):
    """Indexes by a list, which is made a tensor."""

    def observe(self, state):
        return super().observe(state)[..., [0, 1, 2]]


@dataclass(frozen=True)
class Looks(rl.Pendulum):
    """Looks at a number in every step."""

    def step(self, state, action):
        return super().step(state, action * float(state.abs().max() >= 0))


@dataclass(frozen=True)
class Masked(rl.Pendulum):
    """Takes as many numbers as a mask has true ones."""

    def step(self, state, action):
        assert len(state[state.abs() >= 0]) == state.numel()
        return super().step(state, action)


@dataclass(frozen=True)
class Away(rl.Pendulum):
    """Copies the state to another device, as `tolist` does on a GPU."""

    def step(self, state, action):
        state.to("meta")
        return super().step(state, action)


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        (Away(), "`step` copies a tensor from cpu"),
        (Numbers(), r"`initial` makes a tensor of numbers \(`torch.tensor`\)"),
        (Listed(), r"`observe` makes a tensor of numbers \(`torch.tensor`\)"),
        (Looks(), r"`step` waits for the values of a tensor \(`_local_scalar_dense`\)"),
        (Masked(), r"`step` waits for the values of a tensor \(`index`\)"),
    ],
)
def test_an_environment_that_needs_the_host_is_trained_without_a_graph(environment, text):
    trainer = rl.RLTrainer(environment, learner=rl.SAC(hidden=(4,)), settings=SMALL, steps=40)
    trainer.device = torch.device("cuda")
    with pytest.warns(UserWarning, match=f"without a CUDA graph.*its {text}"):
        assert not trainer._replayed()


NUMBER = torch.ones(())


@pytest.mark.parametrize(
    ("work", "right"),
    [
        (lambda x: x * NUMBER, True),
        (lambda x: x.clamp(max=NUMBER), True),
        (lambda x: torch.where(x > 0, NUMBER, x), False),
        (lambda x: x.clone().copy_(NUMBER), False),
        (lambda x: NUMBER.to(x.device), False),
    ],
)
def test_numbers_on_the_host_are_work_of_it_where_they_are_copied(work, right):
    x = torch.zeros(3, device="meta")
    with _capture._Watch(x.device) as watch:
        work(x)
    told = "`step` uses a tensor that is not on meta"
    assert watch.told("step") == (None if right else told)


@dataclass(frozen=True)
class InPlace(rl.Pendulum):
    """Changes the state that it is given; observations that are kept would change with it."""

    def step(self, state, action):
        state[..., 1] += 0.1
        return super().step(state, action)


def test_an_environment_that_changes_what_it_is_given_is_refused():
    with pytest.raises(ArgumentError, match=r"`InPlace\.step` changes what it was given"):
        rl.RLTrainer(InPlace(), steps=2000)


@dataclass(frozen=True)
class Namesake(rl.Pendulum):
    """An environment of one's own with real numbers, and the name of another one."""

    name = "cartpole"


def test_a_namesake_does_not_get_the_recipe_of_another():
    assert rl.RLTrainer(Namesake(), steps=2000).learner.name == "sac"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"learner": "dqn"}, r"`learner` is 'dqn'; expected a Learner, such as DQN\(\)"),
        ({"learner": rl.DQN}, "`learner` is <class .*expected a Learner"),
        ({"settings": 5}, "`settings` is 5; expected a OffPolicy"),
        ({"saving": 5}, "`saving` is 5; expected a Saving"),
        ({"log_every": 0}, "`log_every` is 0; expected a number from 1"),
        ({"seed": 1.5}, "`seed` is 1.5; expected a number from 0"),
        ({"saving": Saving(best="valid/foo")}, "'valid/foo'.*are valid/return, valid/length"),
    ],
)
def test_wrong_arguments_are_refused_by_name(options, text):
    with pytest.raises(ArgumentError, match=text):
        rl.RLTrainer("cartpole", steps=2000, **options)


def test_rounds_of_gymnasium_are_not_replayed():
    with pytest.raises(ArgumentError, match="`gymnasium:CartPole-v1` is stepped by Gymnasium"):
        rl.RLTrainer("gymnasium:CartPole-v1", steps=2000, captured=True)


def test_a_trainer_that_has_run_is_not_run_again_from_the_beginning(tmp_path):
    made = trained(Line(), 80, folder=tmp_path)
    made.run()
    with pytest.raises(ArgumentError, match="has run already, to step 80"):
        made.run()
    assert read_events(tmp_path)[-1]["event"] == "end"
    alone = trained(Line(), 80)
    assert torch.equal(alone.run().returns, alone.run().returns)


def test_a_damaged_log_does_not_end_a_run(tmp_path):
    rl.RLTrainer(Line(), settings=SMALL, steps=80, folder=tmp_path).run()
    (tmp_path / "events.jsonl").write_text('{"event": "start", "step": 0}\ngarbage\n')
    outcome = rl.RLTrainer(Line(), settings=SMALL, steps=120, folder=tmp_path).run(resume=True)
    assert outcome.why == "finished"
    assert read_events(tmp_path)[1]["event"] == "resume"


@dataclass(frozen=True)
class Drawn(Line):
    """Has a picture, of another kind than expected."""

    def draw(self, state):
        return torch.zeros(41, 40, 3)


def test_a_policy_is_shown_in_its_own_environment_and_drawn_right(tmp_path):
    rl.RLTrainer(Drawn(), settings=SMALL, steps=80, folder=tmp_path).run()
    trained = rl.load_policy(tmp_path, environment=Drawn())
    with pytest.raises(ArgumentError, match=r"`Drawn.draw` returned .*float32 \[41, 40, 3\]"):
        rl.film(trained, tmp_path / "film.gif", steps=2)
    for other in (rl.CartPole(), "cartpole"):
        with pytest.raises(
            ArgumentError, match=r"of `Drawn\(\)`, and the environment given is `c"
        ):
            rl.load_policy(tmp_path, environment=other)
