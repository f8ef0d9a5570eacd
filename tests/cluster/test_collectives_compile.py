"""Every collective inside torch.compile: one graph, same values and gradients."""

import pytest
import torch

from hotgrid.cluster import (
    HaloExchange,
    SingleRank,
    all_gather,
    all_reduce,
    all_to_all,
    halo_exchange,
    reduce_scatter,
    run_ranks,
)

from .collective_cases import CASES, HALO

pytestmark = pytest.mark.compiles


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def results(call, x):
    x = x.clone().requires_grad_()
    out = call(x)
    weight = torch.linspace(1, 2, max(1, out.numel()), dtype=torch.float64)[: out.numel()]
    (weight.reshape(out.shape) * out.sin()).sum().backward()
    return out.detach(), x.grad


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] * (number % 2))
        for number, name in enumerate(CASES)
    ],
)
def test_compiled_is_eager(name):
    case = CASES[name]

    def rank(c):
        torch.manual_seed(c.rank)
        x = torch.rand(case.shape(c.rank), dtype=torch.float64)
        if name == "halo_exchange":
            halo = HaloExchange(c, **HALO)
            call = lambda x: halo_exchange(2 * x, halo)
        else:
            call = lambda x: case.collective(2 * x, c)
        compiled = torch.compile(call, fullgraph=True, backend="aot_eager", dynamic=False)
        return [*results(call, x), *results(compiled, x)]

    for out, grad, compiled_out, compiled_grad in run_ranks(4, rank):
        assert torch.equal(out, compiled_out)
        assert torch.equal(grad, compiled_grad)


@pytest.mark.parametrize("collective", [reduce_scatter, all_to_all, all_gather, all_reduce])
def test_a_second_size_makes_sizes_open(collective):
    def rank(c):
        compiled = torch.compile(
            lambda x: collective(x, c), fullgraph=True, backend="aot_eager"
        )
        xs = [torch.arange(float(n)) + c.rank for n in (6, 8, 10)]
        return [(compiled(x), collective(x, c)) for x in xs]

    for found in run_ranks(2, rank):
        for compiled, eager in found:
            assert torch.equal(compiled, eager)


def test_torch_accepts_the_operators():
    """Schema, fake shapes, gradients and tracing, as torch checks its own."""
    alone = SingleRank()
    halo = HaloExchange(alone, "1x1", (4, 3), (2, 1))
    x = torch.rand(4, 3, dtype=torch.float64, requires_grad=True)
    wide = torch.rand(*halo.padded.size, dtype=torch.float64, requires_grad=True)
    calls = {
        "all_reduce": (x, "max", alone.name),
        "all_gather": (x, 1, [3], alone.name),
        "reduce_scatter": (x, 1, [3], alone.name),
        "all_to_all": (x, 0, 1, [4], [3], alone.name),
        "broadcast": (x, 0, alone.name),
        "reduce": (x, 0, alone.name),
        "permute": (x, [0], alone.name),
        "extend": (x, halo.name),
        "fold": (wide, halo.name),
    }
    for name, args in calls.items():
        found = torch.library.opcheck(getattr(torch.ops.hotgrid, name).default, args)
        assert set(found.values()) == {"SUCCESS"}, name


def test_inductor_keeps_collectives_and_code_around_them_in_one_graph():
    def rank(c):
        halo = HaloExchange(c, "2", (6, 4), 1)

        def step(x):
            wide = halo_exchange(x, halo).sin()
            return wide[2:] * wide[:-2] + all_reduce(x.sum(), c, "mean")

        torch.manual_seed(c.rank)
        x = torch.rand(halo.block.size, dtype=torch.float64)
        compiled = torch.compile(step, fullgraph=True, dynamic=False)
        return [*results(step, x), *results(compiled, x)]

    for out, grad, compiled_out, compiled_grad in run_ranks(2, rank):
        torch.testing.assert_close(out, compiled_out, rtol=1e-14, atol=1e-14)
        torch.testing.assert_close(grad, compiled_grad, rtol=1e-14, atol=1e-14)
