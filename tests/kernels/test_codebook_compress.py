"""compress: targets, refusals, models; and files that are read back as they were."""

import json
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import nn

from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.kernels import (
    OPS,
    CodebookLinear,
    Target,
    compress,
    load_compressed,
    save_compressed,
)
from hotgrid.kernels.tune import explain

from .gemv_cases import normal


class Tied(nn.Module):
    """A model with one layer used twice, one inside a list, and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 64)
        self.again = self.first
        self.more = nn.ModuleList([nn.Linear(64, 32, bias=False)])
        self.norm = nn.LayerNorm(32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.more[0](self.again(self.first(x).relu())))


def gaussian(rows: int = 512, cols: int = 64) -> nn.Linear:
    layer = nn.Linear(cols, rows)
    layer.weight.data = normal(rows, cols)
    return layer


def repeated(rows: int = 512, cols: int = 64, different: int = 40) -> nn.Linear:
    layer = nn.Linear(cols, rows)
    layer.weight.data = normal(different, cols).repeat(rows // different + 1, 1)[:rows]
    return layer


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("4bit", Target(bits=4)),
        ("2.5 bits", Target(bits=2.5)),
        ("2MB", Target(bytes=2e6)),
        ("512 KiB", Target(bytes=2**19)),
        ("error<=0.1", Target(error=0.1)),
        ("error < .05", Target(error=0.05)),
    ],
)
def test_targets_are_written_as_text(text: str, target: Target):
    assert Target.of(text) == target == Target.of(target)


@pytest.mark.parametrize("text", ["", "4", "4 bytes", "small", "error=0.1", "-4bit", None, 4])
def test_other_texts_are_not_understood(text: object):
    with pytest.raises(ArgumentError, match="is not understood; write bits as '4bit'"):
        Target.of(text)


@pytest.mark.parametrize("given", [{}, {"bits": 4, "error": 0.1}, {"bits": 0}, {"error": -1}])
def test_a_target_is_one_positive_number(given: dict):
    with pytest.raises(ArgumentError, match="a target is one positive number"):
        Target(**given)


@pytest.mark.parametrize(
    ("layer", "target", "form"),
    [
        (gaussian(256, 256), None, "pq"),
        # With few columns a scale for each row takes more than one for each group.
        (gaussian(), None, "int4"),
        (gaussian(), "error<=0.01", "int8"),
        (gaussian(256, 256), "error<=0.11", "pq"),
        (gaussian(), "8.5bit", "int8"),
        (gaussian(), "5bit", "int4"),
        (repeated(), None, "rows"),
        (repeated(), "error<=0.02", "rows"),
        (repeated(), "1MB", "int8"),
        (gaussian(), "20KB", "int4"),
        (gaussian(256, 256), "4bit", "pq"),
        (repeated(), "4bit", "rows"),
    ],
)
def test_the_form_that_meets_the_target(layer: nn.Linear, target: str | None, form: str):
    found = compress(layer, target)
    assert found.form == form
    assert found.error <= 0.15


def test_rows_that_repeat_are_kept_and_256_rows_of_noise_are_refused():
    assert compress(repeated(), form="rows").error < 0.01
    with pytest.raises(ArgumentError) as refusal:
        compress(gaussian(3072, 128), form="rows")
    text = str(refusal.value)
    assert "form `rows` has a relative error of 0.9" in text
    assert "its 3072 rows are not near-copies of 256 ones" in text
    assert "`force=True`" in text
    forced = compress(gaussian(3072, 128), form="rows", force=True)
    assert 0.85 < forced.error < 1 and "error=0.9" in repr(forced)


def test_a_form_beyond_the_limit_is_refused_with_all_errors():
    with pytest.raises(ArgumentError, match=r"`pq` at 2\.\d+ bits 0\.3.*`force=True`"):
        compress(gaussian(), "2.5bit", "pq")
    with pytest.raises(ArgumentError, match=r"beyond the limit of 0\.001"):
        compress(gaussian(), max_error=0.001)
    assert compress(gaussian(), "2.5bit", "pq", max_error=0.4).error < 0.4
    error = compress(gaussian(), form="int8").error
    for limit in (1e-9, error - 1e-5, error - 1e-7):
        with pytest.raises(ArgumentError, match="has a relative error of ") as refused:
            compress(gaussian(), form="int8", max_error=limit)
        told = str(refused.value).partition("has a relative error of ")[2].split()[0]
        assert limit < float(told) < error + 1e-3 and len(told) < 12


@pytest.mark.parametrize("bits", ["nan", "inf", "-1", "0"])
def test_bits_that_are_invalid(bits: str):
    with pytest.raises(ArgumentError, match=r"`bits` is .*; expected a (positive )?number"):
        explain(OPS["codebook"], (64, 64), {"bits": bits})


def test_no_form_is_that_small():
    with pytest.raises(ArgumentError, match="has no form of 1e-09 bits a weight or less"):
        compress(gaussian(), "0.000000001bit", "int8")


def test_a_size_is_for_all_layers_together():
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    small = compress(model, "20KB")
    assert (
        sum(each.bytes for each in small.children() if isinstance(each, CodebookLinear))
        <= 20_000
    )


def test_a_model_keeps_its_shape_and_the_given_one_its_layers():
    torch.manual_seed(0)
    model = Tied()
    x = normal(3, 64)
    before = model(x)
    small = compress(model, "8.6bit")
    assert type(model.first) is nn.Linear and torch.equal(model(x), before)
    assert isinstance(small.first, CodebookLinear) and small.first is small.again
    inner = small.get_submodule("more.0")
    assert isinstance(inner, CodebookLinear) and inner.bias is None
    assert small.norm.weight is model.norm.weight
    assert (small(x) - before).norm() < 0.03 * before.norm()


def test_calibration_of_a_model_is_what_it_is_called_with():
    torch.manual_seed(0)
    model = Tied().train()
    calls = [normal(20, 64), normal(30, 64, seed=1)]
    small = compress(model, "4bit", calibration=calls, force=True)
    assert model.training and isinstance(small.first, CodebookLinear)
    with pytest.raises(ArgumentError, match=r"cannot be called with `calibration` .*\(2, 63\)"):
        compress(model, calibration=normal(2, 63))
    with pytest.raises(ArgumentError, match="`calibration` must be a tensor or several"):
        compress(model, calibration=[])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"module": nn.ReLU()}, "`module`, a ReLU, holds no `nn.Linear`"),
        ({"module": "model"}, "`module` must be a torch module, got str"),
        (
            {"form": "row"},
            "`form` 'row' must be one of rows, pq, int4, int8; did you mean `rows`",
        ),
        ({"max_error": 0}, "`max_error` is 0"),
        ({"target": "tiny"}, "`target` 'tiny' is not understood"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict, text: str):
    with pytest.raises(ArgumentError, match=text):
        compress(**{"module": gaussian(8, 8), **arguments})


def test_weights_must_be_finite():
    layer = gaussian(8, 8)
    layer.weight.data[0, 0] = float("nan")
    with pytest.raises(ArgumentError, match="the weight of the layer must be finite"):
        compress(layer)
    with pytest.raises(ArgumentError, match="the weight of `0` must be finite"):
        compress(nn.Sequential(layer))


def test_weights_of_zero_stay_zero():
    layer = nn.Linear(64, 32, bias=False)
    layer.weight.data.zero_()
    for form in ("int8", "int4", "pq", "rows"):
        found = compress(layer, form=form)
        assert found.error == 0 and not found(normal(1, 64)).any()


def test_a_model_is_read_back_without_compressing_again(tmp_path: Path):
    torch.manual_seed(0)
    model, path = Tied(), tmp_path / "model.safetensors"
    small = compress(model, "4bit", force=True)
    save_compressed(small, path)
    again = load_compressed(Tied(), path)
    assert torch.equal(again(normal(1, 64)), small(normal(1, 64)))
    assert again.first is again.again
    assert again.first.error == small.first.error


def test_files_of_others_and_for_others_are_refused(tmp_path: Path):
    path = tmp_path / "file.safetensors"
    with pytest.raises(ArgumentError, match="holds no `CodebookLinear`; `compress` it first"):
        save_compressed(nn.Linear(2, 2), path)
    safetensors.torch.save_file({"codes": torch.zeros(2)}, path)
    with pytest.raises(DamagedError, match="was not written by `save_compressed`"):
        load_compressed(nn.Linear(2, 2), path)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(DamagedError, match="cannot be read"):
        load_compressed(nn.Linear(2, 2), path)
    about = {"hotgrid.codebook": json.dumps({"": {"form": "int9", "in_features": 2}})}
    safetensors.torch.save_file({"codes": torch.zeros(2)}, path, metadata=about)
    with pytest.raises(DamagedError, match="lacks its codes, its scale or its form"):
        load_compressed(nn.Linear(2, 2), path)
    save_compressed(compress(Tied(), form="int8"), path)
    with pytest.raises(
        ArgumentError, match="has a layer `first`, which the given Linear does not have"
    ):
        load_compressed(nn.Linear(64, 64), path)


def test_calibrating_leaves_every_part_in_the_mode_it_was_in():
    model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Linear(64, 32)).train()
    model[1].eval()  # frozen, as in fine-tuning
    compress(model, "8bit", calibration=normal(8, 64), force=True)
    assert [each.training for each in model.modules()] == [True, True, False, True]
