"""Red zones: what a compiled kernel does outside of its buffers is caught and named."""

import ctypes
import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from hotgrid import _native
from hotgrid.config import override
from hotgrid.errors import KernelError
from hotgrid.kernels import OPS, CodebookLinear, gemv, topk
from hotgrid.kernels._codebook._coded import Coded
from hotgrid.kernels.tune import Call, Candidate, Op, Tuned, Work, in_red_zones

N = 20
FLOAT = ctypes.sizeof(ctypes.c_float)


def number_at(x: Tensor, index: int) -> float:
    """As compiled code reads: at any address."""
    return ctypes.c_float.from_address(x.data_ptr() + FLOAT * index).value


def put(x: Tensor, index: int, number: float) -> None:
    ctypes.memmove(x.data_ptr() + FLOAT * index, ctypes.byref(ctypes.c_float(number)), FLOAT)


def copying(x: Tensor, y: Tensor) -> None:
    for i in range(N):
        put(y, i, number_at(x, i))


def writing(*indices: int) -> Callable[[Tensor, Tensor], None]:
    def kernel(x: Tensor, y: Tensor) -> None:
        copying(x, y)
        for index in indices:
            put(y, index, 7.0)

    return kernel


def reading(*indices: int) -> Callable[[Tensor, Tensor], None]:
    """The sum of all numbers, and of some that are not its own."""

    def kernel(x: Tensor, y: Tensor) -> None:
        copying(x, y)
        put(y, 4, sum(number_at(x, i) for i in (*range(N), *indices)))

    return kernel


def in_zones(kernel: Callable[[Tensor, Tensor], Any], x: Tensor | None = None) -> Tensor:
    y = torch.empty(N)
    in_red_zones("copy.planted", kernel, {"x": torch.randn(N) if x is None else x}, {"y": y})
    return y


def tuned(kernel: Callable[[Tensor, Tensor], None]) -> Tuned:
    """An op with one native-like candidate."""

    def plain(x: Tensor) -> Tensor:
        y = torch.empty_like(x)
        kernel(x, y)
        return y

    def checked(x: Tensor) -> Tensor:
        y = torch.empty_like(x)
        in_red_zones("copy.planted", kernel, {"x": x}, {"y": y})
        return y

    op = Op(
        name="copy",
        reference=torch.clone,
        candidates=(Candidate(name="planted", function=plain, checked=checked),),
        describe=lambda x: Call(op="copy", dtype="float32"),
        work=lambda call: Work(bytes=0),
        compare=lambda expected, found, x: None if torch.equal(expected, found) else "numbers",
        sample=lambda *_: (),
    )
    return Tuned(op)


@pytest.mark.parametrize("mode", ["enforce", "validate"])
@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (writing(N), "write out of bounds in buffer `y` at index 20, its length is 20"),
        (writing(-3), "write out of bounds in buffer `y` at index -3, its length is 20"),
        (
            writing(N + 5, N + 1, -1),
            "write out of bounds in buffer `y` at index -1, its length is 20, and 2 more",
        ),
        (reading(N), "read out of bounds in buffer `x` at index 20, its length is 20"),
        (reading(-1), "read out of bounds in buffer `x` at index -1, its length is 20"),
        (
            reading(N + 40, N + 3),
            "read out of bounds in buffer `x` at index 23, its length is 20",
        ),
    ],
)
def test_planted_accesses_are_caught_with_kernel_buffer_and_index(
    mode: str, kernel: Any, text: str
):
    with override({"kernels.check_mode": mode}), pytest.raises(KernelError) as caught:
        tuned(kernel)(torch.randn(N))
    assert str(caught.value) == f"kernel `copy.planted`: {text}"


def test_a_sound_kernel_gives_its_result():
    x = torch.randn(N)
    assert torch.equal(in_zones(copying, x), x)
    with override({"kernels.check_mode": "validate"}):
        assert torch.equal(tuned(copying)(x), x)


@pytest.mark.parametrize("written", [0.0, float("nan"), -float("inf")])
def test_a_write_is_seen_whatever_is_written(written: float):
    """One of these is what the red zone holds at first."""

    def kernel(x: Tensor, y: Tensor) -> None:
        copying(x, y)
        put(x, N + 2, written)

    with pytest.raises(KernelError, match="write out of bounds in buffer `x` at index 22"):
        in_zones(kernel)


@pytest.mark.parametrize("pick", [min, max])
def test_a_read_is_seen_by_orders_too(pick: Callable[..., float]):
    """Zero is neither the least nor the greatest of these."""
    x = torch.randn(N).abs() + 1
    x = x if pick is min else -x

    def kernel(x: Tensor, y: Tensor) -> None:
        copying(x, y)
        some = [number_at(x, i) for i in (*range(N), N)]
        # As top-k orders them: NaN is the greatest.
        put(y, 0, pick(some, key=lambda each: (each != each, each)))

    with pytest.raises(KernelError, match="read out of bounds in buffer `x` at index 20"):
        in_zones(kernel, x)


def test_a_read_that_does_not_reach_the_result_is_not_seen():
    def kernel(x: Tensor, y: Tensor) -> None:
        copying(x, y)
        number_at(x, N)

    in_zones(kernel)


def test_inputs_must_stay_as_they_are():
    def kernel(x: Tensor, y: Tensor) -> None:
        copying(x, y)
        put(x, 6, 1e9)

    with pytest.raises(KernelError) as caught:
        in_zones(kernel)
    assert str(caught.value) == (
        "kernel `copy.planted`: write to buffer `x` at index 6, which is read-only; its "
        "length is 20"
    )


def test_outputs_must_be_written():
    def kernel(x: Tensor, y: Tensor) -> None:
        y[:7], y[8:] = x[:7], x[8:]

    text = "buffer `y` at index 7 was read before it was written, or never written"
    with pytest.raises(KernelError, match=text):
        in_zones(kernel)


def test_a_kernel_that_is_not_sure_is_reported():
    with pytest.raises(KernelError, match="returns different results for the same inputs"):
        in_zones(lambda x, y: y.copy_(torch.randn(N)))


def test_what_lies_between_rows_is_not_the_kernels():
    weight, y = torch.randn(3, 8)[:, :5], torch.empty(3)

    def kernel(w: Tensor, y: Tensor) -> None:
        assert w.stride() == (8, 1)
        for row in range(3):
            put(y, row, sum(number_at(w, row * 8 + i) for i in range(6 if row == 1 else 5)))

    with pytest.raises(KernelError) as caught:
        in_red_zones("sum.planted", kernel, {"w": weight}, {"y": y})
    text = "read out of bounds in buffer `w` at index 13, its length is 21"
    assert str(caught.value) == f"kernel `sum.planted`: {text}"


@pytest.mark.parametrize("start", range(5))
def test_copies_lie_in_memory_as_the_originals_do(start: int):
    x, seen = torch.randn(40)[start : start + N], []

    def kernel(x: Tensor, nothing: None, y: Tensor) -> None:
        assert nothing is None
        seen.append(x.data_ptr() % 64)
        y.copy_(x)

    in_red_zones("k", kernel, {"x": x, "nothing": None}, {"y": torch.empty(N)})
    assert seen == [x.data_ptr() % 64] * 3


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8, torch.int64,
     torch.bool, torch.complex64],
)  # fmt: skip
def test_every_type_is_taken(dtype: torch.dtype):
    x, y = torch.arange(N).to(dtype), torch.empty(N, dtype=dtype)
    in_red_zones("k", lambda x, y: y.copy_(x), {"x": x}, {"y": y})
    assert torch.equal(x, y)
    shifted = lambda x, y: y.copy_(x.as_strided((N,), (1,), x.storage_offset() + 1))
    with pytest.raises(KernelError, match="read out of bounds in buffer `x` at index 20"):
        in_red_zones("k", shifted, {"x": x}, {"y": y})


def test_every_native_candidate_has_a_guarded_variant():
    native = [
        candidate
        for each in OPS.values()
        for candidate in each.op.candidates
        if candidate.group.name == "native"
    ]
    assert len(native) >= 3
    assert not [each for each in native if each.checked is None]


def planted(name: str, buffer: int, offset: int) -> Any:
    """The native core, but one of its kernels also writes a byte too far."""
    core = _native.core()

    def kernel(*arguments: Any) -> None:
        getattr(core, name)(*arguments)
        ctypes.memset(arguments[buffer] + offset, 77, 1)

    return lambda: SimpleNamespace(**{name: kernel})


def coded_layer() -> CodebookLinear:
    codes = torch.randint(-127, 128, (5, 8), dtype=torch.int8)
    return CodebookLinear(Coded("int8", 8, codes, torch.ones(5)))


@pytest.mark.parametrize(
    ("op", "kernel", "buffer", "offset", "call", "text"),
    [
        ("topk", "topk", 1, 8, lambda: topk(torch.randn(9), 2), "topk.core`: write out of "
         "bounds in buffer `values` at index 2, its length is 2"),
        ("topk", "topk", 2, -1, lambda: topk(torch.randn(9), 2), "topk.core`: write out of "
         "bounds in buffer `indices` at index -1, its length is 2"),
        ("gemv", "gemv", 5, 13, lambda: gemv(torch.randn(3, 4), torch.randn(4)), "gemv.core`: "
         "write out of bounds in buffer `y` at index 3, its length is 3"),
        ("codebook", "gemv", 0, 40, lambda: coded_layer()(torch.randn(8)), "codebook.core`: "
         "write out of bounds in buffer `codes` at index 40, its length is 40"),
    ],
)  # fmt: skip
def test_kernels_of_the_core_are_held_to_it(
    op: str, kernel: str, buffer: int, offset: int, call: Callable[[], Any], text: str,
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    calls_it = {"topk": "_topk._native", "gemv": "_gemv._native", "codebook": "_codebook._core"}
    module = importlib.import_module(f"hotgrid.kernels.{calls_it[op]}")
    monkeypatch.setattr(module, "core", planted(kernel, buffer, offset))
    settings = {"kernels.check_mode": "enforce", "kernels.choose": [f"{op}=core"]}
    with override(settings), pytest.raises(KernelError) as caught:
        call()
    assert str(caught.value) == f"kernel `{text}"
