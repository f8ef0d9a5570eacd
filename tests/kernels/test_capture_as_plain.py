"""A captured function as its caller sees it: run once a call, bound, copied, transformed."""

import copy
import pickle
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from hotgrid.config import override
from hotgrid.errors import ArgumentError
from hotgrid.kernels import _capture, capture
from hotgrid.kernels._compiling import Trial, observed

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


pytestmark = pytest.mark.usefixtures("traced_but_not_compiled")


@pytest.mark.parametrize("enabled", ["auto", "off"])
@pytest.mark.parametrize("device", DEVICES)
def test_each_call_runs_it_once(device: str, enabled: str):
    count, x = torch.zeros(1, device=device), torch.zeros(1, device=device)
    counted = capture(lambda x: x + count.add_(1))
    with override({"compile.enabled": enabled}):
        assert [float(counted(x)) for _ in range(4)] == [1, 2, 3, 4]
    assert float(count) == 4


@pytest.mark.parametrize("device", DEVICES)
def test_a_module_counts_its_batches_once(device: str):
    norm = torch.nn.BatchNorm1d(3).to(device)
    plain, x = copy.deepcopy(norm), torch.randn(4, 3, device=device)
    for captured in (capture(norm), capture(lambda x: norm(x) * 1)):
        for _ in range(2):
            torch.testing.assert_close(captured(x), plain(x))
    assert int(norm.num_batches_tracked) == 4
    torch.testing.assert_close(norm.running_var, plain.running_var)


@pytest.mark.parametrize("device", DEVICES)
def test_an_argument_is_changed_once_and_given_back_as_it_is(device: str):
    x = torch.zeros(2, device=device)
    grown = capture(lambda x: x.add_(1))
    for n in range(1, 4):
        assert grown(x) is x
        assert x.tolist() == [n, n]
    same = capture(lambda x: x)
    assert same(x) is x and same(x) is x
    row = capture(lambda x: x[1:])
    assert all(row(x).data_ptr() == x[1:].data_ptr() for _ in range(2))


@pytest.mark.parametrize("device", DEVICES)
def test_a_first_call_draws_the_random_numbers_of_later_ones(device: str):
    x = torch.ones(64, device=device)
    dropped = capture(lambda x: torch.nn.functional.dropout(x, 0.5))
    found: list[Tensor] = []
    for _ in range(3):
        torch.manual_seed(7)
        found += [torch.stack([dropped(x), dropped(x)])]
    assert torch.equal(found[0], found[1]) and torch.equal(found[1], found[2])
    assert not torch.equal(found[0][0], found[0][1])


@pytest.mark.parametrize(
    ("function", "repeatable"),
    [
        (lambda x: x + 1, True),
        (lambda x: ((x * 2).add_(1), x - 1), True),  # changes what it has made itself
        (lambda x: x.add_(1), False),
        (lambda x: x[0].mul_(2) + 1, False),
        (lambda x: x + STATE.add_(0), False),
        (lambda x: torch.nn.functional.batch_norm(x, STATE, STATE * 1, training=True), False),
        (lambda x: x, False),
        (lambda x: x[0], False),
        (lambda x: {"x": x + 1}, False),
    ],
)
def test_only_functions_without_side_effects_are_repeated(function: Any, repeatable: bool):
    """On a GPU such a function is warmed up and recorded; others are only compiled."""
    trial = Trial(function)
    trial.run([torch.ones(4, 3)])
    assert trial.repeatable == repeatable
    assert observed(function, [torch.ones(4, 3)])[1] == repeatable


STATE = torch.zeros(3)
WEIGHT = torch.ones(3, requires_grad=True)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Take the way of a GPU, with a recorder that only tells what it was given."""
    noted: list[str] = []

    def graph(run: Any, own: Any) -> Any:
        noted.append("own" if all(x.is_contiguous() for x in own) else "strided")
        return run

    gpu = SimpleNamespace(type="cuda")
    monkeypatch.setattr(_capture, "_common_device", lambda tensors: gpu)
    monkeypatch.setattr(_capture, "Graph", graph)
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(
        torch.random, "fork_rng", lambda devices: REAL_FORK([], device_type="cpu")
    )
    return noted


REAL_FORK: Any = torch.random.fork_rng


@pytest.mark.parametrize("enabled", ["auto", "off"])
def test_on_a_gpu_only_what_can_be_repeated_is_recorded(recorded: list[str], enabled: str):
    x, count = torch.ones(3), torch.zeros(1)
    with override({"compile.enabled": enabled}):
        for function in (lambda x: x.add_(1), lambda x: x + count.add_(1), lambda x: x):
            capture(function)(x)
        capture(lambda x: x * 2)(x.clone().requires_grad_())
        assert recorded == []
        assert capture(lambda x: x * 2)(x).tolist() == [4, 4, 4]
        assert recorded == ["own"]
        capture(lambda x: x * WEIGHT)(x)  # a recorded call would have no gradient for it
        assert recorded == ["own"]
    assert float(count) == 1


def test_a_graph_gets_copies_that_its_kernels_were_compiled_for(recorded: list[str]):
    runs: list[tuple[int, ...]] = []
    compiled = Trial.run
    trial = capture(lambda x: x * 2)
    x = torch.arange(6.0).reshape(2, 3)
    with pytest.MonkeyPatch.context() as patched:
        noted = lambda self, tensors: (
            runs.append(tensors[0].stride()),
            compiled(self, tensors),
        )
        patched.setattr(Trial, "run", lambda self, tensors: noted(self, tensors)[1])
        for given in (x, x[:1].expand(2, 3)):
            assert torch.equal(trial(given), given * 2)
    assert runs == [(3, 1), (0, 1), (3, 1)]
    assert recorded == ["own", "own"]


def test_recording_gives_random_numbers_back(
    recorded: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(_capture, "Graph", lambda run, own: (run(*own), run(*own), run)[2])
    x = torch.ones(64)
    found: list[Tensor] = []
    dropped = capture(lambda x: torch.nn.functional.dropout(x, 0.5))
    for _ in range(2):
        torch.manual_seed(7)
        found.append(torch.stack([dropped(x), dropped(x)]))
    assert torch.equal(*found)


def test_autocast_is_part_of_the_kind():
    product = capture(lambda x: x @ x)
    x = torch.randn(3, 3)
    for _ in range(2):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert product(x).dtype == torch.bfloat16
        assert product(x).dtype == torch.float32
        with torch.autocast("cpu", dtype=torch.float16):
            assert product(x).dtype == torch.float16
    assert len(product._ready) == 3


def test_inference_mode_is_part_of_the_kind():
    product = capture(lambda x: x * 2)
    x = torch.randn(3)
    for _ in range(2):
        with torch.inference_mode():
            assert product(x).is_inference()
        assert not product(x).is_inference()
        assert product(x.clone().requires_grad_()).requires_grad
    assert len(product._ready) == 3


def test_inside_of_transforms_the_plain_function_runs():
    wave, x = capture(lambda x, a: (x * a).sin()), torch.randn(4, dtype=torch.float64)
    plain = wave.function
    of = lambda run: lambda v: run(v, v).sum()
    assert torch.equal(torch.func.grad(of(wave))(x), torch.func.grad(of(plain))(x))
    assert torch.equal(torch.func.hessian(of(wave))(x), torch.func.hessian(of(plain))(x))
    assert torch.equal(torch.vmap(wave)(x, x), plain(x, x))
    assert torch.equal(*(torch.func.jvp(of(each), (x,), (x,))[1] for each in (wave, plain)))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x)
        tangent = torch.autograd.forward_ad.unpack_dual(wave(dual, dual)).tangent
    torch.testing.assert_close(tangent, 2 * x * x * (x * x).cos())
    assert wave._ready == {}


def test_gradients_of_gradients_are_refused_with_a_clear_message():
    wave = capture(lambda x, a: (x * a).sin())
    x = torch.randn(3, requires_grad=True)
    for number in range(6):
        arguments = ((x, x), (x, torch.ones(3)), (x * 2, x))[number % 3]
        (gradient,) = torch.autograd.grad(wave(*arguments).sum(), x, create_graph=True)
        (expected,) = torch.autograd.grad(wave.function(*arguments).sum(), x, retain_graph=True)
        torch.testing.assert_close(gradient, expected)
        with pytest.raises(ArgumentError, match=r"cannot be differentiated.*`.function`"):
            gradient.sum().backward()


def test_names_take_their_places():
    less = capture(lambda x, a: x - a)
    x, a = torch.randn(2, 5)
    assert torch.equal(less(a=a, x=x), x - a)
    assert torch.equal(less(x, a=a), x - a)
    with pytest.raises(ArgumentError, match="missing a required argument: 'a'"):
        less(x, b=a)
    with pytest.raises(ArgumentError, match="multiple values for argument 'x'"):
        less(x, x=a)
    with pytest.raises(ArgumentError, match="`a` cannot be given by name"):
        capture(lambda x, *, a: x - a)(x, a=a)


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((2,), 3.0))
        self.factor = 2

    @capture
    def step(self, x: Tensor) -> Tensor:
        return x * self.weight * self.factor


def test_it_is_a_method_of_each_object():
    one, other, x = Scaled(), Scaled(), torch.ones(2)
    with torch.no_grad():
        other.weight.fill_(5.0)
    assert one.step is one.step and one.step is not other.step
    assert [each.step(x).tolist() for each in (one, other)] == [[6, 6], [10, 10]]
    one.factor = 1  # a compiled method asks for its object, though not for its arguments
    assert one.step(x).tolist() == [3, 3]
    assert list(one.state_dict()) == ["weight"]
    assert isinstance(Scaled.step, type(one.step))

    class Slotted:
        __slots__ = ()
        step = capture(lambda self, x: x)

    with pytest.raises(ArgumentError, match="`step` is captured, which needs an object with"):
        Slotted().step(x)


def test_it_is_copied_and_pickled():
    one, x = Scaled(), torch.ones(2)
    assert one.step(x).tolist() == [6, 6]
    for again in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        with torch.no_grad():
            again.weight.fill_(1.0)
        assert again.step(x).tolist() == [2, 2]
        plain: Any = again.step.function
        assert plain.__self__ is again
    assert one.step(x).tolist() == [6, 6]
    wave = capture(torch.sin)
    assert torch.equal(copy.deepcopy(wave)(x), x.sin())
    assert capture(wave) is wave
