"""Tensors and modes that a call straight into a kernel would misread."""

import pytest
import torch
from torch.autograd import forward_ad

from hotgrid.config import override
from hotgrid.errors import ArgumentError
from hotgrid.kernels import CodebookLinear, capture, compress, gemv, linear, topk

WEIGHT, X = torch.randn(6, 5), torch.randn(5)
CODES, SCALE = torch.randint(-127, 128, (6, 5), dtype=torch.int8), torch.rand(6) + 0.5


def turned(x: torch.Tensor) -> torch.Tensor:
    """The same numbers, with a sign that is still to be turned."""
    view = torch._neg_view(-x)  # pyright: ignore[reportPrivateImportUsage]
    assert view.is_neg()
    return view


def test_lazy_conjugates_and_negations():
    x = torch.randn(4, 50)
    values, indices = topk(turned(x), 3)
    assert torch.equal(values, topk(x, 3)[0])
    assert torch.equal(indices, topk(x, 3)[1])
    for dtype in (torch.float32, torch.bfloat16):
        w, v = WEIGHT.to(dtype), X.to(dtype)
        expected = gemv(w, v)
        assert torch.equal(gemv(turned(w), v), expected)
        assert torch.equal(gemv(w, turned(v)), expected)
        assert torch.equal(linear(turned(v), w), linear(v, w))
    expected = gemv(CODES, X, SCALE)
    assert torch.equal(gemv(CODES, turned(X), turned(SCALE)), expected)


@pytest.mark.parametrize("form", ["rows", "pq", "int4", "int8"])
def test_a_layer_of_codes_and_lazy_conjugates_and_negations(form):
    layer = compress(torch.nn.Linear(64, 32), form=form, force=True)
    x = torch.randn(2, 64)
    # One candidate for both ways: others round differently.
    with override({"kernels.choose": ["codebook=core"]}):
        assert torch.equal(layer(turned(x)), layer(x))


def test_a_captured_function_and_lazy_conjugates_and_negations():
    moved = capture(lambda x: x + 1)
    x, z = torch.randn(5), torch.randn(5, dtype=torch.cfloat)
    for _ in range(2):
        torch.testing.assert_close(moved(turned(x)), x + 1)
        torch.testing.assert_close(moved(x), x + 1)
        torch.testing.assert_close(moved(z.conj()), z.conj() + 1)


def test_tensors_without_data_give_shapes():
    values, indices = topk(torch.empty(3, 4, device="meta"), 2)
    assert values.shape == indices.shape == (3, 2)
    assert values.is_meta
    assert gemv(WEIGHT.to("meta"), X.to("meta")).shape == (6,)
    assert linear(torch.empty(2, 5, device="meta"), WEIGHT.to("meta")).shape == (2, 6)


def test_forward_mode_keeps_the_tangent():
    x, tangent = torch.randn(7), torch.randn(7)
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(topk(forward_ad.make_dual(x, tangent), 3)[0]).tangent
        dual = forward_ad.make_dual(X, torch.ones(5))
        products = [gemv(WEIGHT, dual), linear(dual, WEIGHT)]
        slopes = [forward_ad.unpack_dual(y).tangent for y in products]
    assert torch.equal(found, tangent[topk(x, 3)[1]])
    for slope in slopes:
        torch.testing.assert_close(slope, WEIGHT.sum(1))


# Sizes are constants of a recorded call, says torch.
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_a_recorded_call_computes_what_it_is_given():
    recorded = torch.jit.trace(lambda a: topk(a, 2), torch.randn(5), check_trace=False)
    x = torch.randn(5)
    assert torch.equal(recorded(x)[0], topk(x, 2)[0])
    recorded = torch.jit.trace(lambda a: gemv(WEIGHT, a), X, check_trace=False)
    x = torch.randn(5)
    assert torch.equal(recorded(x), gemv(WEIGHT, x))


# Of torch, once, on processors without bf16.
@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")
@pytest.mark.parametrize("first", ["inside", "outside"])
def test_autocast_decides_the_type_and_not_what_was_tuned_before(first):
    layer = compress(torch.nn.Linear(64, 32), form="int8")
    calls = {
        "gemv": lambda: gemv(WEIGHT, X),
        "few": lambda: linear(X.expand(2, 5), WEIGHT),
        "many": lambda: linear(X.expand(20, 5), WEIGHT),
        "codes, few": lambda: layer(torch.ones(1, 64)),
        "codes, many": lambda: layer(torch.ones(20, 64)),
        "int8": lambda: gemv(CODES, X, SCALE),
    }
    for within in (True, False) if first == "inside" else (False, True):
        with torch.autocast("cpu", enabled=within):
            found = {name: call().dtype for name, call in calls.items()}
        wanted = torch.bfloat16 if within else torch.float32
        assert found == dict.fromkeys(calls, wanted)


def test_autocast_leaves_double_alone():
    with torch.autocast("cpu"):
        assert gemv(WEIGHT.double(), X.double()).dtype == torch.float64


def test_operators_by_name_check_for_themselves():
    x = torch.randn(4, 5)
    values, indices = torch.ops.hotgrid.topk(x, 2, -1, True, True)
    assert torch.equal(values, topk(x, 2)[0])
    assert torch.equal(indices, topk(x, 2)[1])
    with pytest.raises(ArgumentError, match="`k` is 6"):
        torch.ops.hotgrid.topk(x, 6, -1, True, True)
    with pytest.raises(ArgumentError, match="`scale` of int8 weights"):
        torch.ops.hotgrid.gemv(CODES, X[None], torch.ones(1))
    with pytest.raises(ArgumentError, match=r"`x` must be `\[count, cols\]`"):
        torch.ops.hotgrid.gemv(WEIGHT, X, None)


def test_a_compiled_call_of_open_size_says_what_is_wrong():
    taken = torch.compile(
        lambda x, k: topk(x, k)[0], fullgraph=True, dynamic=True, backend="eager"
    )
    assert taken(torch.arange(5.0), 2).tolist() == [4, 3]
    with pytest.raises(ArgumentError, match="`k` is 9; expected 0 to 7"):
        taken(torch.randn(7), 9)


def test_sums_of_nothing():
    assert gemv(torch.empty(4, 0), torch.empty(0)).tolist() == [0, 0, 0, 0]
    assert gemv(torch.empty(4, 0), torch.empty(2, 3, 0)).shape == (2, 3, 4)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: topk(torch.eye(3).to_sparse(), 1), "`x` has the layout torch.sparse_coo"),
        (lambda: gemv(torch.eye(5).to_sparse(), X), "`weight` has the layout"),
        (
            lambda: topk(torch.nested.nested_tensor([X, X[:2]], layout=torch.jagged), 1),
            "`x` is a nested tensor",
        ),
        (lambda: linear(X, CODES), r"`weight` is int8.*use `gemv\(weight, x, scale\)`"),
    ],
)
def test_packed_tensors_and_types_are_named(call, text):
    with pytest.raises(ArgumentError, match=text):
        call()


def test_results_go_where_they_are_wanted():
    x = torch.randn(3, 8)
    out = torch.empty(3, 2), torch.empty(3, 2, dtype=torch.int64)
    assert topk(x, 2, out=out) is out
    assert torch.equal(out[0], topk(x, 2)[0])
    assert torch.equal(out[1], topk(x, 2)[1])
    y = torch.empty(6)
    assert gemv(WEIGHT, X, out=y) is y
    assert torch.equal(y, gemv(WEIGHT, X))


BOTH = torch.zeros(3, 8)
INDICES = torch.zeros(3, 2, dtype=torch.int64)


@pytest.mark.parametrize(
    ("out", "text"),
    [
        ((BOTH[:, :2], INDICES), r"`out\[0\]` shares memory with `x`"),
        ((torch.zeros(3, 3), INDICES), r"`out\[0\]` has the shape \(3, 3\), and the result"),
        ((torch.zeros(3, 2), torch.zeros(3, 2)), r"`out\[1\]` has the type torch.float32"),
        ((torch.zeros(3, 1).expand(3, 2), INDICES), r"`out\[0\]` of shape .* was expanded"),
        (torch.zeros(3, 2), "`out` must be a tuple of 2 tensors, got Tensor"),
        ((torch.zeros(3, 2), 1), r"`out\[1\]` must be a tensor, got int"),
    ],
)
def test_places_that_do_not_fit(out, text):
    with pytest.raises(ArgumentError, match=text):
        topk(BOTH, 2, out=out)
    assert not BOTH.any()


def test_places_must_not_share_memory_nor_want_gradients():
    room = torch.zeros(12, dtype=torch.int64)
    x = torch.randint(9, (3, 8))
    with pytest.raises(ArgumentError, match=r"`out\[1\]` shares memory with `out\[0\]`"):
        topk(x, 2, out=(room[:6].view(3, 2), room[5:11].view(3, 2)))
    with pytest.raises(ArgumentError, match="gradients are wanted"):
        gemv(WEIGHT.clone().requires_grad_(), X, out=torch.empty(6))


def test_numbers_that_are_not_floating_are_refused_by_a_layer_of_codes():
    layer = compress(torch.nn.Linear(8, 4), form="int8")
    assert isinstance(layer, CodebookLinear)
    with pytest.raises(ArgumentError, match=r"`x` is torch\.int32; expected"):
        layer(torch.ones(1, 8, dtype=torch.int32))


@pytest.mark.parametrize("training", [True, False])
def test_a_transformer_with_layers_of_codes(training):
    """Its fast way reads the weights of its layers."""
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
    x = torch.randn(2, 5, 64)
    expected = layer.train(training)(x)
    coded = compress(layer, form="int8").train(training)
    found = coded(x)
    assert (found - expected).norm() / expected.norm() < 0.02


def test_forward_mode_through_a_layer_of_codes():
    layer = compress(torch.nn.Linear(64, 32), form="int8")
    x, tangent = torch.randn(1, 64), torch.randn(1, 64)
    with forward_ad.dual_level():
        slope = forward_ad.unpack_dual(layer(forward_ad.make_dual(x, tangent))).tangent
    torch.testing.assert_close(slope, tangent @ layer.weight.T)
