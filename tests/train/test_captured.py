"""Steps that are launched as one graph, with a graph of Python in place of one of CUDA."""

from typing import Any

import torch
from torch import nn

from hotgrid.train import Muon, groups
from hotgrid.train._optimizers._captured import Captured
from hotgrid.train._optimizers._stacked import _Stack


class Again:
    """Repeats what was captured."""

    def __init__(self, captured: Captured, seen: list[int]) -> None:
        self._captured, self._seen = captured, seen

    def replay(self) -> None:
        self._seen.append(1)
        self._captured._update()


def net() -> nn.Sequential:
    torch.manual_seed(0)
    layers = [nn.Linear(6, 10), nn.Linear(10, 6), nn.Linear(6, 10)]
    return nn.Sequential(*layers, nn.Conv2d(2, 4, 3).to(memory_format=torch.channels_last))


def trained(graphs: bool) -> list[torch.Tensor]:
    module = net()
    spec = Muon(
        rate=lambda step: 0.1 / (1 + step),
        momentum=lambda step: 0.9 + step / 1000,
        decay=0.1,
        variance=0.9,
        compiled=graphs,
    )
    made = groups(module, {"//Param[@rank>1]": spec}, rest="frozen")
    generator = torch.Generator().manual_seed(1)
    for step in range(8):
        for p in module.parameters():
            p.grad = torch.randn(p.shape, generator=generator)
        if step == 3:
            module[0].get_parameter("weight").grad = None
        if step == 5:  # it moves
            moved = module[1].get_parameter("weight")
            moved.data = moved.data.clone()
        made.apply(step)
        made.step()
    return [p.detach() for p in module.parameters()]


def test_the_same_with_a_graph(monkeypatch):
    plain = trained(graphs=False)
    seen: list[int] = []

    def capture(self: Captured) -> Any:
        graph: Any = Again(self, seen)
        self._graph = graph
        return graph

    monkeypatch.setattr(Captured, "_capture", capture)
    monkeypatch.setattr(_Stack, "capturable", property(lambda self: bool(self._numbers)))
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    found = trained(graphs=True)
    # Two steps to warm up, at the beginning and after a parameter has moved; one without.
    assert len(seen) == 3
    for a, b in zip(plain, found, strict=True):
        torch.testing.assert_close(a, b)
