"""`kernels.check_mode`: bad accesses, bad numbers and wrong results are caught and named."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from hotgrid.config import override
from hotgrid.errors import KernelError
from hotgrid.kernels import OPS, gemv, topk
from hotgrid.kernels.tune import Candidate, Faults, Tuned

TOPK = OPS["topk"].op

X = torch.tensor([3.0, 1.0, 2.0])
ARGUMENTS = (X, 2, 0, True, True)


def native_like(x: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> Any:
    """A kernel with a planted fault: it reads one element past the end."""
    faults = Faults("topk.planted", {"x": x.numel(), "values": k}, x.device)
    memory, length = x.flatten().tolist(), x.numel()
    for i in range(length + 1):
        if i < length:
            memory[i] += 0
        else:  # what a compiled guard does: leave it out and note it
            faults.record[0, 0, 0] += 1
            faults.record[0, 0, 1] = min(int(faults.record[0, 0, 1]), i)
    faults.expect_none()
    return TOPK.reference(x, k, dim, largest, sorted)


def only(function: Any, checked: Any = None) -> Tuned:
    return Tuned(
        TOPK.with_candidates(Candidate(name="planted", function=function, checked=checked))
    )


def wrong_index(x: Tensor, *more: Any) -> Any:
    values, indices = TOPK.reference(x, *more)
    return values, indices.flip(0)


def not_a_number(x: Tensor, *more: Any) -> Any:
    values, indices = TOPK.reference(x, *more)
    return values / 0, indices


def test_auto_trusts_the_kernel():
    assert only(wrong_index)(*ARGUMENTS)[1].tolist() == [2, 0]
    assert only(TOPK.reference, native_like)(*ARGUMENTS)[1].tolist() == [0, 2]


@pytest.mark.parametrize("mode", ["enforce", "validate"])
def test_an_access_out_of_bounds_is_caught_with_kernel_buffer_and_index(mode: str):
    text = "kernel `topk.planted`: read out of bounds in buffer `x` at index 3, its length is 3"
    with override({"kernels.check_mode": mode}), pytest.raises(KernelError) as caught:
        only(TOPK.reference, native_like)(*ARGUMENTS)
    assert str(caught.value) == text


def test_enforce_takes_what_has_no_guarded_variant_as_it_is():
    with override({"kernels.check_mode": "enforce"}):
        assert only(wrong_index)(*ARGUMENTS)[1].tolist() == [2, 0]


def test_validate_compares_with_the_reference():
    with override({"kernels.check_mode": "validate"}):
        with pytest.raises(KernelError, match=r"`topk.planted` disagrees .* indices at \(0,\)"):
            only(wrong_index)(*ARGUMENTS)
        assert topk(X, 2)[1].tolist() == [0, 2]


def test_validate_finds_nan_and_inf_that_came_from_nowhere():
    with override({"kernels.check_mode": "validate"}):
        with pytest.raises(KernelError, match=r"Inf out of finite numbers .*another candidate"):
            only(not_a_number)(*ARGUMENTS)
        with pytest.raises(KernelError, match="so does the reference: they are too large"):
            gemv(torch.full((2, 8), 3e38), torch.ones(8))
        kept = topk(torch.tensor([1.0, float("nan"), float("inf")]), 2)[1]
    assert kept.tolist() == [1, 2]


def test_validate_compares_an_excerpt_of_what_is_too_large(monkeypatch: pytest.MonkeyPatch):
    from hotgrid.kernels._topk import _op

    monkeypatch.setattr(_op, "_MOST_COMPARED", 8)
    sizes: list[int] = []

    def seen(x: Tensor, *more: Any) -> Any:
        sizes.append(x.numel())
        return TOPK.reference(x, *more)

    with override({"kernels.check_mode": "validate"}):
        found = only(seen)(torch.randn(10, 4), 2, 1, True, True)
    assert found[0].shape == (10, 2)
    assert sizes == [40, 8]


@pytest.mark.long
def test_a_development_mode_of_python_validates():
    program = (
        "import torch\n"
        "from tests.kernels.test_validation import ARGUMENTS, only, wrong_index\n"
        "only(wrong_index)(*ARGUMENTS)\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore", "-c", program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "disagrees with its reference" in done.stderr


def test_a_record_shows_the_first_buffer_and_how_many_more():
    faults = Faults("k", {"x": 4, "y": 5}, "cpu")
    faults.expect_none()
    faults.record[1, 1] = torch.tensor([3, -7])
    with pytest.raises(KernelError) as caught:
        faults.expect_none()
    text = (
        "kernel `k`: write out of bounds in buffer `y` at index -7, its length is 5, and 2 more"
    )
    assert str(caught.value) == text


@pytest.mark.long
def test_a_triton_kernel_that_leaves_its_buffers_is_caught():
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("triton_faults.py"))],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    start = "kernel `shift.triton`: "
    assert done.stdout.splitlines() == [
        f"{start}read out of bounds in buffer `x` at index 20, its length is 20, and 2 more",
        f"{start}read out of bounds in buffer `x` at index -2, its length is 20, and 1 more",
        f"{start}write out of bounds in buffer `y` at index 20, its length is 20",
    ]
