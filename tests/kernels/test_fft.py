"""Transforms: torch's meaning, the tuned images, gradients, transforms, errors."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from hotgrid import kernels
from hotgrid.config import override
from hotgrid.errors import ArgumentError, DimensionError
from hotgrid.kernels import OPS, irfft2, rfft2
from hotgrid.kernels.fft import IRFFT2, RFFT2

from .fft_cases import nested
from .gemv_cases import normal

ONE = ("fft", "ifft", "rfft", "irfft")
TWO = ("fft2", "ifft2", "rfft2", "irfft2")
ANY = ("fftn", "ifftn", "rfftn", "irfftn")
NORMS = (None, "backward", "ortho", "forward")


def complex_normal(*shape: int) -> Tensor:
    return torch.view_as_complex(normal(*shape, 2).double())


def input_of(name: str, *shape: int) -> Tensor:
    return normal(*shape).double() if name.startswith("r") else complex_normal(*shape)


def same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("norm", NORMS)
def test_one_dim_is_torchs(name: str, norm: str | None):
    x = input_of(name, 4, 5, 6)
    for dim in (0, -1, 1):
        for n in (None, 1, 4, 7):
            found = getattr(kernels, name)(x, n, dim, norm)
            same(found, getattr(torch.fft, name)(x, n, dim, norm))


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("norm", NORMS)
def test_two_dims_are_torchs(name: str, norm: str | None):
    x = input_of(name, 3, 4, 5, 6)
    for dim in ((-2, -1), (0, 1), (3, 1), (2, 0)):
        for s in (None, (3, 8), (7, 1), (-1, 5)):
            found = getattr(kernels, name)(x, s, dim, norm)
            same(found, getattr(torch.fft, name)(x, s, dim, norm))


@pytest.mark.parametrize("name", ANY)
def test_any_number_of_dims_is_torchs(name: str):
    x = input_of(name, 3, 4, 5, 6)
    calls = [(None, None), ((3, 4), None), ((5, 3, 2), (3, 0, 1)), (None, (-1,)), (7, 1)]
    for s, dim in calls:
        found = getattr(kernels, name)(x, s, dim)
        several = lambda v: (v,) if isinstance(v, int) else v
        same(found, getattr(torch.fft, name)(x, several(s), several(dim)))


@pytest.mark.parametrize("height", [1, 2, 5, 8])
@pytest.mark.parametrize("width", [1, 2, 7, 12])
def test_the_references_are_the_definition(height: int, width: int):
    """Against sums of waves, written out."""
    x = normal(2, height, width).double()
    steps = lambda n: torch.arange(n, dtype=torch.float64)
    wave = lambda n: torch.exp(torch.outer(steps(n), steps(n)) * (-2j * math.pi / n))
    whole = wave(height) @ x.to(torch.complex128) @ wave(width)
    spectrum = RFFT2.reference(x, "backward")
    same(spectrum, whole[..., : width // 2 + 1])
    same(IRFFT2.reference(spectrum, width, "backward"), x)
    same(RFFT2.reference(x, "forward") * (height * width), spectrum)
    same(RFFT2.reference(x, "ortho") * math.sqrt(height * width), spectrum)


@pytest.mark.parametrize("name", RFFT2.names)
def test_every_candidate_there_and_back(name: str):
    x = normal(3, 2, 6, 7)
    with override({"kernels.choose": [f"rfft2={name}", f"irfft2={name}"]}):
        torch.testing.assert_close(irfft2(rfft2(x), s=(6, 7)), x)


def test_results_lie_as_the_fakes_say():
    views = (normal(3, 8, 6), normal(3, 6, 8).mT, normal(8, 6, 3).movedim(-1, 0))
    for images in views:
        for forward, inverse in zip(RFFT2.candidates, IRFFT2.candidates, strict=True):
            spectra = forward.function(images, "backward")
            assert spectra.is_contiguous(), forward.name
            for each in (spectra, spectra.mT.contiguous().mT):
                assert inverse.function(each, 6, "backward").is_contiguous(), inverse.name


def test_images_without_numbers():
    assert rfft2(torch.empty(0, 4, 6)).shape == (0, 4, 4)
    assert irfft2(torch.empty(0, 4, 4, dtype=torch.complex64)).shape == (0, 4, 6)
    assert rfft2(torch.empty(2, 0, 6), s=(3, 4)).equal(torch.zeros(2, 3, 3) + 0j)


def test_whole_numbers_become_real_ones_as_in_torch():
    x = torch.arange(12).reshape(3, 4)
    assert rfft2(x).equal(torch.fft.rfft2(x))


@pytest.mark.parametrize("width", [4, 5])
@pytest.mark.parametrize("norm", NORMS)
def test_gradients_are_those_of_torch(width: int, norm: str | None):
    x = normal(2, 3, width).double().requires_grad_()
    z = complex_normal(2, 3, width // 2 + 1).requires_grad_()
    forward = lambda x: rfft2(x, norm=norm)
    inverse = lambda z: irfft2(z, s=(3, width), norm=norm)
    for function, value in ((forward, x), (inverse, z)):
        assert torch.autograd.gradcheck(function, value)
        assert torch.autograd.gradgradcheck(function, value)


@pytest.mark.parametrize("width", [6, 7])
def test_the_gradient_comes_from_the_operator(width: int):
    """gradcheck looks at a few directions; this is torch's own gradient, number by number."""
    x = normal(2, 4, width).double().requires_grad_()
    weights = complex_normal(2, 4, width // 2 + 1)
    ours, theirs = (
        torch.autograd.grad((f(x) * weights).abs().square().sum(), x)[0]
        for f in (rfft2, torch.fft.rfft2)
    )
    same(ours, theirs)
    assert rfft2(x).grad_fn is not None
    assert "hotgrid" in str(type(rfft2(x).grad_fn)) + rfft2(x).grad_fn.name()


def test_the_operators_keep_torchs_rules():
    x, z = normal(2, 3, 6).requires_grad_(), complex_normal(2, 3, 4).requires_grad_()
    for operator, arguments in (
        (torch.ops.hotgrid.rfft2.default, (x, "ortho")),
        (torch.ops.hotgrid.irfft2.default, (z, 6, "backward")),
    ):
        done = torch.library.opcheck(
            operator,
            arguments,
            test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
        )
        assert set(done.values()) == {"SUCCESS"}


def test_vmap_and_function_transforms():
    x = normal(3, 4, 6).double()
    same(torch.vmap(rfft2)(x), torch.fft.rfft2(x))
    size = lambda v: rfft2(v).abs().square().sum()
    theirs = lambda v: torch.fft.rfft2(v).abs().square().sum()
    same(torch.func.grad(size)(x[0]), torch.func.grad(theirs)(x[0]))
    stacked = x[:, None]
    registered = torch.vmap(lambda v: torch.ops.hotgrid.rfft2.default(v, "backward"))
    same(registered(stacked), torch.fft.rfft2(stacked))
    back = torch.vmap(lambda v: torch.ops.hotgrid.irfft2.default(v, 6, "backward"), in_dims=1)
    same(back(torch.fft.rfft2(stacked)), stacked.transpose(0, 1))


@pytest.mark.parametrize("name", RFFT2.names)
def test_autocast_changes_nothing(name: str):
    x = normal(5, 4, 6)
    with override({"kernels.choose": [f"rfft2={name}", f"irfft2={name}"]}):
        expected, watched = rfft2(x), x.clone().requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(rfft2(x), expected)
            assert torch.equal(rfft2(watched), expected)
            found = irfft2(expected)
            (gradient,) = torch.autograd.grad(rfft2(watched).abs().sum(), watched)
        assert torch.equal(found, irfft2(expected))
        (right,) = torch.autograd.grad(torch.fft.rfft2(watched).abs().sum(), watched)
    torch.testing.assert_close(gradient, right)


def test_tensors_without_data_get_results_without_data(capsys: pytest.CaptureFixture[str]):
    x = torch.empty(3, 8, 6, device="meta")
    spectrum = rfft2(x)
    assert (spectrum.shape, spectrum.dtype) == ((3, 8, 4), torch.complex64)
    assert irfft2(spectrum).shape == x.shape
    assert spectrum.is_meta and irfft2(spectrum).is_meta
    assert capsys.readouterr().err == ""


@pytest.mark.compiles
def test_one_graph_with_the_same_results():
    torch.compiler.reset()

    def blurred(x: Tensor) -> Tensor:
        spectrum = rfft2(x, norm="ortho")
        return irfft2(spectrum * 0.5, s=x.shape[-2:], norm="ortho")

    compiled = torch.compile(blurred, backend="aot_eager", fullgraph=True, dynamic=True)
    for width in (6, 9):
        x = normal(2, 4, width).requires_grad_()
        torch.testing.assert_close(compiled(x), x * 0.5)
        (gradient,) = torch.autograd.grad(compiled(x).sum(), x)
        torch.testing.assert_close(gradient, torch.full_like(x, 0.5))
    torch.compiler.reset()


REAL, HALF = torch.ones(4, 6), torch.ones(4, 6).half()


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: rfft2([1.0]), ArgumentError, "`x` must be a tensor, got list"),
        (lambda: rfft2(REAL.to_sparse()), ArgumentError, "`x` has the layout torch.sparse_coo"),
        (lambda: irfft2(REAL.to_sparse()), ArgumentError, "use `x.to_dense"),
        (lambda: kernels.fft(REAL.to_mkldnn()), ArgumentError, "`x` has the layout torch._mk"),
        (lambda: rfft2(nested()), ArgumentError, "`x` is a nested tensor"),
        (
            lambda: rfft2(REAL + 0j),
            ArgumentError,
            "`x` is torch.complex64; a transform of real",
        ),
        (lambda: kernels.rfft(REAL + 0j), ArgumentError, "use the name without the `r`"),
        (lambda: rfft2(HALF), ArgumentError, "`x` is torch.float16, .* outside of a GPU"),
        (lambda: kernels.fft(REAL.bfloat16()), ArgumentError, "`x` is torch.bfloat16"),
        (lambda: rfft2(REAL, norm="orth"), ArgumentError, "`norm` is 'orth'.* mean 'ortho'"),
        (lambda: rfft2(REAL, s=(0, 4)), ArgumentError, "`s` is 0 for dim 0; expected at least"),
        (lambda: rfft2(REAL, s=(4,)), ArgumentError, r"`s` \(4,\) has 1 lengths for 2 dims"),
        (lambda: rfft2(REAL, s=(4, 2.5)), ArgumentError, "`s` must be made of whole numbers"),
        (lambda: rfft2(REAL, dim=(0, 0)), ArgumentError, r"`dim` \(0, 0\) must name dims"),
        (lambda: rfft2(REAL, dim=(0,)), ArgumentError, "must name 2 dims"),
        (lambda: kernels.fftn(REAL, dim=()), ArgumentError, r"`dim` \(\) must name dims"),
        (lambda: rfft2(REAL, dim=(0, 2)), DimensionError, "no dim `2` in rank 2"),
        (lambda: rfft2(torch.ones(3)), DimensionError, "no dim `-2` in rank 1"),
        (lambda: kernels.fft(REAL, n=0), ArgumentError, "`n` is 0 for dim 1"),
        (lambda: kernels.fft(REAL, n=True), ArgumentError, "whole numbers, got True"),
        (lambda: kernels.fft(REAL, dim=2), DimensionError, "no dim `2`"),
        (lambda: kernels.fft(torch.empty(0)), ArgumentError, "has 0 numbers along dim 0"),
        (lambda: kernels.irfft(REAL[:, :1]), ArgumentError, "has 0 numbers along .* give `n`"),
        (lambda: kernels.irfft(torch.empty(0)), ArgumentError, "is empty along dim 0"),
        (lambda: kernels.fftn(REAL, s=(2, 2, 2)), ArgumentError, "`s` .* more lengths than"),
    ],
)
def test_wrong_arguments_are_named(call: Any, kind: type, text: str):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("name", ["rfft2", "irfft2"])
def test_samples_and_excerpts(name: str):
    op = OPS[name].op
    sample = lambda *shape, dtype=torch.float32: op.sample(
        shape, dtype, torch.device("cpu"), norm="backward"
    )
    arguments = sample(5, 2, 8, 6)
    assert op.describe(*arguments).sizes == {"count": 10, "height": 8, "width": 6}
    assert op.work(op.describe(*arguments)).bytes == 10 * 8 * (6 + 2 * 4) * 4
    assert op.excerpt(*arguments)[0] is arguments[0]
    many = sample(9000, 32, 32)
    assert 1000 < op.excerpt(*many)[0].shape[0] < 9000
    with pytest.raises(ArgumentError, match="must end with a height and a width"):
        sample(8)
    with pytest.raises(ArgumentError, match="tuned in float32 and float64"):
        sample(8, 8, dtype=torch.float16)


def test_a_comparison_says_what_differs():
    x = normal(2, 4, 6)
    right = RFFT2.reference(x, "backward")
    assert RFFT2.compare(right, right, x, "backward") is None
    wrong = right.clone()
    wrong[1, 2, 0] += 1e-3
    assert "the error is" in (RFFT2.compare(right, wrong, x, "backward") or "")
    wrong[1, 2, 0] = float("nan")
    assert "the error is inf" in (RFFT2.compare(right, wrong, x, "backward") or "")
    assert "should be" in (RFFT2.compare(right, right.to(torch.complex128), x, "") or "")
    spoilt = x.clone()
    spoilt[0, 0, 0] = float("nan")
    expected = RFFT2.reference(spoilt, "backward")
    assert RFFT2.compare(expected, expected, spoilt, "backward") is None
    assert "do not show" in (RFFT2.compare(expected, right, spoilt, "backward") or "")
