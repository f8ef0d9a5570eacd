"""Very large and very small vectors: the range that the docs promise."""

import pytest
import torch

from hotgrid.config import override
from hotgrid.kernels import compress, gemv

from .gemv_cases import normal

FORGIVEN = {"int8": 1e-3, "rows": 1e-3, "int4": 0.02, "pq": 0.04}
SIZES = [1e-33, 1e-30, 1.0, 1e30, 1e33]


def largest_is(size: float, *shape: int) -> torch.Tensor:
    x = normal(*shape)
    return x / x.abs().max() * size


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["core", "converted"])
def test_int8_products_hold_from_1e_33_to_1e33(name: str, size: float):
    weight = normal(300, 512)
    scale = weight.abs().amax(1) / 127
    codes = (weight / scale[:, None]).round().to(torch.int8)
    x = largest_is(size, 2, 512)
    exact = x.double() @ (codes.double() * scale.double()[:, None]).T
    with override({"kernels.choose": [f"gemv={name}"]}):
        found = gemv(codes, x, scale)
    assert (found.double() - exact).norm() < 1e-3 * exact.norm()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("form", ["rows", "pq", "int4", "int8"])
def test_layers_hold_from_1e_33_to_1e33(form: str, size: float):
    layer = compress(torch.nn.Linear(256, 128, bias=False), form=form, force=True)
    x = largest_is(size, 3, 256)
    exact = x.double() @ layer.weight.double().T
    assert (layer(x).double() - exact).norm() < FORGIVEN[form] * exact.norm()


@pytest.mark.parametrize("name", ["core", "mv", "matmul", "linear", "converted"])
def test_subnormal_numbers_are_themselves_or_zero(name: str):
    weight, x = torch.eye(64).bfloat16(), torch.full((1, 64), 2.0**-130).bfloat16()
    with override({"kernels.choose": [f"gemv={name}"]}):
        found = gemv(weight, x)
    assert torch.equal(found, x) or torch.equal(found, torch.zeros_like(x))
