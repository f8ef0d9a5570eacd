"""`capture`: the same results with fewer launches, compiled and recorded."""

import threading
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from hotgrid.config import override
from hotgrid.errors import ArgumentError, MissingPartError
from hotgrid.kernels import Captured, _compiling, capture, topk

WEIGHT = torch.randn(5)
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def chain(x: Tensor, a: Tensor) -> Tensor:
    for _ in range(8):
        x = (a - x).abs()
    return x


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Compile without Inductor, which takes seconds; the traced graph is run as it is."""
    compiled: list[Any] = []
    real = torch.compile

    def noted(function: Any, **options: Any) -> Any:
        compiled.append(options)
        return real(function, **options)

    monkeypatch.setattr(_compiling, "_BACKEND", "eager")
    monkeypatch.setattr(torch, "compile", noted)
    return compiled


@pytest.mark.compiles
@pytest.mark.parametrize("device", DEVICES)
def test_the_same_results_with_the_real_compiler(device: str):
    x, a = torch.randn(2, 1, 8, 8, 8, device=device)
    captured = capture(chain)
    first = captured(x, a)
    torch.testing.assert_close(first, chain(x, a))
    y = torch.randn_like(x)
    second = captured(y, a)
    torch.testing.assert_close(second, chain(y, a))
    torch.testing.assert_close(first, chain(x, a))  # a later call leaves it alone


def test_each_kind_of_call_is_compiled_once(quick: list[Any]):
    captured = capture(chain)
    for n in range(2, 14):  # more kinds than torch compiles one code for
        for _ in range(2):
            x = torch.randn(n)
            assert torch.equal(captured(x, x / 2), chain(x, x / 2))
    assert len(quick) == 12
    assert all(each["fullgraph"] and not each["dynamic"] for each in quick)


def test_one_tensor_given_twice_is_another_kind(quick: list[Any]):
    captured = capture(chain)
    x, a = torch.randn(2, 5)
    for arguments in ((x, x), (x, a), (a, x), (a, a)):
        assert torch.equal(captured(*arguments), chain(*arguments))
    assert len(quick) == 2


@pytest.mark.parametrize(
    ("function", "direct"),
    [
        (chain, True),
        (lambda x, a: (x + a, a - x), True),
        (lambda x, a: (a * 2, x), False),  # gives an argument back
        (lambda x, a: x + 1, True),  # leaves an argument alone
        (lambda x, a: {"sum": x + a}["sum"], True),
        (lambda x, a: x + WEIGHT, False),  # uses a tensor from elsewhere
    ],
)
def test_the_graph_is_called_directly_where_nothing_else_happens(
    function: Any, direct: bool, quick: list[Any]
):
    captured = capture(function)
    for _ in range(3):
        x, a = torch.randn(2, 5)
        found, expected = captured(x, a), function(x, a)
        both = (
            zip(found, expected, strict=True)
            if isinstance(found, tuple)
            else [(found, expected)]
        )
        assert all(torch.equal(*pair) for pair in both)
    (ready,) = captured._ready.values()
    assert (getattr(ready, "__qualname__", "") == "_direct.<locals>.run") == direct


def test_gradients_are_those_of_the_plain_function(quick: list[Any]):
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    captured, a = capture(chain), torch.randn(4, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda y: captured(y, a), x)
    with torch.no_grad():
        assert not captured(x, x).requires_grad


def test_tuples_tuned_ops_and_captured_functions_may_be_inside(quick: list[Any]):
    half = capture(lambda x: x / 2)

    @capture
    def best(x: Tensor) -> tuple[Tensor, Tensor]:
        """The best of halves."""
        return topk(half(x), 2)

    x = torch.randn(3, 9)
    values, indices = best(x)
    assert torch.equal(values, topk(x / 2, 2)[0])
    assert torch.equal(indices, topk(x, 2)[1])
    assert isinstance(best, Captured)
    assert best.__doc__ == "The best of halves."


def test_threads_share_it(quick: list[Any]):
    captured = capture(chain)
    x, a = torch.randn(2, 1, 8, 8, 8)
    results: list[Tensor] = []
    threads = [
        threading.Thread(target=lambda: results.append(captured(x, a))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    assert all(torch.equal(each, chain(x, a)) for each in results)
    assert len(quick) == 1


def test_without_compiling_it_is_the_plain_function(quick: list[Any]):
    x, a = torch.randn(2, 5)
    with override({"compile.enabled": "off"}):
        assert torch.equal(capture(chain)(x, a), chain(x, a))
    assert quick == []


def test_a_compiler_that_does_not_work_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def broken(*arguments: Any) -> Any:
        raise RuntimeError("no compiler\nat all")

    monkeypatch.setattr(_compiling.Trial, "_backend", broken)
    x, a = torch.randn(2, 5)
    assert torch.equal(capture(chain)(x, a), chain(x, a))
    assert "`chain` runs uncompiled" in capsys.readouterr().err
    with override({"compile.enabled": "on"}), pytest.raises(MissingPartError, match="doctor"):
        capture(chain)(x, a)


def test_what_cannot_be_captured_is_reported(quick: list[Any]):
    def asks(x: Tensor) -> Tensor:
        return x + 1 if x.sum() > 0 else x

    def fails(x: Tensor) -> Tensor:
        raise KeyError("mine")

    with pytest.raises(ArgumentError, match="'asks' cannot be captured"):
        capture(asks)(torch.ones(2))
    with pytest.raises(KeyError, match="mine"):
        capture(fails)(torch.ones(2))
    with pytest.raises(ArgumentError, match="`function` must be callable, got int"):
        capture(3)
    with pytest.raises(ArgumentError, match="takes tensors only; got Tensor, int"):
        capture(chain)(torch.ones(2), 1)
    with pytest.raises(ArgumentError, match="at least one; got none"):
        capture(chain)()
    with pytest.raises(ArgumentError, match="on one device, and at least one; got cpu, meta"):
        capture(chain)(torch.ones(2), torch.ones(2, device="meta"))


def test_a_graph_copies_in_replays_and_copies_out(monkeypatch: pytest.MonkeyPatch):
    """What runs on a GPU, with a recorder of which only the order of calls is real."""
    stream = SimpleNamespace(wait_stream=lambda other: None)
    graphs: list[Any] = []

    class Recorder:
        def __init__(self) -> None:
            graphs.append(self)
            self.replays = 0

        def replay(self) -> None:
            self.replays += 1
            outputs.copy_(chain(*graph._inputs))

    fake = SimpleNamespace(
        Stream=lambda: stream,
        current_stream=lambda: stream,
        stream=lambda which: nullcontext(),
        CUDAGraph=Recorder,
        graph=lambda recorded, capture_error_mode: nullcontext(),
    )
    x, a = torch.randn(2, 5)
    with monkeypatch.context() as patched:
        patched.setattr(torch, "cuda", fake)
        graph = _compiling.Graph(chain, (x.clone(), a.clone()))
    outputs = graph._outputs
    first, second = graph(x, a), graph(x + 1, a)
    assert torch.equal(first, chain(x, a))
    assert torch.equal(second, chain(x + 1, a))
    assert graphs[0].replays == 2
