"""Activations, norms, MLPs, heads and dropped parts, each against a twin of a few lines."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, strategies as st
from torch import Tensor, nn

from hotgrid.errors import ArgumentError, ContractError
from hotgrid.nn import (
    ACTIVATIONS,
    INITIALIZERS,
    MLP,
    NORMS,
    Activation,
    Attention,
    DropBlock2d,
    DropPath,
    Head,
    Init,
    LayerNorm,
    Norm,
    RMSNorm,
    Rotary,
    drop_path_rates,
    initialize,
    materialize,
    softcap,
)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


FUNCTIONS = {
    "relu": lambda x: max(x, 0),
    "relu2": lambda x: max(x, 0) ** 2,
    "leaky_relu": lambda x: x if x > 0 else 0.01 * x,
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: (
        x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
    ),
    "silu": lambda x: x * sigmoid(x),
    "mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "softplus": lambda x: math.log1p(math.exp(x)),
    "tanh": math.tanh,
    "sigmoid": sigmoid,
    "hardswish": lambda x: x * min(max(x + 3, 0), 6) / 6,
    "identity": lambda x: x,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_is_its_formula(name: str):
    x = torch.linspace(-4, 4, 33, dtype=torch.float64)
    wanted = torch.tensor([FUNCTIONS[name](each) for each in x.tolist()], dtype=x.dtype)
    torch.testing.assert_close(Activation(name)(x), wanted)


@pytest.mark.parametrize("learned", [True, False])
def test_rms_norm_is_its_formula(learned: bool):
    x, norm = drawn(2, 3, 5), RMSNorm(5, eps=0.1, learned=learned).double()
    wanted = x / (x.square().mean(-1, keepdim=True) + 0.1).sqrt()
    if learned:
        nn.init.normal_(norm.weight)
        wanted = wanted * norm.weight
    torch.testing.assert_close(norm(x), wanted)
    assert len(list(norm.parameters())) == learned


@pytest.mark.parametrize(("learned", "bias"), [(True, True), (True, False), (False, True)])
def test_layer_norm_is_its_formula(learned: bool, bias: bool):
    x, norm = drawn(4, 5), LayerNorm(5, eps=0.1, learned=learned, bias=bias).double()
    centred = x - x.mean(-1, keepdim=True)
    wanted = centred / (centred.square().mean(-1, keepdim=True) + 0.1).sqrt()
    if learned:
        nn.init.normal_(norm.weight)
        wanted = wanted * norm.weight
    if learned and bias:
        nn.init.normal_(norm.bias)
        wanted = wanted + norm.bias
    torch.testing.assert_close(norm(x), wanted)


def test_the_mean_of_a_norm_is_taken_in_full_precision():
    x = torch.full((1, 4096), 300.0, dtype=torch.float16)  # the sum of squares overflows
    torch.testing.assert_close(RMSNorm(4096)(x), torch.ones_like(x))
    assert RMSNorm(8)(drawn(2, 8).bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("name", NORMS)
def test_norms_go_by_name(name: str):
    norm = Norm(name, {"groups": 2} if name == "group" else {})(4)
    x = drawn(2, 4, 3, 4).float()
    out = norm(x)
    assert out.shape == x.shape
    axes = {"rms": -1, "rms_plain": -1, "layer": -1, "batch2d": (0, 2, 3)}.get(name)
    if axes is not None:
        torch.testing.assert_close(
            out.square().mean(axes),
            torch.ones(()).expand(out.square().mean(axes).shape),
            rtol=1e-3,
            atol=1e-3,
        )


@pytest.mark.parametrize("name", ["relu2", "gelu", "swiglu", "geglu", "reglu", "glu"])
def test_an_mlp_is_its_formula(name: str):
    torch.manual_seed(0)
    mlp, x = MLP(4, 6, name, bias=True).double(), drawn(2, 3, 4)
    up = x @ mlp.up.weight.T + mlp.up.bias
    inner = {"swiglu": "silu", "geglu": "gelu", "reglu": "relu", "glu": "sigmoid"}.get(name)
    if inner:
        gate = x @ mlp.gate.weight.T + mlp.gate.bias
        hidden = gate.detach().clone().apply_(FUNCTIONS[inner]) * up
    else:
        hidden = up.detach().clone().apply_(FUNCTIONS[name])
    torch.testing.assert_close(mlp(x), hidden @ mlp.down.weight.T + mlp.down.bias)


def test_the_dropout_of_an_mlp_is_for_training():
    mlp, x = MLP(4, 6, dropout=0.5), drawn(2, 4).float()
    assert not torch.equal(mlp(x), mlp(x))
    mlp.eval()
    assert torch.equal(mlp(x), mlp.down(mlp.activation(mlp.up(x))))


@given(st.floats(-1e4, 1e4), st.floats(0.5, 50))
def test_a_softcap_is_bounded_odd_and_the_same_near_zero(x: float, cap: float):
    (found,) = softcap(torch.tensor([x], dtype=torch.float64), cap).tolist()
    assert abs(found) <= cap
    assert found == -softcap(torch.tensor([-x], dtype=torch.float64), cap).item()
    assert found == pytest.approx(cap * math.tanh(x / cap))
    assert softcap(torch.tensor(x), None) == torch.tensor(x)


@pytest.mark.parametrize("cap", [None, 2.0])
@pytest.mark.parametrize("chunk", [1, 4, 5, 100])
def test_the_loss_in_chunks_is_the_loss_of_all_logits(cap: float | None, chunk: int):
    torch.manual_seed(0)
    head, x = Head(6, 9, cap=cap, bias=True).double(), drawn(2, 5, 6).requires_grad_()
    targets = torch.tensor([[0, 8, -100, 3, 3], [-100, 1, 2, 7, 4]])
    wanted = F.cross_entropy(head(x).flatten(0, 1), targets.flatten())
    found = head.loss(x, targets, chunk=chunk)
    inputs = (x, *head.parameters())
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(
        torch.autograd.grad(found, inputs), torch.autograd.grad(wanted, inputs)
    )


def test_the_loss_in_chunks_keeps_no_logits():
    head, x = Head(4, 1000), drawn(1, 64, 4).float().requires_grad_()
    kept = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        head.loss(x, torch.zeros(1, 64, dtype=torch.int64), chunk=8)
    assert max(kept, default=0) < 8 * 1000


def test_logits_are_capped_in_float32():
    head = Head(4, 8, cap=3.0).bfloat16()
    logits = head(1000 * drawn(2, 5, 4).bfloat16())
    assert logits.dtype == torch.float32
    assert logits.abs().max() <= 3.0


def test_drop_path_drops_whole_samples_and_keeps_the_mean():
    torch.manual_seed(0)
    drop, x = DropPath(0.25), torch.ones(4000, 2, 3)
    out = drop(x)
    per_sample = out.flatten(1)
    assert torch.equal(per_sample, per_sample[:, :1].expand_as(per_sample))
    torch.testing.assert_close(out.unique(), torch.tensor([0.0, 4 / 3]))
    share = (per_sample[:, 0] == 0).double().mean().item()
    assert abs(share - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 4000)
    assert DropPath(0.25, scale=False)(x).max() == 1
    assert drop.eval()(x) is x


def test_rates_of_drop_path_grow_linearly():
    assert drop_path_rates(0.3, 4) == pytest.approx([0, 0.1, 0.2, 0.3])
    assert drop_path_rates(0.3, 1) == [0]


def blocks_of(points: Tensor, size: int) -> Tensor:
    """What is kept if a block lies around each point, drawn one by one."""
    kept = torch.ones_like(points)
    height, width = points.shape
    for y, x in points.nonzero().tolist():
        top, left = max(y - size // 2, 0), max(x - size // 2, 0)
        bottom, right = y - size // 2 + size, x - size // 2 + size
        kept[top : min(bottom, height), left : min(right, width)] = 0
    return kept


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("edges", [False, True])
def test_drop_block_drops_blocks_around_points(size: int, edges: bool, monkeypatch):
    torch.manual_seed(0)
    drawn_points = []
    rand = torch.rand
    monkeypatch.setattr(
        torch, "rand", lambda *a, **k: drawn_points.append(rand(*a, **k)) or drawn_points[-1]
    )
    drop, x = DropBlock2d(0.3, size, edges=edges), torch.ones(1, 1, 9, 12)
    kept = drop.kept(x)[0, 0]
    chance = 0.3 * 9 * 12 / size**2 / ((9 - size + 1) * (12 - size + 1))
    points = (drawn_points[0][0, 0] < chance).float()
    whole = torch.zeros(9, 12)
    begin = 0 if edges else size // 2
    whole[begin : begin + points.shape[0], begin : begin + points.shape[1]] = points
    assert points.any()
    assert torch.equal(kept, blocks_of(whole, size))


def test_drop_block_keeps_the_mean_and_drops_about_its_rate():
    torch.manual_seed(0)
    drop, x = DropBlock2d(0.1, 5), torch.ones(32, 8, 32, 32)
    out = drop(x)
    assert out.mean().item() == pytest.approx(1, abs=1e-5)
    assert 0.05 < (out == 0).double().mean().item() < 0.12
    assert drop.eval()(x) is x


def test_drop_block_shares_blocks_over_channels_and_samples():
    torch.manual_seed(0)
    x = torch.ones(3, 4, 16, 16)
    both = DropBlock2d(0.3, 3, coupled=True, batchwise=True)(x)
    assert torch.equal(both, both[:1, :1].expand_as(both))
    coupled = DropBlock2d(0.3, 3, coupled=True)(x)
    assert torch.equal(coupled, coupled[:, :1].expand_as(coupled))
    assert not torch.equal(coupled[0], coupled[1])
    small = DropBlock2d(0.5, 7)(torch.ones(1, 1, 3, 3))
    assert small.shape == (1, 1, 3, 3)


SPREADS = {
    "normal": lambda scale, inputs, outputs: scale,
    "uniform": lambda scale, inputs, outputs: scale / math.sqrt(3),
    "fan_in_normal": lambda scale, inputs, outputs: scale / math.sqrt(inputs),
    "fan_in_uniform": lambda scale, inputs, outputs: scale / math.sqrt(inputs),
    "fan_out_normal": lambda scale, inputs, outputs: scale / math.sqrt(outputs),
    "xavier": lambda scale, inputs, outputs: scale * math.sqrt(2 / (inputs + outputs)),
    # Of a normal distribution that is cut at twice its standard deviation.
    "truncated": lambda scale, inputs, outputs: scale * 0.87962566103423978,
    "orthogonal": lambda scale, inputs, outputs: scale / math.sqrt(max(inputs, outputs)),
    "zeros": lambda scale, inputs, outputs: 0,
    "constant": lambda scale, inputs, outputs: 0,
}


@pytest.mark.parametrize("name", INITIALIZERS)
def test_an_initialiser_has_the_spread_it_promises(name: str):
    for shape, inputs, outputs in [((300, 400), 400, 300), ((100, 50, 3, 3), 450, 900)]:
        parameter = torch.empty(shape)
        Init(name, 0.5).fill(parameter, torch.Generator().manual_seed(0))
        wanted = SPREADS[name](0.5, inputs, shape[0] if name == "orthogonal" else outputs)
        assert parameter.std().item() == pytest.approx(wanted, rel=0.02)
        assert parameter.mean().item() == pytest.approx(
            0.5 if name == "constant" else 0, abs=0.01
        )


def test_initialising_by_selection_depends_on_seed_and_path_only():
    rules = {"//Param": "zeros", "//*[@name='weight']": Init("normal", 0.1)}
    first, second = MLP(4, 8), MLP(4, 8)
    assert initialize(first, rules, seed=3) == []
    initialize(second, {"//Linear[@name='down']/*": Init("normal", 0.1)}, seed=3)
    assert torch.equal(first.down.weight, second.down.weight)
    assert not torch.equal(first.up.weight, second.up.weight)
    initialize(second, rules, seed=4)
    assert not torch.equal(first.down.weight, second.down.weight)
    left = initialize(MLP(4, 8, bias=True), {"//*[@name='weight']": "orthogonal"})
    assert left == ["up.bias", "down.bias"]
    with pytest.raises(ArgumentError, match="selects nothing"):
        initialize(first, {"//Liner": "zeros"})
    with pytest.raises(ArgumentError, match=r"`up\.weight` is on the meta device"):
        initialize(MLP(4, 8, device="meta"), {"//Param": "zeros"})
    with pytest.raises(
        ArgumentError, match=r"`bias` cannot be `xavier`.*shape \[8\] has no fan"
    ):
        initialize(nn.Linear(4, 8), {"//Param": "xavier"})


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("orthogonal", "`bias` cannot be `orthogonal`: Only tensors with 2"),
        (Init("normal", -1.0), "`weight` cannot be `normal`: .* std -1"),
        (2, "rule of `//Param` is 2; expected an `Init`"),
    ],
)
def test_an_initialiser_that_does_not_suit_is_named(rule, text):
    with pytest.raises(ArgumentError, match=text):
        initialize(nn.Linear(2, 2), {"//Param": rule})


def test_a_module_of_the_meta_device_becomes_the_one_made_at_once():
    def made(device: str) -> Any:
        rotary = Rotary(4, 8, device=device)
        return nn.ModuleDict(
            {"a": Attention(8, 2, rotary=rotary, qk_norm="rms", device=device),
             "n": LayerNorm(8, device=device)}
        )  # fmt: skip

    torch.manual_seed(0)
    wanted = made("cpu")
    torch.manual_seed(0)
    found: Any = materialize(made("meta"), "cpu")
    assert found.state_dict().keys() == wanted.state_dict().keys()
    for (path, one), (_, other) in zip(
        found.named_parameters(), wanted.named_parameters(), strict=True
    ):
        assert torch.equal(one, other), path
    assert torch.equal(found["a"].rotary.cos, wanted["a"].rotary.cos)

    class Bare(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.empty(2, device="meta"))

    with pytest.raises(ArgumentError, match="Bare `0` has no `reset_parameters`"):
        materialize(nn.Sequential(Bare()), "cpu")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Activation("relu3"), "did you mean `relu`? (there are relu, relu2,"),
        (lambda: MLP(2, 3, "swigul"), "did you mean `swiglu`"),
        (lambda: Norm("rsm"), "there is no norm `rsm`"),
        (lambda: Init("normall"), "did you mean `normal`"),
        (lambda: DropPath(1.0), "got 1.0"),
        (lambda: DropBlock2d(-0.1), "got -0.1"),
        (lambda: DropBlock2d(0.1, 0), "got 0"),
        (lambda: Head(2, 3, cap=0.0), "above 0"),
        (lambda: Head(2, 3).loss(torch.ones(1, 1, 2), torch.ones(1, 1), chunk=0), "`chunk`"),
    ],
)
def test_wrong_arguments_are_named(make, words: str):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert words in str(caught.value)


@pytest.mark.parametrize("block", [RMSNorm(4), LayerNorm(4), MLP(4, 8), Head(4, 8)])
def test_shapes_are_checked(block: nn.Module):
    with pytest.raises(ContractError, match="size"):
        block(torch.ones(2, 5))


def test_drop_block_sums_in_float32():
    """More elements than float16 can count."""
    dropped = DropBlock2d(0.1, 7)(torch.ones(8, 16, 32, 32, dtype=torch.float16))
    assert dropped.dtype == torch.float16
    assert 0.9 < float(dropped.float().mean()) < 1.1


def test_materialize_keeps_shared_parameters_shared():
    embedding = torch.nn.Embedding(4, 3, device="meta")
    head = torch.nn.Linear(3, 4, bias=False, device="meta")
    head.weight = embedding.weight
    materialize(torch.nn.ModuleList([embedding, head]), "cpu")
    assert embedding.weight is head.weight
    assert embedding.weight.device.type == "cpu"
