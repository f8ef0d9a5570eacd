"""Under torch.compile a contract leaves no trace: no graph break, no operator."""

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from hotgrid.contracts import (
    Contract,
    ContractError,
    PeriodicContract,
    assert_shape,
    assert_shape_periodically,
    checked,
    unpack_shape,
)

pytestmark = pytest.mark.compiles

WINDOWS = Contract("b (h p) (w p) c")
IMAGE = PeriodicContract("b h w c")


@checked(x="b (h win) (w win) c", bind="win", returns="n win win c")
def partition(x, win):
    b, h, w, c = x.shape
    x = x.reshape(b, h // win, win, w // win, win, c)
    return x.swapaxes(2, 3).reshape(-1, win, win, c)


def everything(x):
    b, h, c = WINDOWS.unpack(("b", "h", "c"), x, {"p": 4})
    found = WINDOWS.check(x.shape, {"p": 4})
    IMAGE.check(x)
    assert_shape("b h w 3", x)
    assert_shape_periodically("b h w 3", x)
    halves = unpack_shape("b (h p) (w p) c", x, {"p": 2})
    if WINDOWS.try_check(x, {"p": 5}):
        x = x + 100
    if WINDOWS.try_unpack("h", x, {"p": 2}):
        x = x + 1
    return partition(x, 4) * h + found["w"] + halves[1] + b * c


@pytest.mark.parametrize("dynamic", [False, True])
def test_no_graph_break(dynamic):
    torch._dynamo.reset()
    compiled = torch.compile(everything, backend="eager", fullgraph=True, dynamic=dynamic)
    for shape in ((2, 8, 12, 3), (3, 16, 20, 3)):
        x = torch.randn(shape)
        torch.testing.assert_close(compiled(x), everything(x), rtol=0, atol=0)


def test_dynamic_sizes_stay_dynamic():
    torch._dynamo.reset()
    compiles = CompileCounter()
    contract = Contract("b (h p) c")

    @torch.compile(backend=compiles, fullgraph=True, dynamic=True)
    def scaled(x):
        h, c = contract.unpack("h c", x, {"p": 4})
        return x * h + c

    for shape in ((2, 8, 3), (5, 12, 7), (9, 40, 11)):
        x = torch.randn(shape)
        torch.testing.assert_close(scaled(x), x * (shape[1] // 4) + shape[2])
    assert compiles.frame_count == 1


def test_checked_functions_stay_dynamic():
    torch._dynamo.reset()
    compiles = CompileCounter()

    @checked(x="b (h p) c", bind="p", returns="b h 5")
    def pooled(x, p=4):
        return x[:, ::4, :1].expand(-1, -1, 5) + 0

    compiled = torch.compile(pooled, backend=compiles, fullgraph=True, dynamic=True)
    for shape in ((2, 8, 3), (5, 12, 7), (9, 40, 11)):
        assert compiled(torch.zeros(shape)).shape == (shape[0], shape[1] // 4, 5)
    assert compiles.frame_count == 1


def test_nothing_of_the_contract_reaches_the_graph():
    torch._dynamo.reset()
    graphs = []

    def look(graph, inputs):
        graphs.append([node.target for node in graph.graph.nodes if node.op == "call_function"])
        return graph

    @torch.compile(backend=look, fullgraph=True)
    def doubled(x):
        WINDOWS.check(x, {"p": 4})
        return x * 2

    doubled(torch.zeros(2, 8, 12, 3))
    assert len(graphs) == 1
    assert len(graphs[0]) == 1


def test_a_mismatch_still_raises():
    torch._dynamo.reset()

    @torch.compile(backend="eager")
    def checks(x):
        WINDOWS.check(x, {"p": 4})
        return x

    with pytest.raises(ContractError, match="no whole number `h` gives 9"):
        checks(torch.zeros(2, 9, 12, 3))
