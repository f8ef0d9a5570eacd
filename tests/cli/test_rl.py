"""`hotgrid rl`: what it prints, writes and refuses."""

import dataclasses
import importlib
import json
import re

import pytest

from hotgrid.train import rl

from .command import run as hotgrid

SMALL = ["--set", "hidden=(8,)", "--set", "copies=4", "--set", "updates=1", "--set", "batch=8",
         "--set", "warmup=40", "--set", "episodes=2", "--set", "final_episodes=5",
         "--set", "capacity=500"]  # fmt: skip


def test_training_ends_with_the_mean_return(tmp_path, capsys):
    out = tmp_path / "run"
    words = ["rl", "train", "cartpole", "--seed", "3", "--out", str(out), *SMALL]
    assert hotgrid([*words, "--steps", "120"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    found = re.fullmatch(r"mean return (\d+\.\d) over 5 episodes", last)
    assert found
    assert float(found[1]) >= 8
    film = tmp_path / "film.gif"
    assert hotgrid(["rl", "watch", str(out), "--film", str(film), "--steps", "5"]) == 0
    assert film.is_file()
    assert "film.gif" in capsys.readouterr().out
    assert hotgrid([*words, "--steps", "160", "--resume"]) == 0
    assert "over 5 episodes" in capsys.readouterr().out
    assert hotgrid(["train", "show", str(out), "--only", "valid/return"]) == 0


WIDE = """
from dataclasses import dataclass
import torch
from hotgrid.train import rl

@dataclass(frozen=True)
class Wide(rl.Environment):
    name, summary, actions = "wide", "-", rl.Discrete(2)
    observations, shape, randoms = 600, (1,), 1
    limit: int = 5

    def initial(self, random):
        return random

    def observe(self, state):
        return state.expand(*state.shape[:-1], 600)

    def step(self, state, action):
        return rl.Stepped(state, state[..., 0], action > 1)
"""


def test_the_capacity_that_is_given_must_fit_and_not_the_usual_one(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(WIDE)
    # The usual 100,000 transitions take 480 MB.
    ring = importlib.import_module("hotgrid.train.rl._replay._ring")
    monkeypatch.setattr(ring, "free_memory", lambda device: 100_000_000)
    words = ["rl", "train", "own.py:Wide", "--steps", "120"]
    assert hotgrid(words) == 1
    assert hotgrid([*words, *SMALL]) == 0


def test_several_seeds_are_listed(capsys):
    assert hotgrid(["rl", "train", "pendulum", "--seeds", "2", "--steps", "80", *SMALL]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0].strip() for line in lines[:2]] == ["run 0", "run 1"]
    assert lines[2].endswith("over 10 episodes")


def test_the_list_has_all_environments(capsys):
    assert hotgrid(["rl", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(rl.environments())
    assert hotgrid(["rl", "list"]) == 0
    assert "CartPole-v1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["train", "cartpol"], "cartpole"),
        (["train", "cartpole", "--set", "rat=1"], "rate"),
        (["train", "cartpole", "--set", "rate=fast"], "fast"),
        (["train", "cartpole", "--set", "hidden=64"], "`hidden` is 64; expected sizes"),
        (["train", "cartpole", "--set", "hidden=(0,)"], "`hidden` is (0,); expected sizes"),
        (["train", "cartpole", "--set", "duelling=7"], "expected True or False"),
        (["train", "cartpole", "--set", "chance=2"], "a number from 0 to 1"),
        (["train", "cartpole", "--set", "rate='a'"], "`rate` is 'a'"),
        (["train", "cartpole", "--set", "capacity=0.5"], "a whole number from 1"),
        (["train", "cartpole", "--set", "warmup=-1"], "a whole number from 0"),
        (["train", "pendulum", "--set", "temperature=0"], "a number above 0"),
        (
            ["train", "cartpole", "--set", "foo=1"],
            "there is no setting `foo` of dqn; there are",
        ),
        (["train", "cartpole", "--set", "rat=1"], "did you mean `rate`"),
        (["train", "cartpole", "--set", "rate"], "`--set rate` must be KEY=VALUE"),
        (["train", "cartpole", "--set", "warmup=200000"], "nothing would be learned in 100000"),
        (["train", "cartpole", "--steps", "500"], "nothing would be learned in 500 steps"),
        (["train", "cartpole", "--learner", "sac"], "use DQN"),
        (["train", "cartpole", "--learner", "ppo"], "there are dqn, sac"),
        (["watch", "nowhere"], "nowhere"),
        (["watch", __file__], "is a file; give the folder of a run"),
        (["train", "cartpole", "--device", "potato"], "device 'potato' cannot be used here"),
        (["train", "cartpole", "--device", "cuda:99"], "device 'cuda:99' cannot be used here"),
    ],
)
def test_mistakes_are_explained(words, text, capsys):
    assert hotgrid(["rl", *words]) != 0
    assert text in capsys.readouterr().err


def test_truth_values_are_words(capsys):
    words = ["rl", "train", "cartpole", "--steps", "80", *SMALL]
    assert hotgrid([*words, "--set", "duelling=true", "--set", "double=No"]) == 0
    assert "mean return" in capsys.readouterr().out


def test_help_lists_all_keys_and_the_seed(capsys):
    hotgrid(["rl", "train", "--help"])
    text = capsys.readouterr().out
    parts = (rl.DQN(), rl.SAC(), rl.OffPolicy())
    names = {each.name for part in parts for each in dataclasses.fields(part)}
    for name in (names - {"replay"}) | {"capacity"}:
        assert re.search(rf"\b{name}\b", text), name
    assert "by default 0" in text


def test_watching_waits_for_the_first_checkpoint(tmp_path, capsys, monkeypatch):
    out = tmp_path / "run"
    train = ["rl", "train", "cartpole", "--out", str(out), *SMALL, "--steps", "80"]
    assert hotgrid(train) == 0
    aside = tmp_path / "aside"
    (out / "checkpoints").rename(aside)
    lines = (out / "events.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (out / "events.jsonl").write_text(lines[0], encoding="utf-8")

    def later(seconds):
        assert "waiting for the first one" in capsys.readouterr().out
        aside.rename(out / "checkpoints")

    monkeypatch.setattr("time.sleep", later)
    film = ["rl", "watch", str(out), "--film", str(tmp_path / "film.gif"), "--steps", "5"]
    assert hotgrid(film) == 0
    assert "whose best evaluation had a mean return of" in capsys.readouterr().out


OWN = """
from dataclasses import dataclass
import torch
from hotgrid.train import rl


@dataclass(frozen=True)
class Line(rl.Environment):
    name = "line"
    summary = "Walk to 3."
    actions = rl.Discrete(2)
    observations = 1
    shape = (1,)
    randoms = 1
    limit: int = 10

    def initial(self, random):
        return random - 0.5

    def observe(self, state):
        return state

    def step(self, state, action):
        state = state + (2 * action[..., None] - 1)
        return rl.Stepped(state, -torch.ones_like(state[..., 0]), state[..., 0] >= 3)

    def draw(self, state):
        return torch.zeros(8, 8, 3, dtype=torch.uint8)


@dataclass(frozen=True)
class Needy(Line):
    far: float = ...
    near: float = None

    def __post_init__(self):
        raise TypeError("far is missing")


number = 3
"""


def test_an_environment_of_ones_own_from_a_file(tmp_path, capsys):
    file, out, film = tmp_path / "own_line.py", tmp_path / "run", tmp_path / "film.gif"
    file.write_text(OWN, encoding="utf-8")
    train = ["rl", "train", f"{file}:Line", *SMALL, "--steps", "80", "--out", str(out)]
    assert hotgrid(train) == 0
    assert "mean return" in capsys.readouterr().out
    watch = ["rl", "watch", str(out), "--film", str(film), "--steps", "3"]
    assert hotgrid(watch) != 0
    assert "--environment file.py:Class" in capsys.readouterr().err
    assert hotgrid([*watch, "--environment", f"{file}:Line"]) == 0
    assert film.is_file()
    for name, text in {
        "Lin": "did you mean `Line`",
        "number": "is not a hotgrid.train.rl.Environment",
        "Needy": "cannot be made without arguments: far is missing",
    }.items():
        assert hotgrid(["rl", "train", f"{file}:{name}"]) != 0
        assert text in capsys.readouterr().err
