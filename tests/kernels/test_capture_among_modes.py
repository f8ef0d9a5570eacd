"""Captured functions inside modes, and with tensors that share memory."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from hotgrid.errors import ArgumentError
from hotgrid.kernels import _compiling, capture

pytestmark = pytest.mark.usefixtures("traced_but_not_compiled")


class Listening(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Hearing(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


class Own(Tensor):
    pass


def test_a_mode_sees_what_a_captured_function_does():
    double, x = capture(lambda x: x * 2), torch.ones(2)
    for _ in range(2):
        assert double(x).tolist() == [2, 2]
        with Listening() as mode:
            assert double(x).tolist() == [2, 2]
        assert mode.seen == ["mul.Tensor"]
        with Hearing() as mode:
            assert double(x).tolist() == [2, 2]
        assert Tensor.mul in mode.seen or Tensor.__mul__ in mode.seen
    assert len(double._ready) == 1


def test_a_tensor_without_numbers_gets_one_back():
    double = capture(lambda x: x * 2)
    double(torch.ones(2))
    with FakeTensorMode() as mode:
        found = double(torch.ones(2))
        assert isinstance(found, FakeTensor) and found.shape == (2,)
        outside = torch.ones(2)
    assert isinstance(double(outside), FakeTensor) and outside.fake_mode is mode


def test_subclasses_stay_what_they_are(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_compiling, "_BACKEND", "inductor")  # what others trace keeps them
    double = capture(lambda x: x * 2)
    for _ in range(2):
        double(torch.ones(2))
        assert type(double(torch.ones(2).as_subclass(Own))) is Own
        assert type(double(torch.nn.Parameter(torch.ones(2)))) is Tensor
    assert len(double._ready) == 2  # with a gradient and without


def test_zeros_without_memory():
    moved = capture(lambda x: x + 1)
    zeros = torch._efficientzerotensor((3,))  # pyright: ignore[reportPrivateImportUsage]
    for _ in range(2):
        assert moved(torch.zeros(3)).tolist() == moved(zeros).tolist() == [1, 1, 1]


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
def test_a_recorded_call_is_of_its_argument():
    double = capture(lambda x: x * 2)
    double(torch.ones(2))
    recorded = torch.jit.trace(double, (torch.ones(2),), check_trace=False)
    assert recorded(torch.full((2,), 3.0)).tolist() == [6, 6]


def test_where_new_tensors_go_is_part_of_the_kind():
    made, x = capture(lambda x: torch.ones(2)), torch.ones(2)
    for _ in range(2):
        assert made(x).device.type == "cpu"
        with torch.device("meta"):
            assert made(x).device.type == "meta"
    assert len(made._ready) == 2


def step(x: Tensor, y: Tensor) -> Tensor:
    x.add_(1)
    return x + y


def shared(function: Any) -> list[list[float]]:
    """Called with one memory twice, whole and shifted by one."""
    one, row = torch.zeros(4), torch.zeros(5)
    return [function(one, one.view(4)).tolist(), function(row[:4], row[1:]).tolist()]


def step_through_data(x: Tensor, y: Tensor) -> Tensor:
    x.data.add_(1)
    return x + y


def step_of_a_list(x: Tensor, y: Tensor) -> Tensor:
    torch._foreach_add_([x], 1.0)  # pyright: ignore[reportPrivateImportUsage]
    return x + y


@pytest.mark.parametrize("step", [step, step_through_data, step_of_a_list])
@pytest.mark.parametrize(
    ("backend", "first"),
    [
        ("aot_eager", "apart"),
        ("aot_eager", "shared"),
        pytest.param("inductor", "apart", marks=pytest.mark.long),
        ("inductor", "shared"),
    ],
)
def test_a_change_is_seen_through_another_argument(
    step: Any, first: str, backend: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(_compiling, "_BACKEND", backend)
    expected = shared(step)
    assert expected == [[2, 2, 2, 2], [2, 2, 2, 1]]
    # The second one finds what torch has kept of the first.
    for captured in (capture(step), capture(step)):
        apart = lambda: captured(torch.zeros(4), torch.zeros(4)).tolist()  # noqa: B023
        for _ in range(2):
            if first == "apart":
                assert apart() == [1, 1, 1, 1]
            assert shared(captured) == expected
            assert apart() == [1, 1, 1, 1]
            twice = torch.zeros(4)
            assert captured(twice, twice).tolist() == [2, 2, 2, 2]


def test_a_sparse_tensor_is_not_taken_for_a_dense_one():
    twice = capture(lambda x: x * 2)
    for _ in range(2):
        with pytest.raises(ArgumentError, match=r"`tensors\[0\]` has the layout torch.sparse"):
            twice(torch.eye(3).to_sparse())
        assert torch.equal(twice(torch.eye(3)), 2 * torch.eye(3))


def test_memory_that_is_only_read_may_be_shared():
    less, both = capture(lambda x, y: x - y), torch.randn(2, 3)
    for _ in range(2):
        assert torch.equal(less(both[0], both[1]), both[0] - both[1])
    (ready,) = less._ready.values()
    assert ready is not less.function


@pytest.mark.parametrize("turned", [Tensor.conj, lambda z: z.conj().imag], ids=["conj", "neg"])
def test_a_lazy_view_is_changed_in_place(turned: Any):
    expected, found = torch.tensor([1j, 2j]), torch.tensor([1j, 2j])
    captured, other = capture(step), torch.zeros(2)
    for _ in range(2):
        assert torch.equal(captured(turned(found), other), step(turned(expected), other))
        assert torch.equal(found, expected)


def test_memory_that_overlaps_is_seen_though_it_begins_elsewhere():
    captured, numbers = capture(step), np.zeros(5, np.float32)
    for expected in ([2.0, 2.0, 2.0, 1.0], [4.0, 4.0, 4.0, 2.0]):
        given = torch.from_numpy(numbers[:4]), torch.from_numpy(numbers[1:])
        assert captured(*given).tolist() == expected
