"""What is found again without a look at every property must not be found for other calls."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

from hotgrid.config import override
from hotgrid.errors import ArgumentError
from hotgrid.kernels import OPS, argtopk, compress, convolve, gemv, linear, topk
from hotgrid.kernels._codebook import _bound
from hotgrid.kernels.tune import _shortcuts

from .gemv_cases import normal

CONVOLVE = OPS["convolve"].op
tuned_gemv = OPS["gemv"]
tuned_topk = OPS["topk"]

WEIGHT, X = normal(18, 40), normal(1, 40)


@pytest.fixture(params=[True, False], ids=["checks of torch", "none"])
def checks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """With torch's own check of tensors, and as if it had none."""
    if not request.param:
        monkeypatch.setattr(_shortcuts, "check_of", lambda tensors: None)
    tuned_gemv.forget()
    tuned_topk.forget()
    return request.param


def warm(call: Callable[[], Any]) -> None:
    """The first call computes, the second finds that, and the third finds it near."""
    for _ in range(3):
        call()


class Listening(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
        return func(*args, **(kwargs or {}))


def found_within(transform: Callable[[Callable[[Tensor], Tensor]], Any]) -> bool:
    seen = []

    def function(x: Tensor) -> Tensor:
        seen.append(tuned_gemv.shortcut("gemv", WEIGHT, X))
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
def test_nothing_is_found_inside_of_transforms(name: str, checks: bool):
    warm(lambda: gemv(WEIGHT, X))
    assert tuned_gemv.shortcut("gemv", WEIGHT, X) is not None
    assert not found_within(TRANSFORMS[name])


@pytest.mark.parametrize(
    "mode",
    [Listening, FakeTensorMode, forward_ad.dual_level, lambda: torch.autocast("cpu")],
    ids=["dispatch", "fake", "forward", "autocast"],
)
def test_nothing_is_found_inside_of_modes(mode: Callable[[], Any], checks: bool):
    warm(lambda: gemv(WEIGHT, X))
    with mode():
        assert tuned_gemv.shortcut("gemv", WEIGHT, X) is None
    assert tuned_gemv.shortcut("gemv", WEIGHT, X) is not None


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
def test_nothing_is_found_for_other_tensors(other: tuple[Any, Any], checks: bool):
    warm(lambda: gemv(WEIGHT, X))
    assert tuned_gemv.shortcut("gemv", *other) is None


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


def test_more_kinds_of_calls_than_are_kept_for_one_matrix(checks: bool):
    several = [normal(count, 40) for count in range(1, 9)]
    for _ in range(3):
        for x in several:
            torch.testing.assert_close(gemv(WEIGHT, x), x @ WEIGHT.T)


@pytest.mark.parametrize("first", [False, True])
def test_whether_gradients_are_noted_is_noticed(first: bool, checks: bool):
    weight = WEIGHT.clone().requires_grad_()
    calls = {"gemv": lambda: gemv(weight, X), "topk": lambda: topk(weight, 2)[0]}
    for noted in (first, not first, first):
        with torch.set_grad_enabled(noted):
            for call in calls.values():
                warm(call)
                assert call().requires_grad == noted
    with torch.inference_mode():
        assert not calls["gemv"]().requires_grad
        assert not calls["topk"]().requires_grad


def test_the_gradient_of_top_k_on_the_short_way(checks: bool):
    x = normal(3, 20)
    wanted = x.clone().requires_grad_()
    warm(lambda: topk(wanted, 4))
    assert tuned_topk.shortcut((4, -1, True, True), wanted) is not None
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


def test_settings_of_top_k_are_told_apart(checks: bool):
    x = normal(4, 6)
    for _ in range(3):
        for dim in (0, 1, -1):
            for largest in (True, False):
                expected = torch.topk(x, 2, dim, largest).values
                assert torch.equal(topk(x, 2, dim, largest)[0], expected)
    warm(lambda: topk(x, 1))
    with pytest.raises(ArgumentError, match="`k` must be a whole number, got True"):
        topk(x, True)
    with pytest.raises(ArgumentError, match="`largest` must be True or False, got 1"):
        topk(x, 1, -1, 1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match="`k` is 7"):
        topk(x, 7)


def test_a_way_of_some_settings_is_not_kept_for_others():
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
        tuned_gemv.keep_shortcut("front", (WEIGHT, X), (WEIGHT, X, None))
        theirs = tuned_gemv._regime
        assert theirs is not None and theirs is not mine
        assert theirs.shortcuts.find("front", (WEIGHT, X)) is None
        assert mine.shortcuts.find("front", (WEIGHT, X)) is not None


def test_where_torch_has_won_nothing_is_left_around_it():
    bias = normal(18)
    for name, front, given, call, theirs in (
        ("linear", "linear", (WEIGHT, X), lambda: linear(X, WEIGHT), F.linear),
        ("linear", "biased", (WEIGHT, X, bias), lambda: linear(X, WEIGHT, bias), F.linear),
        ("mv", "gemv", (WEIGHT, X[0]), lambda: gemv(WEIGHT, X[0]), torch.mv),
    ):
        with override({"kernels.choose": [f"gemv={name}"]}):
            warm(call)
            assert tuned_gemv.shortcut(front, *given) is theirs


@pytest.mark.parametrize("name", ["core", "matmul", "linear", "mv"])
@pytest.mark.parametrize("shape", [(40,), (1, 40), (1, 1, 40)])
def test_every_winner_is_the_same_on_the_short_way(name: str, shape: tuple[int, ...]):
    x, bias = normal(*shape), normal(18)
    with override({"kernels.choose": [f"gemv={name}"]}):
        for _ in range(3):
            torch.testing.assert_close(gemv(WEIGHT, x), x @ WEIGHT.T)
            torch.testing.assert_close(linear(x, WEIGHT, bias), x @ WEIGHT.T + bias)
            torch.testing.assert_close(
                linear(x, WEIGHT, bias.double()), x @ WEIGHT.T + bias, check_dtype=True
            )


@pytest.mark.parametrize("name", ["core", "converted"])
def test_scales_on_the_short_way(name: str):
    codes, scale = torch.randint(-99, 99, (18, 40), dtype=torch.int8), torch.rand(18) + 0.5
    for x in (X, X[0], normal(3, 40)):
        expected = x @ (codes * scale[:, None]).T
        with override({"kernels.choose": [f"gemv={name}"]}):
            for _ in range(3):
                torch.testing.assert_close(gemv(codes, x, scale), expected, rtol=0.01, atol=0.5)
            with pytest.raises(ArgumentError, match="`scale` of int8"):
                gemv(codes, x)


def test_operators_by_name_take_short_ways_and_refuse_what_they_must(checks: bool):
    warm(lambda: gemv(WEIGHT, X[0]))
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
def test_convolve_of_any_rank_on_the_short_way(name: str, shape: tuple[int, ...]):
    x, kernel = normal(*shape), normal(3, 5)
    expected = convolve(x, kernel, exact=True)
    with override({"kernels.choose": [f"convolve={name}"]}):
        for turn in range(3):
            found = convolve(x + turn, kernel)
            torch.testing.assert_close(
                found, expected + turn * kernel.sum(), rtol=1e-4, atol=1e-4
            )


@pytest.mark.parametrize("torchs", [True, False], ids=["torchs", "none"])
def test_a_layer_of_codes_takes_its_short_way_only_for_calls_like_the_first(
    torchs: bool, monkeypatch: pytest.MonkeyPatch
):
    if not torchs:
        monkeypatch.setattr(_bound, "check_of", lambda tensors: None)
    layer = compress(torch.nn.Linear(64, 32), form="int8")
    x = torch.randn(2, 64)
    weight, bias = layer.weight, layer.bias
    right = lambda x: torch.nn.functional.linear(x, weight, bias)
    layer(x)
    runs = []
    bound = layer._bound
    assert bound is not None
    product = bound.run
    bound.run = lambda x: (runs.append(1), product(x))[1]
    with torch.no_grad():
        assert torch.allclose(layer(x), right(x), rtol=0.02, atol=0.02)
        assert len(runs) == 1
        for other in (x.T.contiguous().T, torch.randn(3, 64), x.double(), x[0], x._neg_view()):
            assert torch.allclose(
                layer(other), right(other.float()).to(other.dtype), rtol=0.02, atol=0.02
            )
            layer._bound = bound
        with torch.autocast("cpu", torch.bfloat16):
            assert layer(x).dtype == torch.bfloat16
        layer._bound = bound
    watched = x.clone().requires_grad_()
    layer(watched).sum().backward()
    assert watched.grad is not None
    layer._bound = bound
    assert torch.vmap(layer)(x).shape == (2, 32)
    assert len(runs) == 1
