"""`torch.ops.hotgrid` by hand: they repeat the checks of the public functions."""

from typing import Any

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import FakeTensor

from hotgrid.config import override
from hotgrid.errors import ArgumentError
from hotgrid.kernels import OPS as TUNED, compress, convolve, linear
from hotgrid.kernels._codebook._coded import PARTS
from hotgrid.kernels._codebook._learn._fit import FORMS

from .gemv_cases import normal

OPS: Any = torch.ops.hotgrid
X, KERNEL = normal(2, 5, 6), normal(3, 3)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((X, KERNEL, (1,), True), r"`before` is \(1,\); expected for each dim"),
        ((X, KERNEL, (9, -4), True), r"`before` is \(9, -4\)"),
        ((X, KERNEL, (3, 1), False), r"`before` is \(3, 1\)"),
        ((X[0], KERNEL, (1, 1), True), r"`x` must be `\[count, \*space\]`.*got shape \(5, 6\)"),
        ((X, KERNEL.double(), (1, 1), True), "`kernel` is torch.float64 and `x` is"),
        ((X, KERNEL.to("meta"), (1, 1), True), "`kernel` is on meta and `x` on cpu"),
        (
            (X, normal(7, 3), (3, 1), True),
            r"`kernel` of shape \(7, 3\) is larger than the torus",
        ),
        ((X.int(), KERNEL.int(), (1, 1), True), "`x` is torch.int32"),
    ],
)
def test_convolve_by_name(arguments: tuple[Any, ...], text: str):
    with pytest.raises(ArgumentError, match=text):
        OPS.convolve(*arguments)


def test_convolve_by_name_takes_what_is_right():
    expected = convolve(X, KERNEL)
    torch.testing.assert_close(OPS.convolve(X, KERNEL, (1, 1), True), expected)
    shifted = OPS.convolve(X, KERNEL, (0, 2), True)
    torch.testing.assert_close(shifted, expected.roll((-1, 1), (1, 2)))
    large = normal(9, 9)
    torch.testing.assert_close(
        OPS.convolve(X, large, (4, 4), False), convolve(X, large, "zero")
    )


def test_a_wrong_call_by_name_excludes_no_candidate():
    with override({"autotune.level": "full"}):
        with pytest.raises(ArgumentError):
            OPS.convolve(X, KERNEL, (9, -4), True)
        found = TUNED["convolve"].ranking_for(X, KERNEL, (1, 1), True)
    assert all(each.able for each in found.outcomes)


def layer_and_parts(form: str) -> tuple[Any, dict[str, Any]]:
    layer = compress(torch.nn.Linear(128, 64), form=form, force=True, max_error=9.0)
    return layer, {name: getattr(layer, name) for name in PARTS}


@pytest.mark.parametrize("form", FORMS)
def test_codes_by_name(form: str):
    layer, parts = layer_and_parts(form)
    x = normal(2, 128)
    torch.testing.assert_close(
        OPS.codebook(form, x, *parts.values()), x @ layer.weight.T, rtol=0.05, atol=0.5
    )
    for name, part in parts.items():
        if part is None:
            other = {**parts, name: torch.ones(128, dtype=torch.int8)}
            if name != "signs" or form != "pq":
                with pytest.raises(ArgumentError, match=f"`{name}` is of shape"):
                    OPS.codebook(form, x, *other.values())
            continue
        # A single id is a matrix of one row.
        shorter = [] if (form, name) == ("rows", "codes") else [part[:1]]
        for spoilt in (*shorter, part.to("meta"), part.to(torch.int32), part[None]):
            with pytest.raises(ArgumentError, match=r"`(codes|scale|table)` is"):
                OPS.codebook(form, x, *{**parts, name: spoilt}.values())
    for wrong in (normal(2, 300), normal(128), x.int()):
        with pytest.raises(ArgumentError, match="`x` "):
            OPS.codebook(form, wrong, *parts.values())


def test_a_form_that_does_not_exist():
    _, parts = layer_and_parts("int4")
    with pytest.raises(ArgumentError, match=r"`form` 'int3' must be one of.*did you mean `int"):
        OPS.codebook("int3", normal(1, 128), *parts.values())


@pytest.mark.parametrize("lost", ["codes", "scale"])
@pytest.mark.parametrize("count", [1, 20])
def test_a_layer_whose_buffer_was_taken_away(lost: str, count: int):
    layer, _ = layer_and_parts("int8")
    layer(normal(count, 128))
    setattr(layer, lost, None)
    with pytest.raises(ArgumentError, match="every form has `codes` and a `scale`"):
        layer(normal(count, 128))


def test_a_matrix_without_columns():
    _, parts = layer_and_parts("rows")
    with pytest.raises(ArgumentError, match=r"at least one column, with `x` of shape \(2, 0\)"):
        OPS.codebook("rows", normal(2, 0), *parts.values())


EMPTY = torch.empty(2, 8, device="meta")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: OPS.topk(EMPTY, 99, 1, True, True), "`k` is 99; expected 0 to 8"),
        (lambda: OPS.topk(EMPTY.to(torch.complex64), 1, 1, True, True), "`x` is torch.complex"),
        (lambda: OPS.gemv(normal(4, 8), EMPTY, None), "`x` is on meta and `weight` on cpu"),
        (lambda: OPS.gemv(EMPTY, EMPTY[:, :4], None), "must end with 8, the columns"),
        (lambda: OPS.gemv(EMPTY, EMPTY[0], None), r"`x` must be `\[count, cols\]`"),
        (lambda: OPS.convolve(EMPTY, EMPTY[0, :3], (5,), True), r"`before` is \(5,\)"),
        (
            lambda: OPS.codebook("int8", EMPTY, normal(4, 8).char(), normal(4), None, None),
            "`codes` is on cpu, with `x` of shape",
        ),
    ],
)
def test_what_has_no_numbers_is_checked_all_the_same(call: Any, text: str):
    with pytest.raises(ArgumentError, match=text):
        call()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize("how", ["buffer", "data"])
def test_a_layer_whose_buffer_was_exchanged(form: str, count: int, how: str):
    layer, parts = layer_and_parts(form)
    x = normal(count, 128)
    expected, *_ = [layer(x).detach() for _ in range(3)]
    for name, part in parts.items():
        if part is None:
            continue
        whole = part.data.clone()
        for spoilt in (whole[:1].clone(), whole.repeat(2, *[1] * (whole.ndim - 1))):
            if how == "buffer":
                setattr(layer, name, spoilt)
            else:
                part.data = spoilt
            with pytest.raises(ArgumentError, match=r"`(codes|scale|table)` (is )?of shape"):
                layer(x)
        part.data = whole
        setattr(layer, name, part)
        torch.testing.assert_close(layer(x), expected)


def test_buffers_that_lie_otherwise_are_read_as_they_lie():
    layer, parts = layer_and_parts("int8")
    x = normal(1, 128)
    expected, *_ = [layer(x).detach() for _ in range(3)]
    layer.codes = parts["codes"].t().contiguous().t()
    for _ in range(3):
        torch.testing.assert_close(layer(x), expected)
    layer.codes = torch.ones(1, 1, dtype=torch.int8).expand(64, 128)
    for _ in range(3):
        torch.testing.assert_close(
            layer(x), x @ layer.weight.T + layer.bias, rtol=1e-3, atol=1e-3
        )


def test_buffers_that_are_no_plain_tensors_are_not_read_as_such():
    layer, parts = layer_and_parts("int8")
    x = normal(1, 128)
    expected = layer(x).detach()
    layer.scale = torch._neg_view(-parts["scale"])  # pyright: ignore[reportPrivateImportUsage]
    for _ in range(3):
        torch.testing.assert_close(layer(x), expected)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        layer.scale = mode.from_tensor(parts["scale"])
    for _ in range(3):
        found = layer(x)
        assert isinstance(found, FakeTensor) and found.shape == (1, 64)


def test_signs_that_come_later_are_noticed():
    layer, _ = layer_and_parts("pq")
    x = normal(1, 128)
    [layer(x) for _ in range(3)]
    layer.signs = torch.ones(128, dtype=torch.int8)
    torch.testing.assert_close(layer(x), x @ layer.weight.T + layer.bias, rtol=0.05, atol=0.2)


@pytest.mark.parametrize(
    ("bias", "text"),
    [
        (torch.ones(6, device="meta"), "`bias` is on meta and `weight` on cpu"),
        (torch.ones(6, dtype=torch.cfloat), "`bias` is torch.complex64; expected a floating"),
        (torch.ones(6, dtype=torch.bool), "`bias` is torch.bool; expected a floating type"),
        (torch.ones(6).to_sparse(), "`bias` has the layout torch.sparse_coo"),
    ],
)
@pytest.mark.parametrize("count", [1, 20])
def test_biases_that_are_refused(bias: torch.Tensor, text: str, count: int):
    x, weight = normal(count, 5), normal(6, 5)
    for _ in range(2):
        linear(x, weight, torch.ones(6))
        with pytest.raises(ArgumentError, match=text):
            linear(x, weight, bias)


@pytest.mark.parametrize("exact", ["no", "", 0, 1, None])
def test_exact_is_a_flag(exact: Any):
    for _ in range(3):
        convolve(X, KERNEL)
        with pytest.raises(
            ArgumentError, match=f"`exact` must be True or False, got {exact!r}"
        ):
            convolve(X, KERNEL, exact=exact)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("boundary", ["periodic", "zero"])
@pytest.mark.parametrize(
    ("shape", "size"),
    [((9,), (3,)), ((6, 8), (3, 2)), ((2, 3, 6, 8), (3, 3)), ((4, 4), (7, 7))],
)
def test_convolve_while_it_is_recorded(boundary: Any, shape: Any, size: Any):
    x, kernel = normal(*shape), normal(*size)
    [convolve(x, kernel, boundary) for _ in range(3)]
    run = lambda x: convolve(x, kernel, boundary)
    recorded = torch.jit.trace(run, (x,), check_trace=False)
    other = normal(*shape, seed=7)
    torch.testing.assert_close(recorded(other), run(other), rtol=1e-4, atol=1e-4)
