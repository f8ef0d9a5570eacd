"""convolve: how right its numbers are, whatever their size, their type and autocast."""

from typing import Any

import pytest
import torch

from hotgrid.config import override
from hotgrid.kernels import OPS, convolve

from .gemv_cases import normal

CONVOLVE = OPS["convolve"].op

BOUNDARIES = ("periodic", "zero")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize(
    ("space", "size"), [((1,), (1000,)), ((1, 2), (31, 31)), ((3, 40), (64, 5))]
)
@pytest.mark.parametrize("exact", [False, True])
def test_a_folded_kernel_is_summed_in_at_least_f32(
    dtype: torch.dtype, space: tuple[int, ...], size: tuple[int, ...], exact: bool
):
    for cells, weights in (
        (torch.ones(space), torch.ones(size)),
        (normal(*space), normal(*size) + 2),
    ):
        x, kernel = cells.to(dtype), weights.to(dtype)
        with override({"kernels.check_mode": "validate"}):
            found = convolve(x, kernel, exact=exact)
        # The reference sees folded kernels, so this one is told apart: all in f64.
        right = CONVOLVE.reference(
            x.double()[None], kernel.double(), tuple([(k - 1) // 2 for k in size]), True
        )[0]
        limit = torch.finfo(dtype).eps * right.abs() + 1e-5 * kernel.double().norm()
        assert found.dtype == dtype
        assert bool(((found.double() - right).abs() <= limit).all())


@pytest.mark.parametrize("name", CONVOLVE.names)
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_finite_numbers_of_any_size_stay_finite(name: str, boundary: Any):
    kernel = torch.full((7, 7), 1 / 49)
    for size in (3e37, 1e-30):
        x = torch.full((96, 95), size)
        with override({"kernels.choose": [f"convolve={name}"]}):
            found = convolve(x, kernel, boundary)
        inner = found[3:-3, 3:-3]
        torch.testing.assert_close(inner, x[3:-3, 3:-3], rtol=1e-5, atol=0)


def test_the_derivative_of_large_numbers_is_finite():
    x, kernel = torch.full((64, 64), 1e35), torch.full((7, 7), 0.0, requires_grad=True)
    (gradient,) = torch.autograd.grad(convolve(x, kernel).mean(), kernel)
    torch.testing.assert_close(gradient, torch.full((7, 7), 1e35))


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("shape", [(96, 96), (2, 40, 33), (6, 7, 8)])
def test_exact_cells_depend_on_what_they_see_alone(boundary: Any, shape: tuple[int, ...]):
    x, kernel = normal(*shape), normal(5, 4)
    expected = convolve(x.double(), kernel.double(), boundary).float()
    calm = convolve(x, kernel, boundary, exact=True)
    torch.testing.assert_close(calm, expected, rtol=1e-5, atol=1e-5)
    x[..., 0, 0] = 1e7
    spoilt = convolve(x, kernel, boundary, exact=True)
    far = (..., slice(3, -3), slice(3, -3))
    assert torch.equal(spoilt[far], calm[far])


def test_an_error_is_relative_to_the_largest_cell():
    """The bound that the docstring names."""
    x, kernel = normal(96, 96), torch.full((21, 21), 1 / 441)
    x[5, 5] = 1e7
    expected = convolve(x.double(), kernel.double())
    with override({"kernels.choose": ["convolve=fft"]}):
        error = (convolve(x, kernel) - expected).abs().max() / (1e7 * kernel.norm())
    assert 1e-10 < error < 1e-6


def test_exact_has_derivatives_and_is_vectorised():
    x, kernel = normal(2, 7, 6).double().requires_grad_(), normal(3, 2).double()
    function = lambda x, kernel: convolve(x, kernel, "zero", exact=True)
    assert torch.autograd.gradcheck(function, (x, kernel.requires_grad_()))
    found = torch.vmap(function)(x.detach(), kernel.detach().expand(2, 3, 2))
    torch.testing.assert_close(found, function(x, kernel).detach())


@pytest.mark.parametrize("tuned_outside", [True, False])
@pytest.mark.parametrize("name", CONVOLVE.names)
def test_autocast_changes_nothing(name: str, tuned_outside: bool):
    x, kernel = normal(2, 48, 40), normal(7, 7)
    function = lambda x: convolve(x, kernel)
    with override({"kernels.choose": [f"convolve={name}"], "kernels.check_mode": "validate"}):
        expected = function(x)
        if not tuned_outside:
            OPS["convolve"].forget()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(function(x), expected)
            watched = x.clone().requires_grad_()
            found = function(watched)
            (gradient,) = torch.autograd.grad(found.sum(), watched)
            assert torch.equal(found, expected)
            assert gradient.dtype == torch.float32
            torch.testing.assert_close(torch.vmap(function)(x), expected, rtol=1e-4, atol=1e-4)
            assert convolve(x, kernel, exact=True).dtype == torch.float32
            torch.testing.assert_close(
                convolve(x, kernel, exact=True), expected, rtol=1e-4, atol=1e-4
            )


def test_tensors_without_data_get_results_without_data(capsys: pytest.CaptureFixture[str]):
    for shape, size in (((3, 8, 9), (3, 3)), ((4,), (9,)), ((2, 3), (31, 31))):
        for dtype in (torch.float32, torch.bfloat16):
            x, kernel = (torch.empty(n, dtype=dtype, device="meta") for n in (shape, size))
            for found in (convolve(x, kernel), convolve(x, kernel, exact=True)):
                assert (found.shape, found.dtype) == (shape, dtype)
                assert found.is_meta
    assert capsys.readouterr().err == ""


@pytest.mark.compiles
@pytest.mark.parametrize("exact", [False, True])
def test_one_graph_also_under_autocast_and_with_a_folded_kernel(exact: bool):
    torch.compiler.reset()
    run = lambda x, kernel: convolve(x, kernel, exact=exact)
    compiled = torch.compile(run, backend="eager", fullgraph=True)
    for dtype, size in ((torch.float32, (3, 3)), (torch.bfloat16, (9, 9))):
        x, kernel = normal(6, 8).to(dtype), normal(*size).to(dtype)
        with torch.autocast("cpu", dtype=torch.float16):
            found = compiled(x, kernel)
        torch.testing.assert_close(found, run(x, kernel))
    torch.compiler.reset()
