"""compress with calibration: what it may be, and what no error can be measured on."""

import pytest
import torch
from torch import Tensor, nn

from hotgrid.errors import ArgumentError
from hotgrid.kernels import compress

from .gemv_cases import normal


class Two(nn.Module):
    """A model of two arguments, that names the input of a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(64, 48), nn.Linear(64, 48)

    def forward(self, x: Tensor, other: Tensor, scale: float = 1.0) -> Tensor:
        return self.first(x) + scale * self.second(input=other)


@pytest.mark.parametrize(
    ("calibration", "text"),
    [
        (torch.zeros(4, 64), "`calibration` is empty or zero everywhere"),
        (torch.zeros(0, 64), "`calibration` is empty or zero everywhere"),
        ([torch.zeros(4, 64)] * 2, "`calibration` is empty or zero everywhere"),
        (torch.full((4, 64), torch.nan), "`calibration` gives the layer inputs that are NaN"),
        (torch.full((4, 64), torch.inf), "`calibration` gives the layer inputs that are NaN"),
        ([normal(2, 64), torch.full((4, 64), torch.nan)], "inputs that are NaN or infinite"),
        ([], "`calibration` must be a tensor or several"),
        ("x", "`calibration` must be a tensor or several"),
        (7, "`calibration` must be a tensor or several"),
        ([3], "`calibration` must be a tensor or several"),
        ([(normal(1, 64), 3)], "cannot be called with `calibration` of shape"),
    ],
)
def test_what_no_error_can_be_measured_on_is_refused(calibration: object, text: str):
    """It would pass any form: nothing is wrong where nothing is asked."""
    for force in (False, True):
        with pytest.raises(ArgumentError, match=text):
            compress(nn.Linear(64, 300), form="rows", calibration=calibration, force=force)


def test_a_model_that_is_called_with_zeros_is_refused_too():
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 32))  # biases: the second sees more
    with pytest.raises(ArgumentError, match="zero everywhere"):
        compress(model, calibration=torch.zeros(4, 64))
    with pytest.raises(ArgumentError, match="`calibration` gives `1` inputs that are NaN"):
        model[0].bias.data.fill_(torch.nan)
        compress(model, calibration=normal(4, 64))


def test_a_layer_that_sees_zeros_is_measured_without(capsys: pytest.CaptureFixture[str]):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 300))
    model[0].bias.data.fill_(-1e3)  # every unit is dead
    found = compress(model, form="int8", calibration=normal(8, 64))
    assert found.get_submodule("2").error == compress(model[2], form="int8").error > 0
    assert "`calibration` gives `2` nothing but zeros" in capsys.readouterr().err
    with pytest.raises(ArgumentError, match=r"`rows` has a relative error of 0\.\d+ on `2`"):
        compress(model, form="rows", calibration=normal(8, 64))


def test_inputs_that_are_mostly_zero_are_measured_on_the_others():
    sparse = torch.zeros(2000, 64)
    sparse[777] = normal(64)
    with pytest.raises(ArgumentError, match="form `rows` has a relative error of"):
        layer = nn.Linear(64, 2000, bias=False)
        layer.weight.data = normal(2000, 64)
        compress(layer, form="rows", calibration=sparse)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_the_size_of_inputs_does_not_matter(size: float):
    layer, x = nn.Linear(64, 48), normal(16, 64)
    plain, scaled = (compress(layer, "2bit", "pq", each, 9) for each in (x, x * size))
    assert torch.equal(plain.codes, scaled.codes)
    assert scaled.error == pytest.approx(plain.error, rel=0.02)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_models_of_several_arguments(named: bool, several: bool):
    torch.manual_seed(0)
    model, x, other = Two(), normal(16, 64), normal(16, 64, seed=1)
    other[:, 1::2] = 0  # half of the columns do not matter
    batch = {"x": x, "other": other, "scale": 2.0} if named else (x, other)
    calibration = [batch, batch] if several or not named else batch
    found = compress(model, "2bit", "pq", calibration, 9).second
    exact = other @ model.second.weight.detach().T
    right = compress(model.second, "2bit", "pq", other, 9)
    assert found.error == pytest.approx(right.error, rel=0.05)
    assert (other @ found.coded.decoded().T - exact).norm() < 0.9 * (
        other @ compress(model.second, "2bit", "pq", max_error=9).coded.decoded().T - exact
    ).norm()


def test_ids_may_all_be_zero():
    model = nn.Sequential(nn.Embedding(4, 64), nn.Linear(64, 48))
    found = compress(model, "8bit", calibration=torch.zeros(5, dtype=torch.int64))
    assert found[1].form == "int8"  # pyright: ignore[reportIndexIssue]
    with pytest.raises(ArgumentError, match="zero everywhere"):
        compress(nn.Linear(64, 48), calibration=torch.zeros(4, 64))
