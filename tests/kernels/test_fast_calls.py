"""Calls like an earlier one skip all checks: only calls that are really like it may do so."""

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

from hotgrid.config import override
from hotgrid.errors import ArgumentError
from hotgrid.kernels import (
    OPS,
    CodebookLinear,
    argtopk,
    compress,
    convolve,
    gemv,
    linear,
    topk,
)
from hotgrid.kernels.tune import _fast_calls

from .gemv_cases import normal

CONVOLVE = OPS["convolve"].op
tuned_codebook = OPS["codebook"]
tuned_gemv = OPS["gemv"]
tuned_topk = OPS["topk"]

WEIGHT, X = normal(18, 40), normal(1, 40)


@pytest.fixture(autouse=True)
def forgotten() -> None:
    for tuned in OPS.values():
        tuned.forget()


@pytest.fixture(params=[True, False], ids=["torch's check", "none"])
def checks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """With torch's own check of tensors, and as if it had none."""
    if not request.param:
        monkeypatch.setattr(_fast_calls, "check_of", lambda tensors: None)
    return request.param


def repeat(call: Callable[[], Any]) -> None:
    for _ in range(3):
        call()


class Listening(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
        return func(*args, **(kwargs or {}))


def found_within(transform: Callable[[Callable[[Tensor], Tensor]], Any]) -> bool:
    seen = []

    def function(x: Tensor) -> Tensor:
        seen.append(tuned_gemv.fast("gemv", WEIGHT, X))
        return x * 2

    transform(function)
    return seen[0] is not None


TRANSFORMS: dict[str, Callable[[Callable[[Tensor], Tensor]], Any]] = {
    "vmap": lambda f: torch.vmap(f)(X),
    "grad": lambda f: torch.func.grad(lambda x: f(x).sum())(X),
    "jvp": lambda f: torch.func.jvp(f, (X,), (X,)),
    "functionalize": lambda f: torch.func.functionalize(f)(X),
    "trace": lambda f: torch.jit.trace(f, X, check_trace=False),
}


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", TRANSFORMS)
def test_nothing_is_found_inside_of_transforms(name: str):
    repeat(lambda: gemv(WEIGHT, X))
    assert tuned_gemv.fast("gemv", WEIGHT, X) is not None
    assert not found_within(TRANSFORMS[name])


@pytest.mark.parametrize(
    "mode",
    [Listening, FakeTensorMode, forward_ad.dual_level, lambda: torch.autocast("cpu")],
    ids=["dispatch", "fake", "forward", "autocast"],
)
def test_nothing_is_found_inside_of_modes(mode: Callable[[], Any]):
    repeat(lambda: gemv(WEIGHT, X))
    with mode():
        assert tuned_gemv.fast("gemv", WEIGHT, X) is None
    assert tuned_gemv.fast("gemv", WEIGHT, X) is not None


@pytest.mark.parametrize(
    "other",
    [
        (WEIGHT, normal(2, 40)),
        (WEIGHT, normal(40)),
        (WEIGHT, X.double()),
        (WEIGHT, normal(1, 80)[:, ::2]),
        (normal(40, 18).T, X),
        (WEIGHT, torch._neg_view(X)),  # pyright: ignore[reportPrivateImportUsage]
        (WEIGHT.to("meta"), X.to("meta")),
        (WEIGHT, X.clone().requires_grad_()),
        (WEIGHT.to_sparse(), X),
        (WEIGHT, 3),
    ],
    ids=lambda pair: str(getattr(pair[1], "shape", pair[1])),
)
def test_nothing_is_found_for_other_tensors(other: tuple[Any, Any]):
    repeat(lambda: gemv(WEIGHT, X))
    assert tuned_gemv.fast("gemv", *other) is None


def test_a_tensor_that_has_changed_is_another_one(checks: bool):
    weight, x = normal(40, 40), X
    for change in (
        lambda: None,
        weight.t_,
        lambda: setattr(weight, "data", normal(12, 40)),
        lambda: setattr(weight, "data", normal(40, 12).T),
        lambda: weight.resize_(3, 40).fill_(1.0),
    ):
        change()
        for _ in range(3):
            torch.testing.assert_close(gemv(weight, x), x @ weight.T)


def test_many_kinds_of_calls_with_one_matrix(checks: bool):
    several = [normal(count, 40) for count in range(1, 9)]
    for _ in range(3):
        for x in several:
            torch.testing.assert_close(gemv(WEIGHT, x), x @ WEIGHT.T)


@pytest.mark.parametrize("first", [False, True])
def test_grad_mode_is_noticed(first: bool, checks: bool):
    weight = WEIGHT.clone().requires_grad_()
    calls = {"gemv": lambda: gemv(weight, X), "topk": lambda: topk(weight, 2)[0]}
    for noted in (first, not first, first):
        with torch.set_grad_enabled(noted):
            for call in calls.values():
                repeat(call)
                assert call().requires_grad == noted
    with torch.inference_mode():
        assert not calls["gemv"]().requires_grad
        assert not calls["topk"]().requires_grad


def test_the_gradient_of_a_repeated_top_k(checks: bool):
    x = normal(3, 20)
    wanted = x.clone().requires_grad_()
    repeat(lambda: topk(wanted, 4))
    assert (tuned_topk.fast((4, -1, True, True), wanted) is not None) is checks
    values, indices = topk(wanted, 4)
    assert torch.equal(values, topk(x, 4)[0])
    assert torch.equal(indices, argtopk(x, 4))
    (gradient,) = torch.autograd.grad((values**3).sum(), wanted, create_graph=True)
    expected = torch.zeros_like(x).scatter(1, indices, 3 * values.detach() ** 2)
    torch.testing.assert_close(gradient, expected)
    (second,) = torch.autograd.grad(gradient.sum(), wanted)
    expected = torch.zeros_like(x).scatter(1, indices, 6 * values.detach())
    torch.testing.assert_close(second, expected)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(wanted, torch.ones_like(x))
        assert forward_ad.unpack_dual(topk(dual, 4)[0]).tangent is not None
    rows = torch.vmap(lambda row: topk(row, 4)[0])(wanted)
    assert torch.equal(rows, values)
    assert rows.requires_grad


def test_settings_of_top_k_are_distinguished(checks: bool):
    x = normal(4, 6)
    for _ in range(3):
        for dim in (0, 1, -1):
            for largest in (True, False):
                expected = torch.topk(x, 2, dim, largest).values
                assert torch.equal(topk(x, 2, dim, largest)[0], expected)
    repeat(lambda: topk(x, 1))
    with pytest.raises(ArgumentError, match="`k` must be a whole number, got True"):
        topk(x, True)
    with pytest.raises(ArgumentError, match="`largest` must be True or False, got 1"):
        topk(x, 1, -1, 1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match="`k` is 7"):
        topk(x, 7)


def test_a_function_of_some_settings_is_not_kept_for_others():
    """Another thread may enter other settings while the way is looked up."""
    chosen = {"kernels.choose": ["gemv=matmul"]}
    with override({"kernels.choose": ["gemv=linear"]}) as others:
        gemv(WEIGHT, normal(2, 40))
    with override(chosen):
        gemv(WEIGHT, X)
        mine = tuned_gemv._regime
        assert mine is not None

        class Interrupted(dict[Any, Any]):
            def get(self, *key: Any) -> Any:
                tuned_gemv._entered(others)
                return super().get(*key)

        mine.chosen = Interrupted(mine.chosen)
        run = lambda multiply, weight, x: multiply(weight, x, None)
        tuned_gemv.keep_fast("front", (WEIGHT, X), (WEIGHT, X, None), run)
        theirs = tuned_gemv._regime
        assert theirs is not None and theirs is not mine
        assert theirs.fast.find("front", (WEIGHT, X)) is None
        assert mine.fast.find("front", (WEIGHT, X)) is not None


@pytest.mark.parametrize("name", ["core", "matmul", "linear", "mv"])
@pytest.mark.parametrize("shape", [(40,), (1, 40), (1, 1, 40)])
def test_every_winner_is_the_same_in_repeated_calls(name: str, shape: tuple[int, ...]):
    x, bias = normal(*shape), normal(18)
    with override({"kernels.choose": [f"gemv={name}"]}):
        for _ in range(3):
            torch.testing.assert_close(gemv(WEIGHT, x), x @ WEIGHT.T)
            torch.testing.assert_close(linear(x, WEIGHT, bias), x @ WEIGHT.T + bias)
            torch.testing.assert_close(
                linear(x, WEIGHT, bias.double()), x @ WEIGHT.T + bias, check_dtype=True
            )


@pytest.mark.parametrize("name", ["core", "converted"])
def test_scales_in_repeated_calls(name: str):
    codes, scale = torch.randint(-99, 99, (18, 40), dtype=torch.int8), torch.rand(18) + 0.5
    for x in (X, X[0], normal(3, 40)):
        expected = x @ (codes * scale[:, None]).T
        with override({"kernels.choose": [f"gemv={name}"]}):
            for _ in range(3):
                torch.testing.assert_close(gemv(codes, x, scale), expected, rtol=0.01, atol=0.5)
            with pytest.raises(ArgumentError, match="`scale` of int8"):
                gemv(codes, x)


def test_operators_by_name_are_repeated_and_checked(checks: bool):
    repeat(lambda: gemv(WEIGHT, X[0]))
    with pytest.raises(ArgumentError, match=r"`x` must be `\[count, cols\]`"):
        torch.ops.hotgrid.gemv(WEIGHT, X[0], None)
    wanted = X.clone().requires_grad_()
    for _ in range(3):
        torch.testing.assert_close(torch.ops.hotgrid.gemv(WEIGHT, X, None), X @ WEIGHT.T)
        values, _ = torch.ops.hotgrid.topk(wanted, 3, -1, True, True)
        (gradient,) = torch.autograd.grad(values.sum(), wanted)
        assert gradient.sum() == 3
        product = torch.ops.hotgrid.gemv(WEIGHT, wanted, None)
        (gradient,) = torch.autograd.grad(product.sum(), wanted)
        torch.testing.assert_close(gradient, WEIGHT.sum(0, keepdim=True))
        with torch.inference_mode():
            assert torch.equal(torch.ops.hotgrid.topk(X, 3, -1, True, True)[0], values)


@pytest.mark.parametrize("name", CONVOLVE.names)
@pytest.mark.parametrize("shape", [(20, 24), (2, 20, 24), (2, 3, 20, 24)])
def test_repeated_convolve_of_any_rank(name: str, shape: tuple[int, ...]):
    x, kernel = normal(*shape), normal(3, 5)
    expected = convolve(x, kernel, exact=True)
    with override({"kernels.choose": [f"convolve={name}"]}):
        for turn in range(3):
            found = convolve(x + turn, kernel)
            torch.testing.assert_close(
                found, expected + turn * kernel.sum(), rtol=1e-4, atol=1e-4
            )


def test_a_codebook_layer_repeats_only_calls_like_the_first(checks: bool):
    layer = compress(torch.nn.Linear(64, 32), form="int8")
    x = torch.randn(2, 64)
    weight, bias = layer.weight, layer.bias
    right = lambda x: torch.nn.functional.linear(x, weight, bias)
    found = lambda x: tuned_codebook.fast(("int8", 64, 32), x, layer.codes, layer.scale)
    layer(x)
    assert (found(x) is not None) is checks
    with torch.no_grad():
        assert torch.allclose(layer(x), right(x), rtol=0.02, atol=0.02)
        for other in (x.T.contiguous().T, torch.randn(3, 64), x.double(), x[0], x._neg_view()):
            assert found(other) is None
            assert torch.allclose(
                layer(other), right(other.float()).to(other.dtype), rtol=0.02, atol=0.02
            )
        with torch.autocast("cpu", torch.bfloat16):
            assert layer(x).dtype == torch.bfloat16
    watched = x.clone().requires_grad_()
    assert found(watched) is None
    layer(watched).sum().backward()
    assert watched.grad is not None
    assert torch.vmap(layer)(x).shape == (2, 32)


def test_a_layer_of_the_same_shapes_has_its_own_numbers():
    x, layers = normal(1, 64), [layer_of("int8") for _ in range(2)]
    layers[1].codes = -layers[0].codes
    for _ in range(3):
        both = [layer(x) - layer.bias for layer in layers]
        torch.testing.assert_close(both[0], -both[1])


def test_buffers_that_do_not_fit_the_layer_are_refused_though_they_fit_another():
    small, layer, x = layer_of("int8"), layer_of("int8"), normal(1, 64)
    small.codes, small.scale = small.codes[:8].clone(), small.scale[:8].clone()
    small.out_features, small.bias = 8, None
    for each in (small, layer):
        repeat(lambda each=each: each(x))
    layer.codes, layer.scale = small.codes, small.scale
    with pytest.raises(ArgumentError, match="must begin with 40, the `out_features`"):
        layer(x)


def test_a_second_call_is_fast_with_other_numbers():
    weight = normal(18, 40)
    for x in (normal(40), normal(1, 40), normal(3, 40)):
        for turn in range(3):
            torch.testing.assert_close(gemv(weight + turn, x), x @ (weight + turn).T)
        assert tuned_gemv.fast("gemv", weight, x) is not None


@pytest.mark.parametrize("bias", [None, normal(18), normal(18).double()])
@pytest.mark.parametrize("shape", [(1, 40), (40,), (2, 3, 40)])
def test_a_repeated_linear_is_the_same(bias: Any, shape: tuple[int, ...]):
    x, weight = normal(*shape), normal(18, 40)
    first = linear(x, weight, bias)
    given = ("linear", weight, x) if bias is None else ("linear", weight, x, bias)
    assert tuned_gemv.fast(*given) is not None
    torch.testing.assert_close(linear(x, weight, bias), first)
    torch.testing.assert_close(linear(2 * x, weight), 2 * x @ weight.T)


def test_gemv_and_linear_of_the_same_shapes_are_distinguished():
    small, large = normal(1, 4), normal(3, 4)
    for _ in range(2):
        torch.testing.assert_close(linear(small, large), small @ large.T)
        torch.testing.assert_close(gemv(small, large), large @ small.T)


def test_errors_are_raised_after_right_calls_too():
    weight, x = normal(18, 40), normal(1, 40)
    gemv(weight, x)
    gemv(weight, x)
    with pytest.raises(ArgumentError, match="must end with 40"):
        gemv(weight, normal(1, 39))
    with pytest.raises(ArgumentError, match="layout"):
        gemv(weight.to_sparse(), x)
    with pytest.raises(ArgumentError, match="`scale` belongs to int8"):
        gemv(weight, x, normal(18))


@pytest.mark.parametrize(
    ("x", "dim", "lies_in_lines"),
    [
        (normal(5, 7, 40), 0, True),
        (normal(5, 7, 40), -1, True),
        (normal(5, 7, 80)[:, :, ::2], 1, False),
        (normal(5, 9, 40)[:, 1:8], 1, True),
        (normal(40, 7).T, 0, False),
        (torch.arange(24, dtype=torch.int16).reshape(4, 6), 1, True),
    ],
)
def test_a_repeated_topk_is_the_same(x: torch.Tensor, dim: int, lies_in_lines: bool):
    with override({"kernels.choose": ["topk=core"]}):
        for k, largest in ((1, True), (3, False)):
            for turn in range(3):
                numbers = x + turn if x.is_contiguous() else x
                values, indices = topk(numbers, k, dim, largest)
                wanted = torch.topk(numbers, k, dim, largest)
                assert torch.equal(values, wanted.values)
                assert torch.equal(numbers.gather(dim, indices), values)
                assert values.is_contiguous()
                assert (values.dtype, indices.dtype) == (x.dtype, torch.int64)
        run: Any = tuned_topk.fast((3, dim, False, True), x)
    assert run is not None
    # What would be copied first has no function of its own.
    assert run.args[0].__qualname__.startswith("_core_ready") is lies_in_lines


def test_a_repeated_topk_stays_on_the_device_of_its_tensor():
    x = normal(5, 40)
    with override({"kernels.choose": ["topk=core"]}):
        topk(x, 2)
        before = torch.get_default_device()
        torch.set_default_device("meta")
        try:
            values, _ = topk(x, 2)
        finally:
            torch.set_default_device(before if before.type != "cpu" else None)
    assert values.device == x.device
    assert torch.equal(values, torch.topk(x, 2).values)


def test_gradients_and_settings_are_noticed():
    weight, x = normal(18, 40), normal(1, 40)
    gemv(weight, x)
    wanted = x.clone().requires_grad_()
    gemv(weight, wanted).sum().backward()
    assert wanted.grad is not None
    torch.testing.assert_close(wanted.grad, weight.sum(0, keepdim=True))
    assert tuned_gemv.fast("gemv", weight, wanted) is None
    with override({"kernels.choose": ["gemv=converted"]}):
        assert tuned_gemv.fast("gemv", weight, x) is None
    with torch.autocast("cpu", torch.bfloat16):
        assert tuned_gemv.fast("gemv", weight, x) is None


def test_nothing_is_found_while_a_cuda_graph_is_recorded(monkeypatch: pytest.MonkeyPatch):
    weight, x = normal(18, 41), normal(1, 41)
    monkeypatch.setattr(_fast_calls, "is_current_stream_capturing", lambda: recorded)
    recorded = False
    gemv(weight, x)
    regime = tuned_gemv._regime
    assert regime is not None
    for kept in regime.fast._known.values():
        kept[:] = [(alike, run, True) for alike, run, _ in kept]
    for recorded in (False, True, False, True):
        assert (tuned_gemv.fast("gemv", weight, x) is None) == recorded


def test_repeated_convolve_distinguishes_boundaries():
    x, kernel = normal(2, 9), normal(3)
    expected = {each: convolve(x, kernel, each) for each in ("periodic", "zero")}
    for _ in range(2):
        for each, right in expected.items():
            torch.testing.assert_close(convolve(x, kernel, each), right)
    assert not torch.allclose(expected["periodic"], expected["zero"])
    with pytest.raises(ArgumentError, match="boundary"):
        convolve(x, kernel, ["zero"])  # pyright: ignore[reportArgumentType]


def layer_of(form: str) -> CodebookLinear:
    layer = torch.nn.Linear(64, 40)
    layer.weight.data = normal(40, 64)
    found = compress(layer, form=form, force=True)
    assert isinstance(found, CodebookLinear)
    return found.requires_grad_(False)


@pytest.mark.parametrize("form", ["rows", "pq", "int4", "int8"])
def test_a_layer_notices_other_buffers(form: str):
    layer, x = layer_of(form), normal(1, 64)
    before = layer(x)
    torch.testing.assert_close(layer(x), before)
    layer.scale = layer.scale * 2
    bias = layer.bias
    torch.testing.assert_close(layer(x) - bias, 2 * (before - bias))
    layer.scale.data = layer.scale.data.clone() / 2
    torch.testing.assert_close(layer(x), before)


def test_copies_of_a_layer_have_their_own_codes():
    layer, x = layer_of("int8"), normal(1, 64)
    y = layer(x)
    twin = copy.deepcopy(layer)
    twin.codes.zero_()
    torch.testing.assert_close(twin(x), layer.bias.expand(1, -1))
    torch.testing.assert_close(layer(x), y)
    kept = io.BytesIO()
    torch.save(layer, kept)
    assert kept.tell() > 64 * 40


def test_a_layer_follows_shapes_types_and_settings():
    layer, x = layer_of("int8"), normal(1, 64)
    y = layer(x)
    torch.testing.assert_close(layer(x[0]), y[0])
    torch.testing.assert_close(layer(x[None]), y[None])
    torch.testing.assert_close(layer(x.repeat(3, 1)), y.repeat(3, 1))
    assert layer(x.bfloat16()).dtype == torch.bfloat16
    layer(x)
    with override({"kernels.choose": ["codebook=decoded"]}):
        torch.testing.assert_close(layer(x), x @ layer.coded.decoded().T + layer.bias)
    wanted = x.clone().requires_grad_()
    assert layer(wanted).requires_grad
    with pytest.raises(ArgumentError, match="must end with 64"):
        layer(normal(1, 63))
