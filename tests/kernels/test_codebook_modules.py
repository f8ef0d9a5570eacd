"""compress and existing modules: defaults of torch, sizes, hooks, other linear layers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

from hotgrid.errors import ArgumentError
from hotgrid.kernels import CodebookLinear, compress, load_compressed, save_compressed
from hotgrid.kernels._codebook._learn._fit import FORMS

from .gemv_cases import normal


@pytest.fixture
def defaults() -> Iterator[None]:
    dtype = torch.get_default_dtype()
    yield
    torch.set_default_dtype(dtype)
    torch.set_default_device(None)


@pytest.mark.usefixtures("defaults")
@pytest.mark.parametrize("form", FORMS)
def test_defaults_of_torch_do_not_matter(form: str, tmp_path: Path):
    layer, x, path = nn.Linear(64, 32), normal(20, 64), tmp_path / "layer.safetensors"
    plain = compress(layer, form=form, calibration=x)
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    found = compress(layer, form=form, calibration=x)
    white = compress(layer, form=form, rotate=form == "pq")
    save_compressed(found, path)
    again = load_compressed(layer, path)
    for each in (found, white, again):
        assert {b.device.type for b in each.buffers()} == {"cpu"}
        assert {n: b.dtype for n, b in each.named_buffers() if n != "signs"} == {
            n: b.dtype for n, b in plain.named_buffers()
        }
    assert found.error == again.error == plain.error
    assert torch.equal(found.codes, plain.codes)


@pytest.mark.parametrize(
    "mode", [lambda: torch.autocast("cpu", torch.bfloat16), torch.inference_mode]
)
def test_modes_of_torch_do_not_matter(mode):
    layer = nn.Linear(64, 32)
    plain = compress(layer, "2bit", "pq", max_error=9)
    with mode():
        found = compress(layer, "2bit", "pq", max_error=9)
    assert found.error == plain.error and torch.equal(found.codes, plain.codes)
    found(normal(20, 64)).sum().backward()
    assert found.bias.grad is not None


def test_a_weight_without_numbers_is_named():
    with pytest.raises(ArgumentError, match=r"the weight of `0` .* on meta"):
        compress(nn.Sequential(nn.Linear(8, 8, device="meta")))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("exponent", [-90, 60, 100])
def test_the_size_of_weights_does_not_matter(form: str, exponent: int):
    torch.manual_seed(0)
    layer, x = nn.Linear(64, 48, bias=False), normal(20, 64)
    plain = compress(layer, form=form)
    layer.weight.data *= 2.0**exponent
    found = compress(layer, form=form)
    assert found.error == plain.error and torch.equal(found.codes, plain.codes)
    for count in (1, 20):
        exact = x[:count].double() @ layer.weight.detach().double().T
        assert (found(x[:count]).double() - exact).norm() <= 0.2 * exact.norm()


@pytest.mark.parametrize("form", FORMS)
def test_the_largest_weights_work_or_are_refused(form: str):
    """A sum of codes times a scale near the largest f32 may be beyond it."""
    torch.manual_seed(0)
    layer, x = nn.Linear(64, 48, bias=False), normal(1, 64)
    layer.weight.data *= 1e37 / layer.weight.data.abs().max()
    exact = x.double() @ layer.weight.detach().double().T
    assert compress(layer).error < 0.15
    try:
        found = compress(layer, form=form)
    except ArgumentError as refusal:
        assert form == "int4" and "relative error of" in str(refusal)
    else:
        assert (found(x).double() - exact).norm() <= 0.2 * exact.norm()


@pytest.mark.parametrize(
    ("dtype", "factor", "text"),
    [
        (torch.float64, 1e200, "the weight of the layer must be finite"),
        (torch.float64, 1e-200, "the weight of the layer is too small"),
        (torch.float32, 1e-36, "the weight of the layer is too small"),
    ],
)
def test_weights_beyond_f32_are_named(dtype: torch.dtype, factor: float, text: str):
    layer = nn.Linear(8, 8, dtype=dtype)
    layer.weight.data *= factor
    with pytest.raises(ArgumentError, match=text):
        compress(layer)


class Own(nn.Linear):
    """A subclass of a linear layer."""


def pruned() -> nn.Linear:
    layer = nn.Linear(16, 16)
    return prune.l1_unstructured(layer, "weight", 0.5)


@pytest.mark.parametrize(
    "other",
    [
        lambda: Own(16, 16),
        lambda: parametrizations.weight_norm(nn.Linear(16, 16)),
        pruned,
    ],
    ids=["subclass", "parametrized", "pruned"],
)
def test_what_is_passed_over_is_reported(other, capsys: pytest.CaptureFixture[str]):
    layer = other()
    model = nn.Sequential(nn.Linear(16, 16), layer)
    small = compress(model, form="int8")
    assert isinstance(small.get_submodule("0"), CodebookLinear)
    assert type(small.get_submodule("1")) is type(layer)
    told = f"left unchanged, since they are not plain nn.Linear: `1` ({type(layer).__name__})"
    assert told in capsys.readouterr().err
    small(normal(2, 16))
    with pytest.raises(ArgumentError, match=r"holds no `nn.Linear`; .* cannot be replaced"):
        compress(layer)


def test_hooks_stay_with_the_layer_and_its_model():
    model, seen = nn.Sequential(nn.Linear(16, 8), nn.ReLU()), []
    model.register_forward_hook(lambda *_: seen.append("model"))
    model[0].register_forward_pre_hook(lambda _, x, named: seen.append(named), with_kwargs=True)
    model[0].register_forward_hook(lambda _, x, y: y + 1000)
    model[0].register_full_backward_hook(lambda *_: seen.append("back"))
    model.eval()
    small, x = compress(model, form="int8"), normal(2, 16).requires_grad_()
    y = small(x)
    assert seen == [{}, "model"] and y.min() > 900
    y.sum().backward()
    assert seen == [{}, "model", "back"]
    assert not any(each.training for each in small.modules())


def test_hooks_of_one_are_not_hooks_of_the_other():
    model = nn.Sequential(nn.Linear(16, 8))
    small = compress(model, form="int8")
    small.register_forward_hook(lambda _, x, y: y * 0)
    assert model(normal(2, 16)).any() and not small(normal(2, 16)).any()
    assert not model._forward_hooks


def test_a_compiled_model_is_not_changed():
    inner = nn.Sequential(nn.Linear(16, 8))
    model = nn.Sequential(torch.compile(inner, backend="eager"))
    with pytest.raises(ArgumentError, match="has been compiled at `0`; compress first"):
        compress(model)
    assert list(inner._modules) == ["0"] and type(inner[0]) is nn.Linear


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["codes", "scale"])
def test_a_part_whose_memory_was_taken_away_is_refused(form: str, name: str):
    layer, x = compress(nn.Linear(64, 64), form=form, force=True, max_error=10.0), normal(1, 64)
    for _ in range(3):
        layer(x)
    getattr(layer, name).untyped_storage().resize_(0)
    with pytest.raises(ArgumentError, match=f"the memory of `{name}` has been taken away"):
        layer(x)


def test_a_part_that_was_given_another_shape_in_its_place_is_refused():
    layer, x = compress(nn.Linear(64, 32), form="int8"), normal(1, 64)
    for _ in range(3):
        layer(x)
    layer.codes.resize_(1, 64)
    with pytest.raises(ArgumentError, match="`codes` of shape"):
        layer(x)
