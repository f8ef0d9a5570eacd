"""Recorded rounds: bit for bit what plain ones are, and plain where nothing can be recorded."""

import dataclasses

import pytest
import torch

from hotgrid.train import rl
from hotgrid.train.rl._training import _recorder
from hotgrid.train.rl._training._recorded import Recorded

SMALL = rl.OffPolicy(
    copies=4, updates=2, batch=8, warmup=40, replay=rl.Uniform(200), evaluate_every=200,
    episodes=3, final_episodes=4,
)  # fmt: skip
PRIORITISED = dataclasses.replace(SMALL, replay=rl.Prioritised(200))
CASES = {
    "dqn": ("cartpole", rl.DQN(hidden=(8, 8), n_steps=3, scale=10.0), SMALL),
    "simple": ("mountain-car", rl.DQN(hidden=(8,), double=False, clip=None), SMALL),
    "duelling": ("acrobot", rl.DQN(hidden=(8,), duelling=True), SMALL),
    "c51": ("cartpole", rl.DQN(hidden=(8,), atoms=5, duelling=True), PRIORITISED),
    "prioritised": ("life-keeper", rl.DQN(hidden=(8,)), PRIORITISED),
    "sac": ("pendulum", rl.SAC(hidden=(8, 8)), SMALL),
    "sac, prioritised": ("pendulum", rl.SAC(hidden=(8,), n_steps=2), PRIORITISED),
}


@pytest.mark.parametrize(
    ("case", "seeds"),
    [
        pytest.param(
            case, seeds, id=f"{name} {seeds}", marks=[pytest.mark.long] * ((at + n) % 2)
        )
        for at, (name, case) in enumerate(CASES.items())
        for n, seeds in enumerate((1, 3))
    ],
)
def test_a_run_of_recorded_rounds_is_the_plain_run_to_the_bit(case, seeds):
    environment, learner, settings = case
    short = dataclasses.replace(rl.find_environment(environment), limit=15)
    runs = []
    for captured in (True, False):
        made = rl.RLTrainer(short, learner=learner, settings=settings, steps=120, seeds=seeds,
                            captured=captured, show=False)  # fmt: skip
        returns = made.run().returns
        runs.append({"returns": returns, **made._folder._state.tensors()})
        if captured:
            assert made._rounds._collect.replays
            assert made._rounds._learn.replays
    first, second = runs
    assert first.keys() == second.keys()
    for name, x in first.items():
        assert torch.equal(x, second[name]), name


def called(function, times=6):
    recorded = Recorded(function)
    for _ in range(times):
        recorded()
    return recorded


def test_every_kind_of_operation_is_replayed():
    """Views, results in pairs and in given memory, memory of its own that changes."""
    x = torch.arange(12.0).view(3, 4)
    best, place = torch.zeros(3), torch.zeros(3, dtype=torch.int64)
    total, drawn = torch.zeros(3), torch.zeros(2)
    generators = [torch.Generator().manual_seed(5) for _ in range(2)]

    def step(generator):
        x[:, 1:].mul_(0.5)
        x.add_(torch.full((), 3.0) / 2)
        own = torch.zeros(3)
        own.index_add_(0, torch.arange(3), x.sum(1))
        values, places = (x * torch.tensor([1.0, -1.0, 2.0, 0.5])).sort(1)
        best.copy_(values[:, 0])
        place.copy_(places.flip(1)[:, 0])
        torch.maximum(total, own.relu_() % 7, out=total)
        drawn.add_(torch.rand(2, generator=generator))
        _unused = x.exp().log()

    lasting = [x, best, place, total, drawn]
    start = [each.clone() for each in lasting]
    recorded = called(lambda: step(generators[0]))
    assert recorded.replays
    found = [each.clone() for each in lasting]
    for each, value in zip(lasting, start, strict=True):
        each.copy_(value)
    for _ in range(6):
        step(generators[1])
    for each, value in zip(lasting, found, strict=True):
        assert torch.equal(each, value)


def test_gradients_are_replayed():
    weight = torch.ones(4, requires_grad=True)
    data = torch.arange(4.0)

    def step():
        loss = (weight * data - 1).square().mean()
        (gradient,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            weight.sub_(0.1 * gradient)

    assert called(step, 40).replays
    peer = torch.ones(4)
    for _ in range(40):
        peer -= 0.1 * (2 / 4 * (peer * data - 1) * data)
    torch.testing.assert_close(weight.detach(), peer)


def test_what_looks_at_numbers_is_called_as_it_is():
    x = torch.zeros(())
    recorded = called(lambda: x.add_(1 if float(x) < 4 else 10))
    assert not recorded.replays
    assert x.item() == 24
    marks = torch.zeros(8)
    called(lambda: marks.scatter_(0, (marks == 0).nonzero()[:1, 0], 1.0))
    assert marks.sum() == 6


def test_what_happens_beside_torch_is_noticed():
    """NumPy writes into a tensor: no operation of torch, so a replay would miss it."""
    x, total = torch.zeros(1), torch.zeros(1)
    beside = x.numpy()

    def step():
        beside[0] += 1
        total.add_(x * 2)

    recorded = called(step)
    assert not recorded.replays
    assert x.item() == 6
    assert total.item() == 2 * (1 + 2 + 3 + 4 + 5 + 6)


def test_much_memory_is_not_kept(monkeypatch):
    x = torch.zeros(1000)
    assert called(lambda: x.add_(torch.ones(1000) * 2)).replays
    monkeypatch.setattr(_recorder, "_LARGEST", 5000)
    assert not called(lambda: x.add_(torch.ones(1000) * 2)).replays
    monkeypatch.setattr(_recorder, "_LARGEST", 3000)
    assert not called(lambda: x.add_(2)).replays
    assert x.unique().tolist() == [36.0]
