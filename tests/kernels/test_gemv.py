"""gemv and linear: what callers see. Candidates are held to the reference by conformance."""

import pytest
import torch
import torch.nn.functional as F

from hotgrid.errors import ArgumentError
from hotgrid.kernels import OPS, gemv, linear

from .gemv_cases import laid_out, normal


@pytest.mark.parametrize("shape", [(40,), (1, 40), (5, 40), (12, 40), (2, 3, 40)])
def test_gemv_is_the_matrix_times_each_vector(shape: tuple[int, ...]):
    x = normal(*shape)
    for weight in laid_out(normal(18, 40)):
        torch.testing.assert_close(gemv(weight, x), x @ weight.T)


@pytest.mark.parametrize("shape", [(40,), (1, 40), (8, 40), (9, 40), (2, 1, 3, 40)])
@pytest.mark.parametrize("bias", [None, normal(18)])
def test_linear_is_that_of_torch(shape: tuple[int, ...], bias: torch.Tensor | None):
    x, weight = normal(*shape), normal(18, 40)
    torch.testing.assert_close(linear(x, weight, bias), F.linear(x, weight, bias))


def test_linear_takes_a_weight_of_another_type():
    x, weight = normal(2, 40), normal(18, 40)
    rounded = weight.bfloat16()
    for many in (x, x.repeat(10, 1)):
        torch.testing.assert_close(linear(many, rounded), F.linear(many, rounded.float()))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(40,), (3, 40), (2, 2, 40)])
def test_a_bias_is_added_before_rounding(shape: tuple[int, ...], dtype: torch.dtype):
    x, weight, bias = (normal(*each).to(dtype) for each in (shape, (400, 40), (400,)))
    wide = F.linear(x.double(), weight.double(), bias.double())
    least = (wide.to(dtype).double() - wide).norm()  # that of rounding once
    for given in (bias, bias.float()):
        for _ in range(3):
            found = linear(x, weight, given)
            assert found.dtype == dtype
            assert (found.double() - wide).norm() < 1.05 * least


@pytest.mark.parametrize("bias", [None, normal(400)])
def test_a_weight_of_more_bits_than_x_keeps_them(bias: torch.Tensor | None):
    weight = normal(400, 40)
    for count in (1, 8, 9, 40):
        x = normal(count, 40).bfloat16()
        wide = F.linear(x.double(), weight.double(), None if bias is None else bias.double())
        least = (wide.bfloat16().double() - wide).norm()
        for _ in range(2):
            found = linear(x, weight, bias)
            assert found.dtype == torch.bfloat16
            assert (found.double() - wide).norm() < 1.05 * least


def test_gradients_of_a_layer_in_16_bits():
    x, weight, bias = (normal(*s).bfloat16().requires_grad_() for s in ((2, 9), (6, 9), (6,)))
    linear(x, weight, bias).sum().backward()
    torch.testing.assert_close(weight.grad, x.detach().sum(0).expand(6, 9))
    torch.testing.assert_close(bias.grad, torch.full((6,), 2.0).bfloat16())


@pytest.mark.parametrize("choose", [(), ("gemv=converted",)])
def test_int8_rows_have_a_scale_each(choose: tuple[str, ...]):
    from hotgrid.config import override

    weight = normal(300, 500)
    scale = weight.abs().amax(1) / 127
    rounded = (weight / scale[:, None]).round().to(torch.int8)
    x = normal(2, 500)
    exact = x @ weight.T
    with override({"kernels.choose": choose}):
        found = gemv(rounded, x, scale)
    assert (found - exact).norm() / exact.norm() < 0.01


@pytest.mark.parametrize(("rows", "cols", "count"), [(0, 4, 2), (4, 0, 2), (4, 4, 0)])
def test_nothing_times_something_is_zero(rows: int, cols: int, count: int):
    found = gemv(torch.ones(rows, cols), torch.ones(count, cols))
    assert torch.equal(found, torch.zeros(count, rows))
    assert linear(torch.ones(count, cols), torch.ones(rows, cols)).shape == (count, rows)


def test_gradients_are_those_of_torch():
    weight, x = normal(6, 9).double(), normal(3, 9).double()
    scale = normal(6).double().abs()
    for tensor in (weight, x):
        tensor.requires_grad_()
    assert torch.autograd.gradcheck(gemv, (weight, x))
    whole = (normal(6, 9) * 30).to(torch.int8)
    scale.requires_grad_()
    choose = lambda v, s: gemv(whole, v, s)
    assert torch.autograd.gradcheck(choose, (x, scale))


def test_it_compiles_without_a_graph_break():
    weight, bias = normal(18, 40), normal(18)
    whole = torch.compile(
        lambda x: linear(x, weight, bias).relu(), fullgraph=True, backend="eager"
    )
    x = normal(1, 40)
    torch.testing.assert_close(whole(x), F.linear(x, weight, bias).relu())


def test_it_maps_over_vectors_and_over_matrices():
    weight, x = normal(4, 18, 40), normal(4, 3, 40)
    over_x = torch.vmap(lambda v: gemv(weight[0], v))(x)
    torch.testing.assert_close(over_x, x @ weight[0].T)
    both = torch.vmap(gemv)(weight, x)
    torch.testing.assert_close(both, x @ weight.mT)
    over_weight = torch.vmap(gemv, in_dims=(0, None))(weight, x[0])
    torch.testing.assert_close(over_weight, x[0] @ weight.mT)
    registered = torch.ops.hotgrid.gemv.default
    for dims in ((0, 0), (0, None), (None, 0)):
        a, b = (t if d == 0 else t[0] for t, d in zip((weight, x), dims, strict=True))
        found = torch.vmap(lambda w, v: registered(w, v, None), in_dims=dims)(a, b)
        torch.testing.assert_close(found, b @ a.mT)


def test_torch_func_has_its_derivatives():
    weight, x = normal(18, 40), normal(3, 40)
    found = torch.func.grad(lambda v: gemv(weight, v).square().sum())(x)
    torch.testing.assert_close(found, 2 * x @ weight.T @ weight, rtol=1e-4, atol=1e-3)


def test_the_operator_keeps_torchs_rules():
    weight, x = normal(6, 9).requires_grad_(), normal(3, 9).requires_grad_()
    torch.library.opcheck(
        torch.ops.hotgrid.gemv.default,
        (weight, x, None),
        test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
    )


def test_a_large_product_is_compared_on_an_excerpt():
    op = OPS["gemv"].op
    weight, x, scale = op.sample(
        (4096, 2048), torch.int8, torch.device("cpu"), count=1, columns=True
    )
    part, same, factors = op.excerpt(weight, x, scale)
    assert part.numel() <= 2**22 and same is x and factors.shape == part.shape[:1]
    assert op.describe(weight, x, scale).layout == "columns"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([[1.0]], torch.ones(1)), "`weight` must be a tensor, got list"),
        ((torch.ones(2, 2), 3), "`x` must be a tensor, got int"),
        ((torch.ones(4), torch.ones(4)), r"`weight` must be a matrix .* got shape \(4,\)"),
        ((torch.ones(3, 4), torch.ones(3)), r"`x` of shape \(3,\) must end with 4"),
        ((torch.ones(3, 4), torch.ones(4).int()), "`x` is torch.int32; expected float32"),
        ((torch.ones(3, 4).int(), torch.ones(4)), "`weight` is torch.int32; expected"),
        ((torch.ones(3, 4), torch.ones(4), torch.ones(3)), "`scale` belongs to int8 weights"),
        (
            (torch.ones(3, 4).char(), torch.ones(4)),
            r"`scale` of int8 .* shape \(3,\).* got None",
        ),
        (
            (torch.ones(3, 4).char(), torch.ones(4), torch.ones(4)),
            r"`scale` of int8 weights must be .*\(4,\)",
        ),
        (
            (torch.ones(3, 4), torch.ones(4, device="meta")),
            "`x` is on meta and `weight` on cpu",
        ),
    ],
)
def test_wrong_arguments_are_named(arguments: tuple, text: str):
    with pytest.raises(ArgumentError, match=text):
        gemv(*arguments)


def test_a_wrong_bias_is_named():
    with pytest.raises(ArgumentError, match=r"`bias` must be None or .*\(3,\), got \(4,\)"):
        linear(torch.ones(1, 4), torch.ones(3, 4), torch.ones(4))


@pytest.mark.parametrize(
    ("shape", "options", "text"),
    [((4,), {"count": 1}, "two sizes"), ((4, 4), {"count": 0}, "`count` is 0")],
)
def test_a_sample_of_nothing_is_refused(shape: tuple, options: dict, text: str):
    with pytest.raises(ArgumentError, match=text):
        OPS["gemv"].op.sample(
            shape, torch.float32, torch.device("cpu"), columns=False, **options
        )
