"""The loop: what it writes, that it resumes bit for bit, and that it learns."""

import dataclasses
import json
import signal
import threading
from typing import Any, cast

import pytest
import torch

from hotgrid.errors import ArgumentError, DamagedError, StoreError
from hotgrid.store import Checkpoints
from hotgrid.train import Saving, read_events, read_run, rl
from hotgrid.train.rl import _watch
from hotgrid.train.rl.watch import Show

SMALL = rl.OffPolicy(
    copies=4,
    updates=1,
    batch=8,
    warmup=40,
    replay=rl.Uniform(200),
    evaluate_every=80,
    episodes=3,
    final_episodes=4,
)
CASES = {
    "dqn": ("cartpole", rl.DQN(hidden=(8,), n_steps=3), SMALL),
    "prioritised": (
        "cartpole",
        rl.DQN(hidden=(8,), duelling=True, atoms=5),
        dataclasses.replace(SMALL, replay=rl.Prioritised(200)),
    ),
    "sac": ("pendulum", rl.SAC(hidden=(8,)), SMALL),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def trainer(case, steps, folder=None, **options):
    environment, learner, settings = case
    short = rl.find_environment(environment)
    short = dataclasses.replace(short, limit=30)
    return rl.RLTrainer(
        short,
        learner=learner,
        settings=settings,
        steps=steps,
        folder=folder,
        seeds=2,
        log_every=40,
        show=False,
        **options,
    )


def state(made):
    return {name: x.clone() for name, x in made._folder._state.tensors().items()}


def shown(folder):
    """The values that were logged, without times."""
    return [
        {name: x for name, x in event["values"].items() if "a second" not in name}
        for event in read_events(folder)
        if "values" in event
    ]


@every_case
def test_a_run_in_two_parts_is_one_run_to_the_bit(case, tmp_path):
    whole = trainer(case, 240, tmp_path / "whole")
    outcome = whole.run()
    parts = trainer(case, 120, tmp_path / "parts")
    parts.run()
    again = trainer(case, 240, tmp_path / "parts")
    resumed = again.run(resume=True)
    assert resumed.step == outcome.step == 240
    assert torch.equal(resumed.returns, outcome.returns)
    first, second = state(whole), state(again)
    assert first.keys() == second.keys()
    for name, x in first.items():
        assert torch.equal(x, second[name]), name
    ends = [each for each in shown(tmp_path / "whole") if "train/loss" in each]
    again_ends = [each for each in shown(tmp_path / "parts") if "train/loss" in each]
    assert ends[-1] == again_ends[-1]


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_saves_what_was_learnt(tmp_path):
    whole = trainer(CASES["dqn"], 160, tmp_path / "whole")
    whole.run()
    run = trainer(CASES["dqn"], 160, tmp_path / "parts")
    make = run._rounds.make

    def interrupted(*given, **options):
        make(*given, **options)
        if run.step == 96:
            signal.raise_signal(signal.SIGINT)

    run._rounds.make = interrupted
    outcome = run.run()
    assert (outcome.step, outcome.why) == (100, "stopped")
    again = trainer(CASES["dqn"], 160, tmp_path / "parts")
    assert again.run(resume=True).why == "finished"
    first, second = state(whole), state(again)
    assert all(torch.equal(x, second[name]) for name, x in first.items())


def test_more_transitions_than_fit_are_refused():
    with pytest.raises(ArgumentError, match=r"200 transitions for 100,000,000 seeds takes"):
        rl.RLTrainer("cartpole", settings=SMALL, steps=80, seeds=100_000_000)


def test_evaluation_does_not_change_training():
    often = dataclasses.replace(SMALL, evaluate_every=8)
    environment, learner, _ = CASES["dqn"]
    runs = [trainer((environment, learner, each), 160) for each in (SMALL, often)]
    for each in runs:
        each.run()
    first, second = map(state, runs)
    for name in first:
        if not name.startswith("best/"):
            assert torch.equal(first[name], second[name]), name


def test_the_folder_of_a_run(tmp_path):
    trainer(CASES["dqn"], 200, tmp_path, saving=Saving(every=80, best="valid/return",
                                                       better="highest")).run()  # fmt: skip
    names = {path.name for path in tmp_path.iterdir()}
    assert {"checkpoints", "events.jsonl", "report.html", "run.toml"} <= names
    run = read_run(tmp_path)
    assert run.status == "finished"
    assert {"train/return", "train/length", "train/exploration", "train/loss", "train/value",
            "valid/return", "valid/length", "final/return"} <= run.curves.keys()  # fmt: skip
    for name in ("valid/return", "valid/length", "train/length"):
        assert run.best(name)[1] == max(v for _, v in run.curves[name])
    assert "valid/return" in (tmp_path / "report.html").read_text(encoding="utf-8")
    with pytest.raises(ArgumentError, match="seed"):
        trainer(CASES["dqn"], 400, tmp_path, seed=5).run(resume=True)


def test_the_best_policy_of_each_seed_is_kept():
    agent = rl.DQN(hidden=(8,)).begin(4, rl.Discrete(2), 2, rl.Draws(0, "cpu"))
    from hotgrid.train.rl._training._state import BestPolicy

    best = BestPolicy(agent, 2, torch.device("cpu"))
    weights = agent.policy()["online"]
    expected = weights.clone()
    none = torch.zeros(2, 3)
    for returns in ([[1.0], [5.0]], [[2.0], [4.0]], [[0.0], [5.0]]):
        weights += 1
        now = torch.tensor(returns).double().expand(2, 3)
        best.note(rl.Returns(now, none))
        expected = torch.where(now[:, :1] >= best.returns[:, None], weights, expected)
    before = weights.clone()
    best.exchange()
    assert torch.equal(agent.policy()["online"], expected)
    assert best.returns.tolist() == [2, 5]
    best.exchange()
    assert torch.equal(agent.policy()["online"], before)


def test_a_policy_from_a_folder_acts_as_the_best_of_the_run(tmp_path):
    environment, learner, settings = CASES["dqn"]
    made = rl.RLTrainer(environment, learner=learner, settings=settings, steps=200,
                        folder=tmp_path, show=False)  # fmt: skip
    outcome = made.run()
    trained = rl.load_policy(tmp_path)
    made._best.exchange()
    seen = torch.randn(1, 50, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(trained.agent.act(seen), made.agent.act(seen))
    assert trained.step == outcome.step
    pictures = list(rl.frames(trained, steps=20))
    assert len(pictures) >= 20
    assert rl.film(trained, tmp_path / "film.gif", steps=5) >= 5
    assert rl.film(trained, tmp_path / "film.mp4", steps=5) >= 5
    assert (tmp_path / "film.gif").read_bytes()[:3] == b"GIF"
    own = rl.load_policy(tmp_path, environment=rl.CartPole())
    assert torch.equal(own.agent.act(seen), trained.agent.act(seen))
    with pytest.raises(ArgumentError, match="at least 1 step, got 0"):
        rl.film(trained, tmp_path / "film.gif", steps=0)
    with pytest.raises(ArgumentError, match="device 'foo' cannot be used here"):
        rl.load_policy(tmp_path, "foo")
    with pytest.raises(ArgumentError, match="png"):
        rl.film(trained, tmp_path / "film.png")
    with pytest.raises(StoreError):
        rl.load_policy(tmp_path / "nothing")


class OnMeta(rl.Draws):
    """Draws of a device on which nothing is computed."""

    def __init__(self, seed, device):
        self.device = torch.device("meta")

    def uniform(self, *shape, dtype=torch.float32):
        return torch.rand(shape, dtype=dtype, device=self.device)


def test_policies_and_their_returns_are_loaded_to_one_device(tmp_path, monkeypatch):
    environment, learner, settings = CASES["dqn"]
    rl.RLTrainer(environment, learner=learner, settings=settings, steps=80, folder=tmp_path,
                 show=False).run()  # fmt: skip
    monkeypatch.setattr(_watch, "Draws", OnMeta)
    trained = rl.load_policy(tmp_path)
    assert trained.agent.policy()["online"].device.type == "meta"
    assert rl.Player(trained)._state.device == trained.returns.device == torch.device("meta")


def test_a_run_continues_on_another_kind_of_device(tmp_path, capsys):
    made = trainer(CASES["dqn"], 80, tmp_path)
    tensors = made._folder._state.tensors
    # The generator of a GPU has a seed and an offset.
    gpu = torch.zeros(16, dtype=torch.uint8)
    made._folder._state.tensors = lambda: {**tensors(), "random": gpu}
    made.run()
    assert trainer(CASES["dqn"], 120, tmp_path).run(resume=True).step == 120
    assert "another kind of device: it continues from step 80" in capsys.readouterr().err


def test_gymnasium_takes_part(tmp_path):
    _environment, learner, settings = CASES["dqn"]
    made = rl.RLTrainer("gymnasium:CartPole-v1", learner=learner, settings=settings, steps=120,
                        folder=tmp_path, show=False)  # fmt: skip
    outcome = made.run()
    assert outcome.returns.shape == (1, 4)
    assert (outcome.returns >= 8).all()
    again = rl.RLTrainer("gymnasium:CartPole-v1", learner=learner, settings=settings,
                         steps=160, folder=tmp_path, show=False)  # fmt: skip
    assert again.run(resume=True).step == 160
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [e["step"] for e in events if e["event"] == "resume"] == [120]
    trained = rl.load_policy(tmp_path)
    assert trained.environment == rl.CartPole()
    assert rl.film(trained, tmp_path / "film.gif", steps=5) >= 5
    named = rl.load_policy(tmp_path, environment="gymnasium:CartPole-v1")
    seen = torch.randn(1, 50, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(named.agent.act(seen), trained.agent.act(seen))


def test_resuming_joins_no_steps_of_two_episodes_of_gymnasium(tmp_path):
    _environment, learner, settings = CASES["dqn"]

    def made(steps):
        return rl.RLTrainer("gymnasium:CartPole-v1", learner=learner, settings=settings,
                            steps=steps, folder=tmp_path, show=False)  # fmt: skip

    begun = made(60)
    start = begun._rounds.world.observation
    begun.run()
    again = made(80)
    make, seen = again._rounds.make, []

    def noted(*given, **options):
        grows = again._rounds.ring.n_steps.tensors()["open"]
        seen.append((bool(grows.any()), again._rounds.world.observation))
        make(*given, **options)

    again._rounds.make = noted
    again.run(resume=True)
    assert [grows for grows, _ in seen[:2]] == [False, True]
    assert not torch.equal(seen[0][1], start)


def test_a_run_that_was_stopped_before_its_first_evaluation_can_be_watched(tmp_path):
    made = trainer(CASES["dqn"], 240, tmp_path)
    make = made._rounds.make

    def interrupted(*given, **options):
        make(*given, **options)
        signal.raise_signal(signal.SIGTERM)

    made._rounds.make = interrupted
    assert made.run().why == "stopped"
    show = Show(tmp_path, environment=rl.CartPole(limit=30), playing=False)
    assert show._hello()["mean"] is None


class Listener:
    """A page that takes no pictures and keeps what it is told."""

    number, ready = 1, False

    def __init__(self):
        self.told, self.enough = [], threading.Event()
        self.next_frame, self.show = 1, cast("Any", None)

    def tell(self, message):
        self.told.append(message)
        if message.get("episode", 0) > 8:
            self.enough.set()


def test_the_end_of_every_episode_is_told(tmp_path):
    trainer(CASES["dqn"], 80, tmp_path).run()
    show, page = Show(tmp_path, environment=rl.CartPole(limit=30)), Listener()
    show.by, show.speed = "chance", 100.0
    show.join(cast("Any", page))
    show.start()
    assert page.enough.wait(100)
    show.stop()
    ended = {each["episode"] for each in page.told if each.get("ended")}
    assert ended >= set(range(1, 9))


def raises(*given):
    raise ValueError("no hand to draw with")


@pytest.mark.parametrize("method", ["draw", "step"])
def test_pages_are_told_that_an_environment_fails(method, tmp_path, monkeypatch):
    trainer(CASES["dqn"], 80, tmp_path).run()
    show, page = Show(tmp_path, environment=rl.CartPole(limit=30)), Listener()
    page.ready, pictures = True, []
    page.show = pictures.append
    show.join(cast("Any", page))
    monkeypatch.setattr(rl.CartPole, method, raises)
    show._obey("step", {})
    show._offer()
    [said] = [each["text"] for each in page.told if each["type"] == "error"]
    assert said == "the environment failed with ValueError: no hand to draw with"
    assert page.told[-1]["playing"] is False
    # A page that comes later has a picture, too.
    show.join(cast("Any", page))
    assert set(pictures) == {pictures[0]}


def test_a_policy_of_an_environment_that_only_gymnasium_has(tmp_path):
    name = "gymnasium:MountainCarContinuous-v0"
    made = rl.RLTrainer(name, learner=rl.SAC(hidden=(8,)), settings=SMALL, steps=60,
                        folder=tmp_path, show=False)  # fmt: skip
    # Its episodes have 999 steps; a checkpoint is enough.
    made._evaluate = lambda: {"valid/return": 0.0}
    made._last_evaluation = lambda: torch.zeros(1, 1)
    made.run()
    trained = rl.load_policy(tmp_path)
    assert trained.environment.name == name
    assert trained.agent.act(torch.zeros(1, 3, 2)).shape == (1, 3, 1)
    with pytest.raises(ArgumentError, match=f"`{name}` cannot be shown"):
        rl.film(trained, tmp_path / "film.gif", steps=5)


def test_a_run_of_ones_own_environment_says_how_to_load_it(tmp_path):
    made = trainer(CASES["dqn"], 80, tmp_path)
    made.run()
    with pytest.raises(ArgumentError, match=r"is of `CartPole\(.*environment=\.\.\."):
        rl.load_policy(tmp_path)
    with pytest.raises(ArgumentError, match="expected an Environment or a name"):
        rl.load_policy(tmp_path, environment=rl.CartPole)


def damaged(folder, step):
    """Spoil a byte of every tensor of a step."""
    for path in (folder / "checkpoints").glob(f"*{step}*/*.safetensors"):
        data = bytearray(path.read_bytes())
        data[-1] ^= 255
        path.write_bytes(data)


def test_a_damaged_checkpoint_is_skipped(tmp_path, capsys):
    environment, learner, settings = CASES["dqn"]

    def made(steps):
        return rl.RLTrainer(environment, learner=learner, settings=settings, steps=steps,
                            folder=tmp_path, show=False, saving=Saving(every=80, last=2,
                            best=None))  # fmt: skip

    made(160).run()
    assert Checkpoints(tmp_path / "checkpoints").steps() == [80, 160]
    damaged(tmp_path, 160)
    with pytest.raises(DamagedError):
        Checkpoints(tmp_path / "checkpoints").load(160)
    assert rl.load_policy(tmp_path).step == 80
    assert "step 160 is skipped" in capsys.readouterr().err
    again = made(240)
    assert again.run(resume=True).step == 240
    events = read_events(tmp_path)
    assert [event["step"] for event in events if event["event"] == "resume"] == [80]


def test_a_run_whose_checkpoints_are_all_damaged_is_refused(tmp_path):
    made = trainer(CASES["dqn"], 80, tmp_path)
    made.run()
    damaged(tmp_path, 80)
    with pytest.raises(DamagedError):
        rl.load_policy(tmp_path, environment=rl.CartPole(limit=30))
