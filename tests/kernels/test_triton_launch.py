"""Launching a compiled kernel again: arguments, devices, and when it must be recompiled."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hotgrid.kernels.tune._triton_launch import TritonLauncher

from .compiled_kernels import Compiled, Jit
from .test_kernels_for_gpu import run_apart

GRID = (5, 2, 1)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Triton's launch hooks, and a stream of a GPU that does not exist."""
    found = SimpleNamespace(
        launch_enter_hook=SimpleNamespace(calls=[]),
        launch_exit_hook=SimpleNamespace(calls=[]),
        stream=77,
    )
    triton = SimpleNamespace(knobs=SimpleNamespace(runtime=found))
    monkeypatch.setitem(sys.modules, "triton", triton)
    stream_of = lambda device: found.stream
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", stream_of, raising=False)
    return found


def block(start: int = 0) -> torch.Tensor:
    """Numbers that begin a number of bytes after a multiple of 64."""
    whole = torch.zeros(256, dtype=torch.uint8)
    first = -whole.data_ptr() % 64 + start
    return whole[first : first + 64]


def test_it_is_launched_again_with_addresses_on_the_stream_of_the_moment(runtime: Any):
    jit = Jit()
    launch = TritonLauncher(jit)
    for stream in (77, 78, 79):
        runtime.stream = stream
        x, y = block(), block(16)
        launch(GRID, (x, y), (7, 1), (4, True), num_warps=8)
    assert jit.log[0] == ("compiled", 1, GRID, {"num_warps": 8})
    assert [each[:6] for each in jit.log[1:]] == [
        ("straight", 1, *GRID, stream) for stream in (78, 79)
    ]
    given = (x.data_ptr(), y.data_ptr(), 7, 1, 4, True)
    assert jit.log[-1][6:] == ("handle", "packed", None, None, None, *given)


@pytest.mark.parametrize(
    "other",
    [
        {"tensors": (block(1), block())},
        {"tensors": (block(), block(8))},
        {"tensors": (block().view(torch.int32), block())},
        {"numbers": (16, 1)},
        {"constants": (4, False)},
        {"num_warps": 4},
        {"grid": (5, 3, 1)},
    ],
)
def test_what_triton_compiles_anew_is_compiled_anew(other: dict[str, Any], runtime: Any):
    jit = Jit()
    launch = TritonLauncher(jit)
    usual = {
        "grid": GRID,
        "tensors": (block(), block()),
        "numbers": (7, 1),
        "constants": (4, True),
        "num_warps": 8,
    }
    for _ in range(2):
        launch(**usual)
        launch(**usual | other)
    assert [(way, number) for way, number, *_ in jit.log] == [
        ("compiled", 1),
        ("compiled", 2),
        ("straight", 1),
        ("straight", 2),
    ]


@pytest.mark.parametrize("hook", ["launch_enter_hook", "launch_exit_hook"])
def test_launch_hooks_are_called(hook: str, runtime: Any):
    jit = Jit()
    launch, x = TritonLauncher(jit), block()
    ways = []
    for listening in ([], [print], []):
        getattr(runtime, hook).calls = listening
        launch(GRID, (x,), (7,), ())
        launch(GRID, (x,), (7,), ())
        ways.append(jit.log[-1][0])
    setattr(runtime, hook, print)
    launch(GRID, (x,), (7,), ())
    assert [*ways, jit.log[-1][0]] == ["straight", "plainly", "straight", "plainly"]
    assert jit.log[-1][2:] == (GRID, x.data_ptr(), 7)


def unlike(*given: Any) -> Any:
    """A compiled kernel that is launched in a way of its own."""
    found = Compiled(*given)
    del found.function
    return found


@pytest.mark.parametrize("missing", ["function", "stream", "knobs"])
def test_another_triton_is_used_as_it_is(
    missing: str, monkeypatch: pytest.MonkeyPatch, runtime: Any
):
    if missing == "stream":
        monkeypatch.delattr(torch._C, "_cuda_getCurrentRawStream")
    elif missing == "knobs":
        monkeypatch.setitem(sys.modules, "triton", SimpleNamespace())
    jit, x = Jit(kind=unlike if missing == "function" else Compiled), block()
    launch = TritonLauncher(jit)
    launch(GRID, (x,), (7,), ())
    launch(GRID, (x,), (7,), ())
    assert jit.log[-1] == ("plainly", 1, GRID, x.data_ptr(), 7)


def test_a_launch_is_known_after_the_first_one_and_only_where_all_is_aligned(runtime: Any):
    jit = Jit()
    launch = TritonLauncher(jit)
    usual = (GRID, (block(), block()), (7,), (4,), 8)
    assert launch.of_addresses(*usual) is None
    launch(GRID, (block(), block(1)), (7,), (4,), 8)
    assert launch.of_addresses(*usual) is None
    launch(*usual)
    known = launch.of_addresses(*usual)
    assert known is not None
    known(160, 320)
    assert jit.log[-1][-4:] == (160, 320, 7, 4)


def test_the_interpreter_has_nothing_to_be_launched_again():
    jit = Jit(kind=lambda log, number: None)
    launch = TritonLauncher(jit)
    launch(GRID, (block(),), (), ())
    launch(GRID, (block(),), (), ())
    assert jit.made == 2


def test_a_product_like_an_earlier_one():
    found = run_apart("triton_gemv_again.py")
    assert found.returncode == 0, found.stdout + found.stderr[-2000:]
    assert "as told" in found.stdout
