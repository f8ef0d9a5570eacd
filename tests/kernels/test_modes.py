"""Inside modes: the same numbers, and trials that run outside of them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from hotgrid.config import override
from hotgrid.kernels import OPS, convolve, gemv, linear, topk
from hotgrid.kernels._convolve import _tables
from hotgrid.kernels.tune import Candidate

from .gemv_cases import normal

CONVOLVE = OPS["convolve"].op
tuned_convolve = OPS["convolve"]


class Listening(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
        return func(*args, **(kwargs or {}))


class Spoiling(TorchDispatchMode):
    """Makes every sum and product wrong by a third."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
        found = func(*args, **(kwargs or {}))
        return found * 1.3 if func.__name__.split(".")[0] in ("mul", "mm", "bmm") else found


class Meddling(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
        found = func(*args, **(kwargs or {}))
        return found * 1.3 if func in (torch.mul, Tensor.mul, Tensor.__mul__) else found


MODES = {"listening": Listening, "flops": lambda: FlopCounterMode(display=False)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CONVOLVE.names)
def test_convolve_is_the_same_inside(name: str, mode: str):
    x, kernel = normal(2, 20, 24), normal(7, 7)
    expected = convolve(x, kernel, exact=True)
    with override({"kernels.choose": [f"convolve={name}"]}), MODES[mode]():
        torch.testing.assert_close(convolve(x, kernel), expected, rtol=1e-4, atol=1e-4)


def test_the_first_compiled_call_is_as_right_as_later_ones():
    x, kernel = normal(1, 20, 24), normal(7, 7)
    torch.compiler.reset()
    with override({"kernels.choose": ["convolve=fft"]}):
        convolve(x, kernel)  # so that this kind of call has a winner
        swept = torch.compile(convolve, backend="aot_eager", fullgraph=True)
        for _ in range(2):
            torch.testing.assert_close(swept(x, kernel), convolve(x, kernel))
    torch.compiler.reset()


def test_the_gradient_of_many_weights_is_the_same_inside():
    x, kernel = normal(2, 12, 12).double(), normal(7, 7).double().requires_grad_()
    (expected,) = torch.autograd.grad((convolve(x, kernel) ** 2).sum(), kernel)
    with Listening():
        (found,) = torch.autograd.grad((convolve(x, kernel) ** 2).sum(), kernel)
    torch.testing.assert_close(found, expected)


def test_lazy_views_are_resolved_below_a_mode(
    monkeypatch: pytest.MonkeyPatch,
):
    def lazy(*arguments: Any) -> Tensor:
        sums = CONVOLVE.reference(*arguments)
        return -(torch.complex(torch.zeros_like(sums), sums).conj() * 1).imag

    x, kernel = normal(2, 4, 6), normal(3, 3)
    expected = convolve(x, kernel, exact=True)
    op = CONVOLVE.with_candidates(Candidate(name="lazy", function=lazy))
    monkeypatch.setattr(tuned_convolve, "op", op)
    with Listening():
        torch.testing.assert_close(convolve(x, kernel), expected)


def test_a_trial_below_a_mode_excludes_no_candidate(tmp_path: Path):
    with override({"autotune.cache": {"file": str(tmp_path)}, "autotune.level": "full"}):
        with Listening():
            convolve(normal(2, 20, 20), normal(9, 9))
        found = tuned_convolve.ranking_for(normal(2, 20, 20), normal(9, 9), (4, 4), True)
        assert [each.problem for each in found.outcomes if each.problem] == []
    assert "disagrees" not in (tmp_path / "winners-1.jsonl").read_text()


@pytest.mark.parametrize("mode", [Spoiling, Meddling, FakeTensorMode])
@pytest.mark.parametrize("name", ["convolve", "gemv"])
def test_no_mode_takes_part_in_a_trial(name: str, mode: Any):
    tuned = OPS[name]
    shape = {"convolve": (2, 20, 20), "gemv": (30, 40)}[name]
    arguments = tuned.op.sample(shape, torch.float32, torch.device("cpu"), **tuned.op.options)
    with override({"autotune.level": "full"}), mode():
        found = tuned.ranking_for(*arguments)
    assert [each.problem for each in found.outcomes if each.problem] == []


def test_kept_tables_have_nothing_of_a_mode():
    arguments = (3, 5), (20, 24), (1, 2), torch.float32, torch.device("cpu")
    _tables._tables.cache_clear()
    with FakeTensorMode():
        made = _tables._tables(*arguments)
    assert all(type(each) is Tensor for each in made)
    _tables._tables.cache_clear()
    for one, other in zip(made, _tables._tables(*arguments), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(("n", "size", "right"), [(4096, 65, True), (2**20, 65, False)])
def test_tables_are_not_made_for_long_lines(n: int, size: int, right: bool):
    """Those of a million cells and 65 weights would take half a gigabyte, kept for ever."""
    call = CONVOLVE.describe(torch.empty(1, n), torch.empty(size), (size // 2,), True)
    assert _tables.TABLES.applies(call) is right


def test_zeros_without_memory_are_numbers_like_others():
    zeros = torch._efficientzerotensor((16, 40))  # pyright: ignore[reportPrivateImportUsage]
    assert zeros.data_ptr() == 0
    weight, x = normal(6, 40), torch.zeros(16, 40)
    for _ in range(3):
        topk(x, 2)
        assert topk(zeros, 2)[0].tolist() == [[0.0, 0.0]] * 16
        assert not gemv(weight, zeros).any()
        assert not linear(zeros[:2], weight).any()
        assert not convolve(zeros, normal(3, 3)).any()
