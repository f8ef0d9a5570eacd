"""Optimizers against torch's own and against a few lines of numpy."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from hotgrid.errors import ArgumentError
from hotgrid.train import SGD, AdamW, Lion, Muon, OptimizerSpec, groups

POLAR = np.array(
    [
        (8.1566, -22.4833, 15.8788),
        (4.0429, -2.8089, 0.5000),
        (3.8917, -2.7725, 0.5061),
        (3.2858, -2.3681, 0.4645),
        (2.3465, -1.7098, 0.4232),
    ]
)
SCHULZ = np.array([(3.4445, -4.7750, 2.0315)] * 5)


def model(dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 10), nn.Linear(10, 10), nn.LayerNorm(10)).to(dtype)


def set_gradients(*models: nn.Module, seed: int) -> None:
    for each in models:
        generator = torch.Generator().manual_seed(seed)
        for p in each.parameters():
            p.grad = torch.randn(p.shape, generator=generator).to(p.dtype)


TORCH = {
    "AdamW": (
        AdamW(rate=0.03, betas=(0.8, 0.95), eps=1e-10, decay=0.1),
        lambda p, **how: torch.optim.AdamW(
            p, lr=0.03, betas=(0.8, 0.95), eps=1e-10, weight_decay=0.1, **how
        ),
    ),
    "SGD": (SGD(rate=0.03), lambda p, **how: torch.optim.SGD(p, lr=0.03, **how)),
    "SGD momentum": (
        SGD(rate=0.03, momentum=0.9, nesterov=True, decay=0.1),
        lambda p, **how: torch.optim.SGD(
            p, lr=0.03, momentum=0.9, nesterov=True, weight_decay=0.1, **how
        ),
    ),
}
HOW = {
    "fused": {"fused": True},
    "foreach": {"foreach": True},
    "plain": {"foreach": False, "fused": False},
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", TORCH)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_equal_to_torch_to_the_bit(name, how, dtype):
    spec, make = TORCH[name]
    ours, theirs = model(dtype), model(dtype)
    mine = groups(ours, {}, rest=replace(spec, implementation=how))
    other = make(theirs.parameters(), **HOW[how])
    for step in range(5):
        set_gradients(ours, theirs, seed=step)
        mine.step()
        other.step()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(p, q)


@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_clipping_is_torchs_to_the_bit(limit):
    ours, theirs = model(), model()
    set_gradients(ours, theirs, seed=0)
    norm = groups(ours, {}, rest=AdamW(rate=0.1, clip=limit)).clip()["rest"]
    expected = torch.nn.utils.clip_grad_norm_(theirs.parameters(), limit)
    assert torch.equal(norm, expected)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)


def polynomials(x, coefficients):
    for a, b, c in coefficients:
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x


def adamw_twin(p, g, s, t):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0) + 0.001 * g**2
    step = s["m"] / (1 - 0.9**t) / (np.sqrt(s["v"] / (1 - 0.999**t)) + 1e-8)
    return p - 0.03 * (step + 0.1 * p)


def sgd_twin(p, g, s, t):
    s["m"] = 0.9 * s.get("m", 0) + g + 0.1 * p
    return p - 0.03 * s["m"]


def lion_twin(p, g, s, t):
    m = s.get("m", 0)
    s["m"] = 0.99 * m + 0.01 * g
    return p - 0.03 * (np.sign(0.9 * m + 0.1 * g) + 0.1 * p)


def muon_twin(p, g, s, t):
    s["m"] = 0.95 * s.get("m", 0) + 0.05 * g
    u = 0.95 * s["m"] + 0.05 * g
    u = polynomials(u / np.linalg.norm(u) / 1.01, POLAR)
    return p - 0.03 * (np.sqrt(max(1, p.shape[0] / p.shape[1])) * u + 0.1 * p)


def schulz_twin(p, g, s, t):
    s["m"] = 0.95 * s.get("m", 0) + 0.05 * g
    u = polynomials(s["m"] / np.linalg.norm(s["m"]), SCHULZ)
    return p - 0.03 * (0.2 * np.sqrt(max(p.shape)) * u + 0.1 * p)


def normuon_twin(p, g, s, t):
    s["m"] = 0.95 * s.get("m", 0) + 0.05 * g
    u = 0.95 * s["m"] + 0.05 * g
    u = polynomials(u / np.linalg.norm(u) / 1.01, POLAR)
    axis = 1 if p.shape[0] >= p.shape[1] else 0
    s["v"] = 0.9 * s.get("v", 0) + 0.1 * (u**2).mean(axis, keepdims=True)
    w = u / np.sqrt(s["v"])
    u = w * np.linalg.norm(u) / np.linalg.norm(w)
    return p - 0.03 * (np.sqrt(max(1, p.shape[0] / p.shape[1])) * u + 0.1 * p * (u * p >= 0))


def fitted_twin(p, g, s, t):
    s["m"] = 0.95 * s.get("m", 0) + 0.05 * g
    u = 0.95 * s["m"] + 0.05 * g
    u = u / np.linalg.norm(u, axis=1, keepdims=True)
    u = polynomials(u / np.linalg.norm(u) / 1.01, POLAR)
    u = u / np.linalg.norm(u) * np.sqrt(min(u.shape))
    return p - 0.03 * (u + 0.1 * p)


both = {"rate": 0.03, "decay": 0.1}
TWINS = {
    "AdamW": (AdamW(**both), adamw_twin),
    "SGD": (SGD(**both, momentum=0.9), sgd_twin),
    "Lion": (Lion(**both), lion_twin),
    "Muon": (Muon(**both, compute="float64"), muon_twin),
    "Muon by Newton and Schulz": (
        Muon(**both, method="newton-schulz", nesterov=False, scale="rms", compute="float64"),
        schulz_twin,
    ),
    "NorMuon, cautious": (
        Muon(**both, variance=0.9, cautious=True, compute="float64"),
        normuon_twin,
    ),
    "Muon with rows and norm fitted": (
        Muon(**both, equilibrate=True, renormalise=True, scale="none", compute="float64"),
        fitted_twin,
    ),
}


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("shape", [(6, 6), (8, 5), (5, 8)], ids=str)
def test_equal_to_a_few_lines_of_numpy(name, shape):
    spec, twin = TWINS[name]
    rng = np.random.default_rng(0)
    p = rng.standard_normal(shape)
    layer = nn.Module()
    layer.weight = nn.Parameter(torch.tensor(p))
    optimizer = groups(layer, {}, rest=spec)
    state = {}
    for t in range(1, 6):
        g = rng.standard_normal(shape)
        layer.weight.grad = torch.tensor(g)
        optimizer.step()
        p = twin(p, g, state, t)
    # The facts give the coefficients of the polynomials with four digits.
    rounded = getattr(spec, "method", "") == "polar-express"
    tolerance = 1e-4 if rounded else 1e-9
    np.testing.assert_allclose(layer.weight.detach().numpy(), p, rtol=0, atol=tolerance)


def update_of(spec: OptimizerSpec, gradient: torch.Tensor) -> torch.Tensor:
    """The first update, for a rate of 1 and a parameter of zeros."""
    layer = nn.Module()
    layer.weight = nn.Parameter(torch.zeros_like(gradient))
    layer.weight.grad = gradient.clone()
    groups(layer, {}, rest=spec).step()
    return -layer.weight.detach()


def of_condition(rows: int, columns: int, condition: float) -> torch.Tensor:
    torch.manual_seed(0)
    u, _, v = torch.linalg.svd(torch.randn(rows, columns, dtype=torch.float64), False)
    values = torch.logspace(0, -np.log10(condition), min(rows, columns), dtype=torch.float64)
    return ((u * values) @ v).float()


@pytest.mark.parametrize("shape", [(48, 48), (96, 32), (32, 96)], ids=str)
@pytest.mark.parametrize(
    ("method", "compute", "low", "high"),
    [
        ("polar-express", "float32", 0.85, 1.15),
        ("polar-express", "bfloat16", 0.85, 1.16),
        ("newton-schulz", "float32", 0.65, 1.25),
    ],
)
def test_updates_are_nearly_orthogonal(shape, method, compute, low, high):
    """Singular values from 1 to 1/30 all end near 1, and singular vectors stay."""
    gradient = of_condition(*shape, condition=30)
    spec = Muon(rate=1.0, method=method, compute=compute, scale="none")
    update = update_of(spec, gradient)
    values = torch.linalg.svdvals(update)
    assert low < values.min() and values.max() < high
    u, _, v = torch.linalg.svd(gradient, full_matrices=False)
    polar = u @ v
    cosine = (update * polar).sum() / update.norm() / polar.norm()
    assert cosine > 0.97


def test_a_convolution_is_a_matrix():
    torch.manual_seed(0)
    gradient = torch.randn(6, 3, 2, 2)
    spec = Muon(rate=1.0, variance=0.9)
    found = update_of(spec, gradient)
    assert torch.equal(found.flatten(1), update_of(spec, gradient.flatten(1)))
    channels_last = gradient.to(memory_format=torch.channels_last)
    assert torch.equal(update_of(spec, channels_last), found)


@pytest.mark.parametrize("shape", [(64, 64), (96, 32), (32, 96)], ids=str)
def test_torchs_muon_ends_at_the_same_place(shape):
    """torch iterates in bfloat16, so both are as far from each other as that rounds."""
    torch.manual_seed(0)
    ours, theirs = nn.Module(), nn.Module()
    ours.weight = nn.Parameter(torch.randn(shape))
    theirs.weight = nn.Parameter(ours.weight.detach().clone())
    start = ours.weight.detach().clone()
    spec = Muon(rate=0.02, decay=0.1, method="newton-schulz", compute="bfloat16")
    mine = groups(ours, {}, rest=spec)
    other = torch.optim.Muon(theirs.parameters(), lr=0.02, weight_decay=0.1)
    for _ in range(5):
        ours.weight.grad = torch.randn(shape)
        theirs.weight.grad = ours.weight.grad.clone()
        mine.step()
        other.step()
    moved = (theirs.weight - start).norm()
    assert (ours.weight - theirs.weight).norm() < 0.02 * moved


@pytest.mark.long
@pytest.mark.compiles
def test_compiled_equals_plain():
    def ended(compiled: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        net = nn.Sequential(*(nn.Linear(8, 8, bias=False) for _ in range(3)))
        everything = {"variance": 0.9, "cautious": True, "equilibrate": True}
        spec = Muon(
            rate=lambda step: 0.1 / (1 + step), decay=0.1, compiled=compiled, **everything
        )
        optimizer = groups(net, {}, rest=spec)
        for step in range(4):
            set_gradients(net, seed=step)
            optimizer.apply(step)
            optimizer.step()
        return [p.detach() for p in net.parameters()]

    for found, expected in zip(ended(True), ended(False), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"method": "newton"}, "did you mean `newton-schulz`"),
        ({"steps": 6}, "polar-express has 1 to 5"),
        ({"scale": "rmse"}, "did you mean `rms`"),
        ({"compute": "float16"}, "did you mean `bfloat16`"),
        ({"variance": 1.0}, "`variance` of Muon is 1.0"),
    ],
)
def test_wrong_settings_are_refused(settings, said):
    with pytest.raises(ArgumentError, match=said):
        Muon(rate=0.1, **settings)


def test_a_wrong_implementation_is_refused():
    for kind in (AdamW, SGD):
        with pytest.raises(ArgumentError, match="did you mean `fused`"):
            kind(rate=0.1, implementation="fuse")


@pytest.mark.parametrize("kind", [AdamW, Lion])
@pytest.mark.parametrize("betas", [(0.9, 1.0), (-0.1, 0.9), (0.9,), 0.9])
def test_betas_out_of_range_are_refused(kind, betas):
    with pytest.raises(ArgumentError, match=f"`betas` of {kind.__name__}"):
        kind(rate=0.1, betas=betas)


@pytest.mark.parametrize("eps", [-1e-8, math.nan, "small"])
def test_a_wrong_eps_is_refused(eps):
    with pytest.raises(ArgumentError, match="`eps` of AdamW is"):
        AdamW(rate=0.1, eps=eps)
