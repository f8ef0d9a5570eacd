"""`capture` and the plain function: types of results, random numbers, and what is refused."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.kernels import _compiling, capture

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
WEIGHT = torch.full((3,), 2.0, requires_grad=True)

pytestmark = pytest.mark.usefixtures("traced_but_not_compiled")


class Pair(NamedTuple):
    sum: Tensor
    product: Tensor


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.max(x, 0),
        torch.linalg.qr,
        lambda x: Pair(x + 1, x * 2),
        lambda x: (x + 1, x * 2),
        lambda x: (x + 1,),
    ],
)
def test_a_named_tuple_stays_one(function: Callable[..., Any], device: str):
    captured, x = capture(function), torch.randn(3, 3, device=device)
    expected = function(x)
    for _ in range(3):
        found = captured(x)
        assert type(found) is type(expected)
        torch.testing.assert_close(tuple(found), tuple(expected))


def test_a_recorded_named_tuple_stays_one(monkeypatch: pytest.MonkeyPatch):
    graph = object.__new__(_compiling.Graph)
    graph._lock, graph._inputs, graph._outputs = _Lock(), [], torch.max(torch.eye(2), 0)
    graph._graph = _Recorded()  # pyright: ignore[reportAttributeAccessIssue]
    assert type(graph()) is torch.return_types.max


class _Lock:
    def __enter__(self) -> None: ...
    def __exit__(self, *problem: object) -> None: ...


class _Recorded:
    def replay(self) -> None: ...


def draws(x: Tensor) -> Tensor:
    dropped = torch.nn.functional.dropout(x, 0.5) + torch.rand_like(x)
    return dropped + torch.randn_like(x) + torch.bernoulli(torch.full_like(x, 0.3))


@pytest.mark.compiles
@pytest.mark.parametrize("device", DEVICES)
def test_random_numbers_follow_the_seed_and_are_the_plain_ones_on_a_cpu(
    device: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(_compiling, "_BACKEND", "inductor")
    captured, x = capture(draws), torch.ones(32, device=device)
    captured(x)
    made = []
    for _ in range(2):
        torch.manual_seed(3)
        made.append([captured(x), captured(x), torch.rand(3, device=device)])
    torch.testing.assert_close(made[0], made[1])
    torch.manual_seed(3)
    plain = [draws(x), draws(x), torch.rand(3, device=device)]
    if device == "cpu":  # a recorded graph takes them in another order
        torch.testing.assert_close(made[0], plain)


def repeated(x: Tensor) -> Tensor:
    for _ in range(int(x[0])):
        x = x + 1
    return x


@pytest.mark.parametrize(
    "function",
    [
        repeated,
        lambda x: x if bool((x > 0).all()) else -x,
        lambda x: x + 1 if x.sum().item() > 0 else x,
        lambda x: torch.linspace(0, 1, int(x.max())),
        lambda x: x + 1 if x.sum() > 0 else x,
    ],
)
def test_control_flow_that_depends_on_numbers_is_refused(function: Callable[..., Any]):
    captured = capture(function)
    for _ in range(2):
        with pytest.raises(ArgumentError, match="cannot be captured"):
            captured(torch.ones(2))


def test_code_that_does_not_know_its_names_is_refused(monkeypatch: pytest.MonkeyPatch):
    """Inductor writes such code for `x[int(x[0])]`."""

    def nameless(graph: Any, examples: Any) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            raise NameError("name 'TruncToInt' is not defined")

        return run

    monkeypatch.setattr(_compiling, "_BACKEND", nameless)
    with pytest.raises(ArgumentError, match=r"cannot be captured.*TruncToInt"):
        capture(lambda x: x + 1)(torch.ones(2))


@pytest.mark.parametrize("needs_gradient", [False, True])
def test_gradients_of_gradients_of_weights_are_refused(needs_gradient: bool):
    wave = capture(lambda x: (x * WEIGHT).sin())
    for _ in range(3):
        x = torch.randn(3, requires_grad=needs_gradient)
        (gradient,) = torch.autograd.grad(wave(x).sum(), WEIGHT, create_graph=True)
        torch.testing.assert_close(gradient, (x * WEIGHT).cos() * x)
        with pytest.raises(ArgumentError, match=r"cannot be differentiated.*`.function`"):
            gradient.sum().backward()


def test_what_is_handed_through_keeps_its_gradients():
    square, second = WEIGHT.square(), capture(lambda x, y: (x * 2, y))
    for _ in range(2):
        _, same = second(torch.ones(3), square)
        (gradient,) = torch.autograd.grad(
            same.sum(), WEIGHT, create_graph=True, retain_graph=True
        )
        assert torch.equal(gradient, 2 * WEIGHT)
