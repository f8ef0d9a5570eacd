"""Every module that `hotgrid.nn` exports, taken up from the package, through the same battery.

A module enters by being exported; how it is made and called is in `CASES`.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hotgrid.nn as blocks
from hotgrid.errors import ContractError
from hotgrid.nn import materialize, tree

IMAGE, HEADS, SEQUENCE = (2, 3, 6, 8), (2, 3, 5, 8), (2, 5, 8)


@dataclass(frozen=True)
class Case:
    """How a module is made, on a device; a shape that it takes, and one that it refuses."""

    make: Callable[..., nn.Module]
    shape: tuple[int, ...] = SEQUENCE
    wrong: tuple[int, ...] = (2, 5, 7)
    random: bool = False


def attention(device: str | None = None, **options: Any) -> nn.Module:
    rotary = blocks.Rotary(4, 16, device=device)
    options = {"kv_heads": 1, "qk_norm": "rms", "rotary": rotary, **options}
    return blocks.Attention(8, 2, device=device, **options)


CASES = {
    "Activation": Case(lambda device=None: blocks.Activation("gelu"), wrong=()),
    "Attention": Case(attention),
    "Attention, plain": Case(lambda **o: blocks.Attention(8, 2, bias=True, **o)),
    "DropBlock2d": Case(lambda device=None: blocks.DropBlock2d(0.3, 3), IMAGE, random=True),
    "DropPath": Case(lambda device=None: blocks.DropPath(0.5), wrong=(), random=True),
    "Head": Case(lambda **o: blocks.Head(8, 11, **o)),
    "LayerNorm": Case(lambda **o: blocks.LayerNorm(8, **o)),
    "MLP": Case(lambda **o: blocks.MLP(8, 16, **o)),
    "MLP, gated": Case(lambda **o: blocks.MLP(8, 16, "swiglu", **o)),
    "RMSNorm": Case(lambda **o: blocks.RMSNorm(8, **o)),
    "RMSNorm, plain": Case(lambda **o: blocks.RMSNorm(8, learned=False, **o)),
    "Rotary": Case(lambda **o: blocks.Rotary(8, 16, **o), HEADS, (2, 3, 5, 7)),
    "Rotary, interleaved": Case(
        lambda **o: blocks.Rotary(8, 16, interleaved=True, **o), HEADS, (2, 3, 5, 7)
    ),
}
EXPORTED = {
    name: value
    for name, value in vars(blocks).items()
    if inspect.isclass(value) and issubclass(value, nn.Module)
}
cases = pytest.mark.parametrize("name", CASES)
quiet = pytest.mark.parametrize("name", [name for name in CASES if not CASES[name].random])


def made(name: str, dtype: torch.dtype = torch.float64) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(0)
    module = CASES[name].make().to(dtype)
    return module, torch.randn(CASES[name].shape, dtype=torch.float64).to(dtype)


def test_every_exported_module_has_a_case():
    assert {name.partition(",")[0] for name in CASES} == set(EXPORTED)
    for name, case in CASES.items():
        assert type(case.make()) is EXPORTED[name.partition(",")[0]]


@quiet
def test_gradients_are_those_of_differences(name: str):
    module, x = made(name)
    names, values = dict(module.named_parameters()), [*module.parameters()]

    def call(x: Tensor, *values: Tensor) -> Tensor:
        given = dict(zip(names, values, strict=True))
        return torch.func.functional_call(module, given, (x,)).to(torch.float64)

    inputs = (x[:1].requires_grad_(), *values)
    assert torch.autograd.gradcheck(call, inputs, fast_mode=True)


@quiet
def test_bfloat16_is_close_to_float64(name: str):
    module, x = made(name)
    wanted = module(x)
    found = module.to(torch.bfloat16)(x.to(torch.bfloat16))
    assert found.dtype in (torch.bfloat16, torch.float32)
    assert found.isfinite().all()
    error = (found.double() - wanted).norm() / wanted.norm()
    assert error < 0.03


@pytest.mark.slow
@cases
def test_compiled_is_the_same_in_one_graph(name: str):
    torch._dynamo.reset()
    module, x = made(name, torch.float32)
    x.requires_grad_()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    torch.manual_seed(1)
    out = compiled(x)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    torch.manual_seed(1)
    wanted = module(x)
    torch.testing.assert_close(out, wanted)
    torch.testing.assert_close(gradient, torch.autograd.grad(wanted.sum(), x)[0])


@cases
def test_it_can_be_made_without_memory_and_filled_later(name: str):
    module = CASES[name].make(device="meta")
    assert all(each.is_meta for each in (*module.parameters(), *module.buffers()))
    assert [node.path for node in tree(module)] == [node.path for node in tree(made(name)[0])]
    materialize(module, "cpu")
    assert all(each.isfinite().all() for each in (*module.parameters(), *module.buffers()))
    module(made(name, torch.float32)[1])


@cases
def test_it_is_the_same_after_its_state_is_loaded(name: str):
    module, x = made(name)
    torch.manual_seed(7)
    other = CASES[name].make().to(torch.float64)
    other.load_state_dict(module.state_dict())
    torch.manual_seed(1)
    wanted = module(x)
    torch.manual_seed(1)
    assert torch.equal(other(x), wanted)


@cases
def test_evaluating_does_not_depend_on_chance(name: str):
    module, x = made(name)
    module.eval()
    assert torch.equal(module(x), module(x))


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n].wrong])
def test_a_wrong_shape_is_an_error_that_names_it(name: str):
    module, _ = made(name)
    with pytest.raises(ContractError, match=r"\b7\b"):
        module(torch.ones(CASES[name].wrong, dtype=torch.float64))
