"""Calls like an earlier one are not checked again: they must be like it in all that matters."""

import copy
import io
from typing import Any

import pytest
import torch

from hotgrid.config import override
from hotgrid.errors import ArgumentError
from hotgrid.kernels import OPS, CodebookLinear, compress, convolve, gemv, linear, topk
from hotgrid.kernels.tune import _dispatch, _shortcuts

from .gemv_cases import normal

tuned_gemv = OPS["gemv"]
tuned_topk = OPS["topk"]


def test_a_second_call_takes_the_short_way_with_other_numbers():
    weight = normal(18, 40)
    for x in (normal(40), normal(1, 40), normal(3, 40)):
        for turn in range(3):
            torch.testing.assert_close(gemv(weight + turn, x), x @ (weight + turn).T)
        assert tuned_gemv.shortcut("gemv", weight, x) is not None


@pytest.mark.parametrize("bias", [None, normal(18), normal(18).double()])
@pytest.mark.parametrize("shape", [(1, 40), (40,), (2, 3, 40)])
def test_linear_is_the_same_on_the_short_way(bias: Any, shape: tuple[int, ...]):
    x, weight = normal(*shape), normal(18, 40)
    first = linear(x, weight, bias)
    given = ("linear", weight, x) if bias is None else ("biased", weight, x, bias)
    assert tuned_gemv.shortcut(*given) is not None
    torch.testing.assert_close(linear(x, weight, bias), first)
    torch.testing.assert_close(linear(2 * x, weight), 2 * x @ weight.T)


def test_gemv_and_linear_of_the_same_shapes_are_told_apart():
    small, large = normal(1, 4), normal(3, 4)
    for _ in range(2):
        torch.testing.assert_close(linear(small, large), small @ large.T)
        torch.testing.assert_close(gemv(small, large), large @ small.T)


def test_what_is_wrong_is_said_after_right_calls_too():
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
def test_topk_is_the_same_on_the_short_way(x: torch.Tensor, dim: int, lies_in_lines: bool):
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
        short = tuned_topk.shortcut((3, dim, False, True), x)
    assert short is not None
    # Only what would be copied first goes the long way.
    assert short.__qualname__.startswith("core_like") is lies_in_lines


def test_topk_stays_where_its_tensor_is_on_the_short_way():
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


def test_gradients_and_settings_leave_the_short_way():
    weight, x = normal(18, 40), normal(1, 40)
    gemv(weight, x)
    wanted = x.clone().requires_grad_()
    gemv(weight, wanted).sum().backward()
    assert wanted.grad is not None
    torch.testing.assert_close(wanted.grad, weight.sum(0, keepdim=True))
    assert tuned_gemv.shortcut("gemv", weight, wanted) is None
    with override({"kernels.choose": ["gemv=converted"]}):
        assert tuned_gemv.shortcut("gemv", weight, x) is None
    with torch.autocast("cpu", torch.bfloat16):
        assert tuned_gemv.shortcut("gemv", weight, x) is None


def test_what_is_recorded_leaves_the_short_way(monkeypatch: pytest.MonkeyPatch):
    weight, x = normal(18, 41), normal(1, 41)
    monkeypatch.setattr(_shortcuts, "_on_gpu", lambda tensors: True)
    for module in (_shortcuts, _dispatch):
        monkeypatch.setattr(module, "is_current_stream_capturing", lambda: recorded)
    recorded = False
    gemv(weight, x)
    for recorded in (False, True, False, True):
        assert (tuned_gemv.shortcut("gemv", weight, x) is None) == recorded


def test_convolve_tells_boundaries_apart_on_the_short_way():
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


def test_a_layer_is_copied_and_kept_without_what_it_remembers():
    layer, x = layer_of("int8"), normal(1, 64)
    y = layer(x)
    assert layer._bound is not None
    twin = copy.deepcopy(layer)
    assert twin._bound is None
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
