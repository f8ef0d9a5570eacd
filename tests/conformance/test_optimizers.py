"""What every optimizer must do. One enters by being exported from `hotgrid.train`."""

import inspect
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

import hotgrid.train
from hotgrid.cluster import run_ranks
from hotgrid.errors import ArgumentError
from hotgrid.train import Groups, OptimizerSpec, Warmup, groups

EXPORTED = {
    name: value
    for name, value in vars(hotgrid.train).items()
    if inspect.isclass(value)
    and issubclass(value, OptimizerSpec)
    and not inspect.isabstract(value)
}
# A second way through an optimizer: its name, then what differs.
VARIANTS = {
    "SGD momentum": {"momentum": 0.9},
    "SGD nesterov foreach": {"momentum": 0.9, "nesterov": True, "implementation": "foreach"},
    "AdamW plain": {"implementation": "plain"},
    "AdamW foreach": {"implementation": "foreach"},
    "Muon newton-schulz": {"method": "newton-schulz", "nesterov": False, "scale": "rms"},
    "Muon everything": {
        "variance": 0.9,
        "cautious": True,
        "equilibrate": True,
        "renormalise": True,
        "momentum": Warmup(steps=3, peak=0.95),
    },
}
MAKERS: dict[str, Callable[..., OptimizerSpec]] = {
    **EXPORTED,
    **{name: partial(EXPORTED[name.split()[0]], **more) for name, more in VARIANTS.items()},
}
every_optimizer = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
RATE = 0.01 * Warmup(steps=4)


class Net(nn.Module):
    """Two matrices of one shape, a tall one, a wide one, a convolution; no vectors."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        shapes = {"a": (8, 8), "b": (8, 8), "tall": (12, 8), "wide": (5, 12), "c": (4, 2, 3, 3)}
        for name, shape in shapes.items():
            setattr(self, name, nn.Parameter(torch.randn(shape, generator=generator)))


def gradients(model: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        if parameter.requires_grad:
            found = torch.randn(parameter.shape, generator=generator)
            parameter.grad = found.to(parameter.dtype)


def train(model: nn.Module, optimizer: Groups, steps: range) -> None:
    for step in steps:
        gradients(model, step)
        optimizer.apply(step)
        optimizer.clip()
        optimizer.step()
        optimizer.zero_grad()


def weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for key, tensor in expected.items():
        assert torch.equal(found[key], tensor), key


@every_optimizer
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(make):
    spec = make(rate=RATE, decay=0.1, clip=5.0)
    straight = Net()
    optimizer = groups(straight, {}, rest=spec)
    train(straight, optimizer, range(6))

    first = Net()
    before = groups(first, {}, rest=spec)
    train(first, before, range(3))
    kept = {key: tensor.clone() for key, tensor in before.state().items()}
    resumed = Net()
    resumed.load_state_dict(first.state_dict())
    after = groups(resumed, {}, rest=spec)
    after.load(kept)
    assert_same(after.state(), kept)
    train(resumed, after, range(3, 6))
    assert_same(weights(resumed), weights(straight))
    assert_same(after.state(), optimizer.state())


@every_optimizer
def test_state_is_keyed_by_path_and_holds_only_tensors(make):
    model = Net()
    state = groups(model, {}, rest=make(rate=0.1)).state()
    paths = dict(model.named_parameters())
    assert all(key.rpartition("/")[0] in paths for key in state)
    assert all(isinstance(tensor, Tensor) for tensor in state.values())
    # The same keys, whatever the order of groups is.
    split = groups(model, {"//*[@name='wide']": make(rate=0.1)}, rest=make(rate=0.1)).state()
    assert split.keys() == state.keys()


@every_optimizer
def test_zero_gradients_without_decay_change_nothing(make):
    model = Net()
    optimizer = groups(model, {}, rest=make(rate=0.1))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    before = weights(model)
    optimizer.clip()
    optimizer.step()
    assert_same(weights(model), before)


@every_optimizer
def test_a_rate_of_zero_changes_nothing(make):
    model = Net()
    optimizer = groups(model, {}, rest=make(rate=0.0, decay=0.1))
    before = weights(model)
    train(model, optimizer, range(2))
    assert_same(weights(model), before)


@every_optimizer
def test_decay_alone_shrinks_towards_zero(make):
    model = Net()
    optimizer = groups(model, {}, rest=make(rate=0.1, decay=0.5))
    before = weights(model)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, now in weights(model).items():
        # 0.95; with Nesterov momentum, whose decay is in the gradient, 0.905.
        share = (now / before[name]).mean()
        assert 0.9 < share < 0.951
        torch.testing.assert_close(now, before[name] * share)


@every_optimizer
def test_a_step_goes_downhill(make):
    model = Net()
    optimizer = groups(model, {}, rest=make(rate=1e-3))
    for parameter in model.parameters():
        parameter.grad = parameter.detach().clone()  # of the sum of squares / 2
    before = weights(model)
    optimizer.step()
    for name, now in weights(model).items():
        assert now.square().sum() < before[name].square().sum(), name


@every_optimizer
def test_frozen_parameters_and_those_without_gradient_are_left_alone(make):
    model, whole = Net(), Net()
    model.b.requires_grad_(False)
    spec = make(rate=RATE, decay=0.1)
    optimizer = groups(model, {"//*[@name='tall']": "frozen"}, rest=spec)
    assert {key.partition("/")[0] for key in optimizer.state()} <= {"a", "wide", "c"}
    assert optimizer.parameters()["frozen"].keys() == {"b", "tall"}
    for step in range(3):
        gradients(model, step)
        if step == 1:
            model.wide.grad = None
        was = weights(model)
        optimizer.apply(step)
        optimizer.step()
        changed = {
            name for name, now in weights(model).items() if not torch.equal(now, was[name])
        }
        assert changed == ({"a", "c"} if step == 1 else {"a", "wide", "c"})
        optimizer.zero_grad()
    fresh = weights(whole)
    assert torch.equal(model.b, fresh["b"]) and torch.equal(model.tall, fresh["tall"])


@every_optimizer
def test_a_member_of_a_stack_without_gradient_is_left_alone(make):
    """`a` and `b` have one shape; training `a` alone equals training it without `b`."""
    both, alone = Net(), Net()
    alone.b.requires_grad_(False)
    spec = make(rate=RATE, decay=0.1)
    ours, theirs = groups(both, {}, rest=spec), groups(alone, {}, rest=spec)
    fresh = weights(both)
    for step in range(3):
        gradients(both, step)
        both.b.grad = None
        for name, parameter in alone.named_parameters():
            parameter.grad = getattr(both, name).grad
        for optimizer in (ours, theirs):
            optimizer.apply(step)
            optimizer.step()
    assert torch.equal(both.b, fresh["b"])
    for name, now in weights(both).items():
        torch.testing.assert_close(now, weights(alone)[name], rtol=0, atol=1e-6)


@every_optimizer
def test_bfloat16_parameters_follow_float32_ones(make):
    exact, low = Net(), Net().bfloat16()
    exact.load_state_dict({k: v.float() for k, v in low.state_dict().items()})
    spec = make(rate=0.02, decay=0.1)
    for model in (exact, low):
        optimizer = groups(model, {}, rest=spec)
        for step in range(3):
            gradients(low, step)
            for ours, theirs in zip(model.parameters(), low.parameters(), strict=True):
                ours.grad = theirs.grad.to(ours.dtype)
            optimizer.step()
    for name, now in weights(low).items():
        assert now.dtype == torch.bfloat16
        torch.testing.assert_close(now.float(), weights(exact)[name], rtol=0.02, atol=0.02)


@every_optimizer
@pytest.mark.parametrize("size", [2, 3])
def test_several_ranks_equal_one(make, size):
    spec = make(rate=RATE, decay=0.1, clip=5.0)

    def rank(communicator):
        model = Net()
        optimizer = groups(model, {}, rest=spec, ranks=communicator)
        train(model, optimizer, range(3))
        return weights(model), optimizer.state()

    alone = Net()
    optimizer = groups(alone, {}, rest=spec)
    train(alone, optimizer, range(3))
    found = run_ranks(size, rank)
    for ended, state in found:
        for name, tensor in weights(alone).items():
            torch.testing.assert_close(ended[name], tensor, rtol=0, atol=1e-6)
        assert_same(ended, found[0][0])
        assert_same(state, found[0][1])


@every_optimizer
def test_what_is_not_its_state_is_refused_by_path(make):
    model = Net()
    optimizer = groups(model, {}, rest=make(rate=0.1))
    state = {key: tensor.clone() for key, tensor in optimizer.state().items()}
    with pytest.raises(ArgumentError, match="unexpected `tall/other`"):
        optimizer.load({**state, "tall/other": torch.zeros(2)})
    for key, tensor in state.items():
        without = {other: value for other, value in state.items() if other != key}
        with pytest.raises(ArgumentError, match=f"missing `{key}`"):
            optimizer.load(without)
        with pytest.raises(ArgumentError, match=f"`{key}` is .* instead of"):
            optimizer.load({**state, key: torch.zeros(*tensor.shape, 2)})
    assert_same(optimizer.state(), state)


@every_optimizer
def test_a_nan_in_one_parameter_reaches_no_other(make):
    model, clean = Net(), Net()
    for each in (model, clean):
        optimizer = groups(each, {}, rest=make(rate=0.1))
        gradients(each, 0)
        if each is model:
            each.b.grad.view(-1)[:1] = torch.nan
        optimizer.step()
    expected = weights(clean)
    for name, now in weights(model).items():
        assert torch.equal(now, expected[name]) == (name != "b"), name


def test_optimizers_were_found():
    assert {"AdamW", "SGD", "Lion", "Muon"} <= EXPORTED.keys()
