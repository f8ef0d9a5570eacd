"""What goes wrong in an environment of one's own, or in learning, is said in plain words."""

from dataclasses import dataclass

import pytest
import torch

from hotgrid.errors import UnstableError
from hotgrid.store import Checkpoints
from hotgrid.train import Saving, read_events, rl

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
