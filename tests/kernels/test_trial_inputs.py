"""A trial is made with well-behaved numbers, whatever the first caller brings."""

from typing import Any

import pytest
import torch
from torch import Tensor

from hotgrid.config import override
from hotgrid.kernels import OPS, convolve
from hotgrid.kernels.tune import Candidate, Tuned, explain
from hotgrid.kernels.tune._trials import _inputs
from hotgrid.kernels.tune._trials._inputs import in_turn, normal_inputs

TOPK = OPS["topk"].op

BASE = torch.full((6, 40), 3e37)
KINDS = [
    BASE,
    BASE[:, 1:17],
    BASE.mT,
    BASE[:1].expand(6, 40),
    BASE[::2, ::3],
    BASE.double(),
    BASE.to(torch.float8_e4m3fn),
    torch.full((3, 5), torch.inf, dtype=torch.bfloat16),
    torch.full((3, 5), torch.nan, dtype=torch.complex64),
    torch.full((3, 5), torch.nan, dtype=torch.complex64).conj(),
    torch.empty(0, 3),
    torch.tensor(5.0),
]


@pytest.mark.parametrize("x", KINDS, ids=lambda x: f"{x.dtype}{tuple(x.stride())}")
def test_only_the_numbers_of_trial_inputs_differ(x: Tensor):
    (found,) = normal_inputs([x])
    assert (found.shape, found.stride(), found.dtype) == (x.shape, x.stride(), x.dtype)
    assert (found.device, found.is_conj()) == (x.device, x.is_conj())
    assert found.data_ptr() % 64 == x.data_ptr() % 64
    numbers = found.to(torch.complex128)
    assert bool((numbers.abs() < 8).all())
    (again,) = normal_inputs([x])
    assert torch.equal(again.to(torch.complex128), numbers)


def test_what_is_no_float_stays_and_one_tensor_stays_one():
    x, codes = torch.full((4,), torch.inf), torch.tensor([1, 2])
    first, second, kept, (inner, number), word = normal_inputs([x, x, codes, (x, 3), "pq"])
    assert first is second is inner and first is not x
    assert kept is codes
    assert (number, word) == (3, "pq")
    y, z = normal_inputs([x, x.clone()])
    assert not torch.equal(y, z)


def test_the_generator_of_the_process_is_not_changed():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    normal_inputs([torch.ones(9)])
    assert torch.equal(torch.rand(2), expected)


def test_without_memory_for_a_second_set_the_arguments_are_used(monkeypatch: Any):
    def full(*arguments: Any, **more: Any) -> Any:
        raise torch.OutOfMemoryError("none left")

    monkeypatch.setattr(_inputs.torch, "randn", full)
    x = torch.ones(3)
    assert normal_inputs([x, 2])[0] is x


def test_candidates_see_only_finite_numbers_of_usual_size_in_a_trial():
    seen: list[Tensor] = []
    watch = lambda name: Candidate(
        name=name, function=lambda *a: (seen.append(a[0].clone()), TOPK.reference(*a))[1]
    )
    tuned = Tuned(TOPK.with_candidates(watch("a"), watch("b")))
    x = torch.tensor([3e38, torch.nan, torch.inf, 1.0])
    before = x.clone()
    tuned(x, 2, 0, True, True)
    *trial, last = seen
    assert len(trial) > 2 and all(bool((each.abs() < 8).all()) for each in trial)
    assert torch.equal(last.nan_to_num(), x.nan_to_num())
    assert torch.equal(x.nan_to_num(), before.nan_to_num())


@pytest.mark.parametrize("form", ["rows", "pq", "int4", "int8"])
def test_codes_with_other_numbers_are_still_computed_alike(form: str):
    found = explain(OPS["codebook"], (96, 128), {"form": form, "bits": "4"})
    assert len(found.outcomes) > 1
    assert [each.problem for each in found.outcomes] == [""] * len(found.outcomes)


@pytest.mark.parametrize("first", ["huge", "autocast"])
def test_the_first_caller_excludes_no_candidate(
    first: str, capsys: pytest.CaptureFixture[str], tmp_path: Any
):
    x = torch.full((64, 64), 3e37) if first == "huge" else torch.randn(64, 64)
    kernel = torch.full((7, 7), 1 / 49)
    with (
        override({"autotune.cache": {"file": str(tmp_path)}, "autotune.level": "full"}),
        torch.autocast("cpu", enabled=first == "autocast"),
    ):
        found = convolve(x, kernel)
        ranking = OPS["convolve"].ranking_for(x[None], kernel, (3, 3), True)
    assert capsys.readouterr().err == ""
    assert all(each.able for each in ranking.outcomes)
    expected = convolve(x.double(), kernel.double()).float()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_arguments_that_a_cache_would_hold_are_taken_in_turn():
    weight, x = torch.randn(32, 16).T, torch.randn(1, 4).expand(3, 4)
    codes = torch.arange(6, dtype=torch.int8)[1:]
    given = (weight, x, weight, codes, 7, None)
    size = 32 * 16 * 4 + 4 * 4 + 5
    assert in_turn(given, held=0) == [given]
    sets = in_turn(given, held=2 * size)
    assert len(sets) == 5
    assert sets[0] == given
    addresses = {turn[0].data_ptr() for turn in sets}
    assert len(addresses) == 5
    for turn in sets[1:]:
        assert turn[0] is turn[2]
        assert turn[4:] == (7, None)
        for made, old in zip(turn[:4], given[:4], strict=True):
            assert isinstance(made, torch.Tensor)
            assert isinstance(old, torch.Tensor)
            assert torch.equal(made, old)
            assert (made.stride(), made.dtype) == (old.stride(), old.dtype)
            assert made.data_ptr() % 64 == old.data_ptr() % 64
    # Beside so much of it they are small, and are found there in use as well.
    assert len(in_turn(given, held=15 * size)) == 31
    assert len(in_turn(given, held=16 * size)) == 1
    assert len(in_turn((3, torch.empty(0)), held=100)) == 1


def test_where_there_is_no_memory_for_copies_there_are_fewer(monkeypatch: pytest.MonkeyPatch):
    def none_left(*arguments: Any) -> Any:
        raise torch.OutOfMemoryError("no")

    x = torch.ones(100)
    monkeypatch.setattr(_inputs, "_copied", none_left)
    assert in_turn((x,), held=400) == [(x,)]
