"""The forms and their layer; candidates are held to the reference by conformance."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, strategies as st
from torch import nn

from hotgrid.config import override
from hotgrid.errors import ArgumentError
from hotgrid.kernels import OPS, CodebookLinear, compress
from hotgrid.kernels._codebook._coded import (
    blocked,
    packed,
    rotated,
    unblocked,
    unpacked,
    unrotated,
)
from hotgrid.kernels._codebook._learn._clusters import clusters, nearest
from hotgrid.kernels._codebook._learn._fit import FORMS, RECIPES

from .codebook_cases import coded_matrices
from .gemv_cases import normal


def linear(rows: int, cols: int, bias: bool = True, seed: int = 0) -> nn.Linear:
    layer = nn.Linear(cols, rows, bias=bias)
    layer.weight.data = normal(rows, cols, seed=seed)
    return layer


@given(rows=st.integers(1, 70), cols=st.integers(1, 140))
def test_packing_loses_nothing(rows: int, cols: int):
    codes = torch.randint(0, 16, (rows, cols), dtype=torch.uint8)
    assert torch.equal(unpacked(packed(codes)).flatten(1)[:, :cols], codes.short())
    assert torch.equal(unblocked(blocked(codes))[:rows, :cols], codes)


@given(cols=st.integers(1, 96))
def test_a_rotation_keeps_products_and_can_be_undone(cols: int):
    a, b = normal(3, cols).double(), normal(2, cols).double()
    signs = (torch.randint(0, 2, (cols,)) * 2 - 1).to(torch.int8)
    torch.testing.assert_close(rotated(a, signs) @ rotated(b, signs).T, a @ b.T)
    torch.testing.assert_close(unrotated(rotated(a, signs), signs), a)


def test_clusters_find_points_that_repeat():
    points = normal(9, 5)
    draw = torch.Generator().manual_seed(0)
    found = clusters(points.repeat(20, 1), torch.ones(5), 9, draw)
    assert (points[:, None] - found[None]).norm(dim=2).amin(1).max() < 1e-6


def test_weights_decide_which_centre_is_nearest():
    centres = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    point = torch.tensor([[0.6, 0.6]])
    for many in (lambda w: w, lambda w: w[None]):
        assert nearest(point, many(torch.tensor([9.0, 1.0])), centres).item() == 0
        assert nearest(point, many(torch.tensor([1.0, 9.0])), centres).item() == 1


# Expected errors on Gaussian weights, with a tolerance.
@pytest.mark.parametrize(
    ("form", "bits", "least", "most"),
    [
        ("int8", 8.0, 0.004, 0.01),
        ("int4", 4.25, 0.07, 0.108),
        ("pq", 4.0, 0.07, 0.108),
        ("pq", 3.0, 0.12, 0.22),
        ("pq", 2.0, 0.25, 0.34),
        ("pq", 1.0, 0.5, 0.61),
    ],
)
def test_the_error_on_gaussian_weights(form: str, bits: float, least: float, most: float):
    layer = compress(linear(192, 256), f"{bits}bit", form, force=True)
    exact = normal(192, 256)
    lost = (layer.weight - exact).norm() / exact.norm()
    assert layer.form == form and least < layer.error < most
    assert abs(layer.error - lost) < 0.25 * lost, "measured on outputs and on weights"


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda each: f"{each.form}-{each.bits}")
def test_storage_is_within_the_formula(recipe):
    rows, cols = 640, 256
    coded = recipe.fit(normal(rows, cols), torch.ones(cols), None)
    books = {1.0: (8, 2), 2.0: (4, 2), 3.0: (4, 3), 4.0: (1, 1)}
    if recipe.form == "rows":
        most = 256 * cols + rows + 256 * 4
    elif recipe.form == "int4":
        most = rows * cols * 4.25 / 8
    elif recipe.form == "int8":
        most = rows * cols + rows * 4
    else:  # books of 32 bits for every sub-vector; ours are shared, and rows have a scale
        width, count = books[recipe.bits]
        most = rows * cols * (count * 4 / width + 16 * count * 32 / rows) / 8
    assert coded.bytes <= most


@pytest.mark.parametrize("form", FORMS)
def test_a_layer_is_the_product_with_its_decoded_weight(form: str):
    layer = compress(linear(96, 64), form=form, force=True)
    for shape in ((64,), (1, 64), (8, 64), (9, 64), (2, 3, 64), (4, 5, 64)):
        x = normal(*shape)
        exact = x @ layer.weight.T + layer.bias
        assert layer(x).shape == (*shape[:-1], 96)
        assert (layer(x) - exact).norm() / exact.norm() < 0.03


def test_what_is_multiplied_is_the_operand_and_the_layer_of_the_call():
    """Layers of one shape do not share anything, and a call uses its own x."""
    first, second = (compress(linear(96, 64, seed=s), form="rows", force=True) for s in (1, 2))
    x, z = normal(1, 64), normal(1, 64, seed=9)
    torch.testing.assert_close(first(x), x @ first.weight.T + first.bias, rtol=1e-3, atol=0.1)
    assert not torch.allclose(first(x), second(x), atol=0.5)
    assert not torch.allclose(first(x), first(z), atol=0.5)
    plain = x @ normal(96, 64, seed=1).T
    assert torch.equal(plain, x @ normal(96, 64, seed=1).T), "torch's own products are torch's"


@pytest.mark.parametrize("cols", [1, 63, 64, 65, 100, 129])
def test_columns_beyond_the_last_whole_vector_count(cols: int):
    for form in ("int8", "int4", "pq", "rows"):
        layer = compress(linear(40, cols, bias=False), form=form, max_error=2.0, force=True)
        x = torch.zeros(1, cols)
        x[0, -1] = 3.0
        exact = layer.weight[:, -1] * 3
        assert (layer(x)[0] - exact).norm() <= 0.02 * exact.norm() + 1e-6


def test_the_sign_of_x_and_offsets_are_right():
    """An x far from zero, all of one sign, as after an activation."""
    layer = compress(linear(64, 256, bias=False), form="int8")
    for x in (normal(1, 256).abs() + 5, -normal(1, 256).abs() - 5):
        exact = x @ layer.weight.T
        assert (layer(x) - exact).norm() < 1e-3 * exact.norm()


@pytest.mark.parametrize(
    ("form", "target", "share"), [("pq", "2bit", 0.97), ("rows", None, 0.8)]
)
def test_calibration_keeps_what_is_used(form: str, target: str | None, share: float):
    x = normal(512, 64)
    x[:, ::8] *= 30  # one column of each sub-vector
    layer = linear(600, 64, bias=False)
    told = compress(layer, target, form, calibration=x, force=True)
    untold = compress(layer, target, form, force=True)
    exact = x @ layer.weight.detach().T
    errors = [
        float((x @ each.weight.T - exact).norm() / exact.norm()) for each in (told, untold)
    ]
    assert errors[0] < share * errors[1]
    assert abs(told.error - errors[0]) < 0.1


def test_a_rotation_helps_where_few_weights_are_large():
    layer = linear(128, 256, bias=False)
    layer.weight.data[:, ::37] *= 25
    plain, turned = (compress(layer, "4bit", "pq", force=True, rotate=r) for r in (False, True))
    assert turned.signs is not None and plain.signs is None
    assert turned.error < 0.7 * plain.error


@pytest.mark.parametrize("form", FORMS)
def test_gradients_reach_x_and_the_bias(form: str):
    layer = compress(linear(40, 64), form=form, force=True)
    for count in (3, 12):
        x = normal(count, 64).requires_grad_()
        layer(x).square().sum().backward()
        exact = (2 * layer(x) @ layer.weight).detach()
        assert (x.grad - exact).norm() < 1e-3 * exact.norm()
    assert layer.bias.grad is not None
    assert [name for name, _ in layer.named_parameters()] == ["bias"]


@pytest.mark.parametrize("form", FORMS)
def test_it_compiles_without_a_graph_break(form: str):
    model = nn.Sequential(compress(linear(40, 64), form=form, force=True), nn.ReLU())
    whole = torch.compile(model, fullgraph=True, backend="eager")
    for count in (1, 12):
        torch.testing.assert_close(whole(normal(count, 64)), model(normal(count, 64)))


def test_it_maps_over_inputs():
    layer = compress(linear(40, 64), form="int8")
    x = normal(5, 2, 64)
    torch.testing.assert_close(torch.vmap(layer)(x), layer(x), rtol=1e-3, atol=1e-2)
    parts = (layer.codes, layer.scale, None, None)
    registered = lambda v: torch.ops.hotgrid.codebook.default("int8", v, *parts) + layer.bias
    torch.testing.assert_close(torch.vmap(registered)(x), layer(x), rtol=1e-3, atol=1e-2)


def test_torch_func_has_its_derivatives():
    layer = compress(linear(40, 64), form="int4").requires_grad_(False)
    found = torch.func.grad(lambda v: layer(v).sum())(normal(2, 64))
    torch.testing.assert_close(found, layer.weight.sum(0).expand(2, 64))


def test_the_state_dict_holds_everything():
    layer, other = (compress(linear(40, 64, seed=s), form="int4") for s in (1, 2))
    assert {"codes", "scale", "bias", "measured_error"} == layer.state_dict().keys()
    other.load_state_dict(layer.state_dict())
    x = normal(1, 64)
    assert torch.equal(layer(x), other(x)) and layer.error == other.error


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_it_works_in_other_types(dtype: torch.dtype):
    for form in FORMS:
        layer = compress(linear(40, 64), form=form, force=True)
        x = normal(2, 64)
        exact = layer(x)
        found = layer.to(dtype)(x.to(dtype))
        assert found.dtype == dtype
        assert (found.float() - exact).norm() < 0.03 * exact.norm()


def test_validation_looks_at_the_product():
    layer = compress(linear(40, 64), form="int8")
    for mode in ("enforce", "validate"):
        with override({"kernels.check_mode": mode}):
            assert layer(normal(1, 64)).isfinite().all()
    with override({"kernels.choose": ("codebook=decoded",)}):
        assert torch.equal(layer(normal(1, 64)), normal(1, 64) @ layer.weight.T + layer.bias)


def test_repr_describes_it():
    shown = repr(compress(linear(40, 64), form="int8"))
    assert (
        "in_features=64, out_features=40, bias=True, form='int8', bits=8.50, error=0.00"
        in shown
    )


def test_a_wrong_x_is_named():
    layer = compress(linear(40, 64), form="int8")
    with pytest.raises(ArgumentError, match=r"`x` of shape \(2, 63\) must end with 64"):
        layer(normal(2, 63))


def test_every_form_decodes_to_its_shape():
    for coded in coded_matrices(33, 72):
        assert coded.decoded().shape == (33, 72) == (coded.rows, coded.cols)
        assert CodebookLinear(coded)(normal(0, 72)).shape == (0, 33)


@pytest.mark.parametrize(
    ("shape", "options", "text"),
    [
        ((4,), {"form": "pq", "count": 1}, "must be rows and cols"),
        ((4, 4), {"form": "nope", "count": 1}, "`form` 'nope' must be one of rows, pq"),
    ],
)
def test_a_sample_of_something_else_is_refused(shape: tuple, options: dict, text: str):
    with pytest.raises(ArgumentError, match=text):
        OPS["codebook"].op.sample(
            shape, torch.float32, torch.device("cpu"), bits=4.0, **options
        )


def test_a_sample_is_a_call():
    op = OPS["codebook"].op
    call = op.sample((64, 64), torch.float32, torch.device("cpu"), form="pq", bits=2.0, count=2)
    assert op.describe(*call).settings["books"] == "2x4"
    assert op.work(op.describe(*call)).bytes == 64 * 64 * 2 / 8 + 4 * 64
    assert op.compare(op.reference(*call), op.candidates[0].function(*call), *call) is None


def test_files_are_where_they_are_written(tmp_path: Path):
    from hotgrid.kernels import load_compressed, save_compressed

    path = tmp_path / "layer.safetensors"
    layer = compress(linear(40, 64), "2bit", "pq", force=True, rotate=True)
    save_compressed(layer, path)
    again = load_compressed(nn.Linear(64, 40), path)
    assert torch.equal(again(normal(1, 64)), layer(normal(1, 64)))
    assert (again.form, again.error, again.bytes) == (layer.form, layer.error, layer.bytes)
