"""Denormal numbers as zero: on every thread, only inside, and nested."""

import pytest
import torch

from hotgrid.kernels import denormals_as_zero

CPU = torch.device("cpu")


def count() -> int:
    """How many of a million products below 1e-38 are not zero; every thread has some."""
    return int((torch.full((1 << 20,), 1e-30) * 1e-10).count_nonzero())


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_all_threads_are_set_and_restored(threads):
    assert count() == 1 << 20
    for _ in range(3):
        with denormals_as_zero(CPU):
            assert count() == 0
        assert count() == 1 << 20


def test_torch_s_other_threads_may_be_left_alone(threads):
    # Threads start as the one that starts them is.
    assert count() == 1 << 20
    with denormals_as_zero(CPU, torch_threads=False):
        assert (torch.tensor([1e-30]) * 1e-10).item() == 0
        assert (count() == 0) == (threads == 1)
    assert count() == 1 << 20


def test_an_inner_block_does_not_end_the_outer_one(threads):
    with denormals_as_zero(CPU):
        with denormals_as_zero(CPU):
            assert count() == 0
        assert count() == 0
    assert count() == 1 << 20


def test_they_are_restored_after_an_error(threads):
    with pytest.raises(ZeroDivisionError), denormals_as_zero(CPU):
        raise ZeroDivisionError
    assert count() == 1 << 20


def test_what_a_user_set_is_left_alone():
    torch.set_flush_denormal(True)
    try:
        with denormals_as_zero(CPU):
            pass
        assert (torch.tensor([1e-30]) * 1e-10).item() == 0
    finally:
        torch.set_flush_denormal(False)


def test_other_devices_are_left_alone():
    with denormals_as_zero(torch.device("meta")):
        assert count() == 1 << 20


def test_numbers_that_are_not_denormal_are_the_same():
    x = torch.rand(1 << 16, generator=torch.Generator().manual_seed(0))
    with denormals_as_zero(CPU):
        inside = (x.sin() * x).exp()
    assert torch.equal(inside, (x.sin() * x).exp())
