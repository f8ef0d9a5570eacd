"""Examples that learn through a solver: gradients are slopes, and what is minimised falls."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

FOLDER = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    """An example as a module, for the functions in it."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def assert_slope(loss: Callable[[Tensor], Tensor], at: Tensor) -> None:
    """The gradient along a random direction is that of central differences, in double."""
    generator = torch.Generator().manual_seed(7)
    way = torch.randn(at.shape, generator=generator, dtype=torch.float64)
    x = at.double().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(x), x)
    h = 1e-5
    with torch.no_grad():
        slope = (loss(at + h * way) - loss(at - h * way)) / (2 * h)
    assert slope.abs() > 1e-8
    torch.testing.assert_close((gradient * way).sum(), slope, rtol=1e-6, atol=0)


@pytest.fixture
def word_in_waves() -> tuple[Callable[[Tensor], Tensor], Tensor]:
    given = example("40_gradient")
    target = given.word(32).double()
    return lambda splash: (given.waves(splash, 20) - target).square().mean(), 0.1 * target


@pytest.fixture
def viscosity() -> tuple[Callable[[Tensor], Tensor], Tensor]:
    given = example("41_viscosity")
    starts = torch.stack([given.eddies(16, seed) for seed in range(2)]).double()
    seen = given.measured(given.true_map(16).double(), starts, 12)
    logs = 0.1 * torch.arange(16, dtype=torch.float64).reshape(4, 4)
    return lambda logs: given.misfit(logs, starts, seen, 12), logs


@pytest.fixture
def drag() -> tuple[Callable[[Tensor], Tensor], Tensor]:
    given = example("42_less_drag")
    field, area = given.disc(24)
    model = given.stream(given.body(field, area))
    f = model.initial(tuple(field.shape), torch.Generator())["f"].double()
    return lambda field: given.drag(given.body(field, area), f, 20)[0], field.double()


@pytest.fixture
def correction() -> tuple[Callable[[Tensor], Tensor], Tensor]:
    given = example("43_learned_correction")
    truth = given.seen(given.starts(2, 32, seed=0).double(), 2)
    torch.manual_seed(3)
    net = given.Correction(width=4).double()
    weights = 0.01 * torch.randn(2, 4, 3, 3, dtype=torch.float64)

    def loss(weights: Tensor) -> Tensor:
        call = torch.func.functional_call
        return given.loss(lambda u: call(net, {"net.4.weight": weights}, (u,)), (truth,))

    return loss, weights


@pytest.mark.parametrize("problem", ["word_in_waves", "viscosity", "drag", "correction"])
def test_a_gradient_through_time_is_the_slope(problem: str, request: pytest.FixtureRequest):
    loss, at = request.getfixturevalue(problem)
    assert_slope(loss, at)


def test_the_waves_become_the_word():
    given = example("40_gradient")
    _, errors = given.fitted(given.word(32), steps=16, rounds=8)
    assert errors[-1] < 0.5 * errors[0]


def test_a_map_is_found_from_velocities():
    given = example("41_viscosity")
    truth = given.true_map(24)
    starts = torch.stack([given.eddies(24, seed) for seed in range(2)])
    logs, misfits = given.fitted(starts, given.measured(truth, starts, 24), 24, rounds=7)
    error = (given.as_map(logs, 24).log() - truth.log()).abs().mean()
    assert misfits[-1] < 0.1 * misfits[0]
    assert error < 0.5 * truth.log().abs().mean()


def test_a_body_keeps_its_area_and_loses_drag():
    given = example("42_less_drag")
    found, drags = given.shaped(16, rounds=5, steps=24)
    assert found.sum().item() == pytest.approx(given.disc(16)[1], rel=1e-3)
    assert min(drags[-2:]) < 0.9 * drags[0]


def test_a_correction_conserves_momentum_and_helps_on_new_starts(tmp_path: Path):
    given = example("43_learned_correction")
    truth, new = (given.seen(given.starts(3, 64, seed), 3) for seed in (0, 1))
    net = given.trained(truth, ahead=2, steps=18, folder=tmp_path)
    with torch.no_grad():
        plain, better = (given.coarse_run(new[:, 0], 3, each) for each in (None, net))
    torch.testing.assert_close(better.mean((2, 3)), plain.mean((2, 3)), atol=1e-6, rtol=0)
    assert given.errors(better, new)[-1] < 0.9 * given.errors(plain, new)[-1]


def test_a_net_that_is_not_trained_is_the_coarse_solver():
    given = example("43_learned_correction")
    u = given.starts(2, 16, seed=2)
    with torch.no_grad():
        same = given.coarse_run(u, 2, given.Correction())
    assert torch.equal(same, given.coarse_run(u, 2))
