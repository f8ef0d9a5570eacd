"""convolve: what it means, edges, gradients, transforms, errors, and how it is tuned."""

import math
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, strategies as st
from torch import Tensor

from hotgrid import tensors
from hotgrid.config import override
from hotgrid.errors import ArgumentError
from hotgrid.kernels import OPS, convolve
from hotgrid.kernels._convolve import _tables
from hotgrid.kernels._convolve._fourier import fast_length
from hotgrid.kernels.tune import explain

from .gemv_cases import normal

CONVOLVE = OPS["convolve"].op

BOUNDARIES = ("periodic", "zero")
NESTED = torch.nested.nested_tensor([normal(3, 4), normal(5, 4)], layout=torch.jagged)


def by_hand(x: Tensor, kernel: Tensor, boundary: str) -> Tensor:
    """The formula of the docstring, cell by cell."""
    found = torch.zeros_like(x)
    for cell in product(*map(range, x.shape)):
        for index in product(*map(range, kernel.shape)):
            each = zip(cell, index, kernel.shape, strict=True)
            seen = [i + j - (k - 1) // 2 for i, j, k in each]
            inside = all(0 <= i < n for i, n in zip(seen, x.shape, strict=True))
            if inside or boundary == "periodic":
                at = tuple(i % n for i, n in zip(seen, x.shape, strict=True))
                found[cell] += kernel[index] * x[at]
    return found


sizes = st.integers(1, 3).flatmap(
    lambda rank: st.tuples(*[st.tuples(st.integers(1, 5), st.integers(1, 7))] * rank)
)


@given(sizes, st.sampled_from(BOUNDARIES))
def test_it_is_the_formula(pairs: tuple[tuple[int, int], ...], boundary: Any):
    """Also where a kernel is larger than the grid, once or several times around."""
    space, size = zip(*pairs, strict=True)
    x, kernel = normal(*space).double(), normal(*size).double()
    with override({"kernels.choose": ["convolve=fft"]}):
        found = convolve(x, kernel, boundary)
    torch.testing.assert_close(found, by_hand(x, kernel, boundary))


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("size", [(3, 3), (2, 4), (1, 5), (5, 2)])
def test_it_means_what_tensors_convolve_means(boundary: Any, size: tuple[int, int]):
    x, kernel = normal(2, 7, 9), normal(*size)
    weigh = lambda windows: (windows * kernel).sum((-2, -1))
    beyond = "periodic" if boundary == "periodic" else 0.0
    expected = tensors.map_windows(weigh, x, size, boundary=beyond)
    torch.testing.assert_close(convolve(x, kernel, boundary), expected)


@pytest.mark.parametrize("name", CONVOLVE.names)
def test_the_kernel_is_not_turned_around(name: str):
    x, kernel = torch.zeros(5, 5), torch.arange(9.0).reshape(3, 3)
    x[2, 2] = 1.0
    with override({"kernels.choose": [f"convolve={name}"]}):
        # A lone cell is seen by its neighbours from the other side.
        found = convolve(x, kernel)[1:4, 1:4]
    torch.testing.assert_close(found, kernel.flip(0, 1), rtol=0, atol=1e-5)


@pytest.mark.parametrize("candidate", CONVOLVE.candidates, ids=CONVOLVE.names)
def test_results_are_fresh_and_lie_as_the_fake_says(candidate: Any):
    for grids in (normal(3, 8, 9), normal(9, 8, 3).mT, normal(8, 9, 3).movedim(-1, 0)):
        # A kernel of one weight needs no margin, and must not give back what it got.
        for kernel in (torch.ones(1, 1), normal(3, 3)):
            before = (len(kernel) // 2,) * 2
            found = candidate.function(grids, kernel, before, True)
            assert found.is_contiguous()
            assert found.untyped_storage().data_ptr() != grids.untyped_storage().data_ptr()


@pytest.mark.parametrize("name", CONVOLVE.names)
def test_every_call_can_be_validated(name: str):
    choice = {"kernels.choose": [f"convolve={name}"], "kernels.check_mode": "validate"}
    x, kernel = normal(2, 12, 10), normal(3, 5)
    with override(choice):
        found = convolve(x, kernel, "zero")
    torch.testing.assert_close(found, convolve(x, kernel, "zero"), rtol=1e-4, atol=1e-4)


def test_leading_dims_are_grids_of_their_own():
    x, kernel = normal(2, 3, 8, 9), normal(3, 3)
    each = [[convolve(grid, kernel) for grid in batch] for batch in x]
    torch.testing.assert_close(convolve(x, kernel), torch.stack([*map(torch.stack, each)]))
    lines = convolve(x, normal(5), "zero")
    expected = F.conv1d(x.reshape(-1, 1, 9), normal(5)[None, None], padding=2)
    torch.testing.assert_close(lines, expected.reshape(x.shape))


@pytest.mark.parametrize("shape", [(0, 4, 4), (3, 0, 4), (2, 4, 0)])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_no_cells_in_no_cells_out(shape: tuple[int, ...], boundary: Any):
    x = torch.empty(shape, dtype=torch.float64)
    found = convolve(x, normal(3, 3).double(), boundary)
    assert found.shape == x.shape and found.dtype == x.dtype


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_f32(dtype: torch.dtype):
    ones, kernel = torch.ones(64, 64, dtype=dtype), torch.ones(33, 33, dtype=dtype)
    assert torch.equal(convolve(ones, kernel), torch.full_like(ones, 33 * 33))


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(
    ("space", "size"),
    [
        ((6,), (3,)),
        ((5, 6), (3, 2)),
        ((7, 6), (7, 6)),
        ((3, 4, 3), (3, 2, 1)),
        ((3, 3), (5, 7)),
    ],
)
def test_gradients(boundary: Any, space: tuple[int, ...], size: tuple[int, ...]):
    x = normal(2, *space).double().requires_grad_()
    kernel = normal(*size).double().requires_grad_()
    function = lambda x, kernel: convolve(x, kernel, boundary)
    assert torch.autograd.gradcheck(function, (x, kernel))
    assert torch.autograd.gradgradcheck(function, (x, kernel))


def test_a_large_kernel_for_each_channel_is_done_at_once():
    """Every step has a rule for batches: torch would warn otherwise, and that is an error."""
    x, kernels = normal(3, 20, 20).double(), normal(3, 17, 17).double()
    each = torch.stack([*map(convolve, x, kernels)])
    torch.testing.assert_close(torch.vmap(convolve)(x, kernels), each)
    squares = lambda x, kernel: (convolve(x, kernel) ** 2).sum()
    wanted = x.clone().requires_grad_(), kernels.clone().requires_grad_()
    sum(map(squares, *wanted)).backward()  # pyright: ignore[reportAttributeAccessIssue]
    found = torch.vmap(torch.func.grad(squares, (0, 1)))(x, kernels)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other.grad)


def test_a_gradient_goes_through_the_operator_and_only_where_it_is_wanted():
    x, kernel = normal(2, 6, 6).requires_grad_(), normal(3, 3)
    found = convolve(x, kernel)
    assert found.grad_fn is not None and "hotgrid_convolve" in found.grad_fn.name()
    with torch.no_grad():
        assert convolve(x, kernel).grad_fn is None
    (gradient,) = torch.autograd.grad(found.sum(), x)
    torch.testing.assert_close(gradient, kernel.sum().expand_as(x))


def test_the_operator_keeps_torchs_rules():
    x, kernel = normal(2, 6, 5).requires_grad_(), normal(3, 3).requires_grad_()
    done = torch.library.opcheck(
        torch.ops.hotgrid.convolve.default,
        (x, kernel, [1, 1], False),
        test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
    )
    assert set(done.values()) == {"SUCCESS"}


def test_a_kernel_for_each_channel_is_a_vmap():
    x, kernels = normal(4, 3, 8, 9), normal(3, 5, 5)
    found = torch.vmap(convolve, in_dims=(1, 0), out_dims=1)(x, kernels)
    for i, kernel in enumerate(kernels):
        torch.testing.assert_close(found[:, i], convolve(x[:, i], kernel))
    large = normal(3, 17, 17)
    found = torch.vmap(convolve, in_dims=(None, 0))(x[0, 0], large)
    for one, kernel in zip(found, large, strict=True):
        torch.testing.assert_close(one, convolve(x[0, 0], kernel), rtol=1e-4, atol=1e-4)


def test_vmap_of_the_operator():
    x, kernels = normal(4, 2, 6, 7), normal(4, 3, 3)
    run = lambda x, k: torch.ops.hotgrid.convolve.default(x, k, [1, 1], True)
    for dims in ((0, 0), (0, None), (None, 0)):
        a, b = (t if d == 0 else t[0] for t, d in zip((x, kernels), dims, strict=True))
        found = torch.vmap(run, in_dims=dims)(a, b)
        for i in range(4):
            one = run(a[i] if dims[0] == 0 else a, b[i] if dims[1] == 0 else b)
            torch.testing.assert_close(found[i], one)


@pytest.mark.parametrize("size", [(3, 3), (17, 19)])
def test_torch_func_has_its_derivatives(size: tuple[int, int]):
    x, kernel = normal(20, 24).double(), normal(*size).double()
    squares = lambda k: convolve(x, k).square().sum()
    watched = kernel.clone().requires_grad_()
    (expected,) = torch.autograd.grad(squares(watched), watched)
    torch.testing.assert_close(torch.func.grad(squares)(kernel), expected)


@pytest.mark.compiles
def test_one_graph_with_the_same_results():
    torch.compiler.reset()

    def grown(x: Tensor, kernel: Tensor) -> Tensor:
        return (x + 0.1 * convolve(x, kernel).tanh()).clamp(0, 1)

    compiled = torch.compile(grown, backend="aot_eager", fullgraph=True)
    for size in ((3, 3), (9, 9)):
        x, kernel = normal(12, 14).abs(), normal(*size).requires_grad_()
        torch.testing.assert_close(compiled(x, kernel), grown(x, kernel))
        (found,) = torch.autograd.grad(compiled(x, kernel).sum(), kernel)
        (expected,) = torch.autograd.grad(grown(x, kernel).sum(), kernel)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    torch.compiler.reset()


def test_a_fake_tensor_has_the_shape_and_nothing_is_tuned():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        assert convolve(torch.empty(3, 8, 9), torch.empty(3, 3)).shape == (3, 8, 9)


def test_fast_lengths_have_small_factors():
    assert [fast_length(n) for n in (1, 7, 11, 13, 121, 1021, 1024)] == [
        *(1, 7, 12, 14, 125, 1024, 1024)
    ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([1.0], normal(3)), "`x` must be a tensor, got list: use `torch.as_tensor"),
        ((normal(4), [1.0]), "`kernel` must be a tensor, got list"),
        ((normal(4), torch.sum), "a function of windows is for `hotgrid.tensors.map_windows`"),
        ((normal(4).int(), normal(3)), "`x` is torch.int32; expected float32"),
        ((normal(4, 4).to_sparse(), normal(3, 3)), "`x` has the layout torch.sparse_coo"),
        ((normal(4, 4), normal(3, 3).to_sparse()), "`kernel` has the layout torch.sparse_coo"),
        ((normal(4, 4).to_mkldnn(), normal(3, 3)), "`x` has the layout torch._mkldnn"),
        ((NESTED, normal(3, 3)), "`x` is a nested tensor"),
        (
            (normal(4), normal(3).double()),
            r"`kernel` is torch.float64 and `x` is torch.float32",
        ),
        ((normal(4), normal(3).to("meta")), "`kernel` is on meta and `x` on cpu"),
        ((normal(4), torch.tensor(1.0)), r"`kernel` must have 1, 2 or 3 dims .* shape \(\)"),
        ((normal(4), torch.empty(0)), r"at least one weight, got shape \(0,\)"),
        ((normal(3, 3, 3, 3), normal(1, 1, 1, 1)), r"got shape \(1, 1, 1, 1\)"),
        ((normal(4), normal(3, 3)), r"`x` of shape \(4,\) must have the 2 dims of `kernel`"),
        ((normal(4), normal(3), "zeros"), "`boundary` is 'zeros'.* did you mean `zero`?"),
        ((normal(4), normal(3), 0), "`boundary` is 0; expected 'periodic' or 'zero'"),
    ],
)
def test_wrong_arguments_are_named(arguments: tuple[Any, ...], text: str):
    with pytest.raises(ArgumentError, match=text):
        convolve(*arguments)


def test_an_excerpt_is_a_grid_that_the_kernel_fits_in():
    x, kernel = torch.zeros(1).expand(4, 4096, 4096), torch.zeros(65, 65)
    part, same, *_ = CONVOLVE.excerpt(x, kernel, (32, 32), True)
    assert same is kernel
    assert part.numel() * kernel.numel() <= 2**28
    assert all(n >= 65 for n in part.shape[1:])
    small = normal(2, 16, 16)
    assert CONVOLVE.excerpt(small, kernel[:3, :3], (1, 1), True)[0] is small


def test_a_comparison_says_what_differs():
    x, kernel = normal(2, 8, 9), normal(3, 3)
    call = (x, kernel, (1, 1), True)
    right = CONVOLVE.reference(*call)
    ask = lambda got, x=x, kernel=kernel: CONVOLVE.compare(right, got, x, kernel, *call[2:])
    assert ask(right) is None
    wrong = right.clone()
    wrong[1, 7, 8] += 1e-3
    assert "1 of 144 cells are wrong" in (ask(wrong) or "")
    wrong[1, 7, 8] = math.nan
    assert "1 of 144 cells are wrong" in (ask(wrong) or "")
    assert "should be torch.float32" in (ask(right.double()) or "")
    spoilt = x.clone()
    spoilt[0, 4, 4] = math.inf
    expected = CONVOLVE.reference(spoilt, *call[1:])
    again = lambda got: CONVOLVE.compare(expected, got, spoilt, *call[1:])
    assert again(expected) is None
    assert "are lost" in (again(right) or "")
    spread = expected.clone()
    spread[0] = math.nan
    assert again(spread) is None  # the same grid may be lost
    spread[1, 0, 0] = math.nan
    assert "1 of 72 cells" in (again(spread) or "")  # another one may not


def test_it_is_explained():
    found = explain(OPS["convolve"], (2, 32, 32), {"radius": "3", "boundary": "zero"})
    assert (
        found.call == "convolve float32 cpu plain count=2 n0=32 n1=32 kernel=7x7 boundary=zero"
    )
    assert {each.name for each in found.outcomes} == set(CONVOLVE.names)
    assert all(each.able for each in found.outcomes)
    assert found.bytes == 2 * 2 * 32 * 32 * 4
    line = explain(OPS["convolve"], (100,), {"dims": "1", "radius": "20"})
    assert set(line.absent) == {"bands"}
    for options, text in (
        ({"dims": "4"}, "`dims` is 4; expected 1, 2 or 3"),
        ({"radius": "16"}, r"`radius` is 16; a kernel of 33 must fit into \(32, 32\)"),
        ({"boundary": "edge"}, "`boundary` is 'edge'"),
    ):
        with pytest.raises(ArgumentError, match=text):
            explain(OPS["convolve"], (32, 32), options)


def test_tables_are_left_alone_while_a_graph_is_recorded(monkeypatch: pytest.MonkeyPatch):
    """A graph may outlive them; there the kernel is transformed."""
    x, kernel = normal(2, 16, 24), normal(3, 5)
    candidate = next(each for each in CONVOLVE.candidates if each.name == "tables")
    arguments = (x, kernel, (1, 2), True)
    expected = candidate.function(*arguments)
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    monkeypatch.setattr(_tables, "is_current_stream_capturing", lambda: True)
    monkeypatch.delattr(_tables, "_tables")
    torch.testing.assert_close(candidate.function(*arguments), expected)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("boundary", ["periodic", "zero"])
@pytest.mark.parametrize(
    ("shape", "size"), [((0,), (3,)), ((4, 0), (3, 3)), ((0, 4), (3, 3)), ((0, 5), (3,))]
)
def test_no_cells_give_no_cells(
    shape: tuple[int, ...], size: tuple[int, ...], boundary: str, exact: bool
):
    x = torch.zeros(shape, requires_grad=True)
    found = convolve(x, torch.ones(size), boundary, exact=exact)
    assert found.shape == shape and found.dtype == x.dtype
    found.sum().backward()
    assert x.grad is not None and x.grad.shape == shape
