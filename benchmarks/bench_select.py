"""Claim: selecting from 10,000 parameters takes under 50 ms, the tree included.

A model of 1,700 blocks on the meta device. `select` builds the tree and evaluates; beside it
what torch itself takes to list parameters, and lxml and elementpath on an XML dump that is
made and parsed beforehand. Times are of the CPU, the best of several, as nothing here waits.

    python benchmarks/bench_select.py
"""

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any
from xml.etree import ElementTree

from options import parser
from report import absent, report
from torch import nn

from hotgrid.nn import select, tree

EXPRESSIONS = (
    "GPT/*[@name='h']//Linear/*[@name='weight'][@rank=2]",
    "//Linear",
    "//Param[@rank=2]",
    "//Block[@index>=36 and @index<=39]",
    "//Linear[1]",
    "//Param[contains(@path, 'norm')]",
)


class Block(nn.Module):
    """Three modules of two parameters each."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4, device="meta")
        self.up = nn.Linear(4, 16, device="meta")
        self.down = nn.Linear(16, 4, device="meta")


class GPT(nn.Module):
    """10,201 parameters."""

    def __init__(self, blocks: int = 1700) -> None:
        super().__init__()
        self.wte = nn.Embedding(10, 4, device="meta")
        self.h = nn.ModuleList(Block() for _ in range(blocks))


def milliseconds(call: Callable[[], Any], repeats: int = 31) -> float:
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return round(min(times) * 1e3, 2)


def engines(xml: str) -> dict[str, Callable[[str], Any]]:
    found: dict[str, Callable[[str], Any]] = {}
    try:
        etree = import_module("lxml.etree")
        document = etree.ElementTree(etree.fromstring(xml))
        found["lxml"] = document.xpath
    except ImportError as problem:
        absent("lxml", problem)
    try:
        import elementpath

        plain = ElementTree.ElementTree(ElementTree.fromstring(xml))
        found["elementpath"] = lambda expression: elementpath.select(plain, expression)
    except ImportError as problem:
        absent("elementpath", problem)
    return found


def main() -> None:
    parser(__doc__, devices=("cpu",)).parse_args()
    model = GPT()
    grown = tree(model)
    peers = engines(grown.xml())
    rows: list[dict[str, Any]] = [
        {
            "what": "dict(named_parameters())",
            "ms": milliseconds(lambda: dict(model.named_parameters())),
        },
        {"what": "tree", "ms": milliseconds(lambda: tree(model))},
    ]
    for expression in EXPRESSIONS:
        absolute = expression if expression[0] == "/" else f"/{expression}"
        counts = {len(select(grown, expression)), *(len(e(absolute)) for e in peers.values())}
        assert len(counts) == 1, (expression, counts)
        row = {
            "what": expression,
            "nodes": counts.pop(),
            "ms": milliseconds(lambda e=expression: select(model, e)),
            "ms without the tree": milliseconds(lambda e=expression: select(grown, e)),
        }
        for name, evaluate in peers.items():
            repeats = 2 if name == "elementpath" else 31
            row[f"{name} ms"] = milliseconds(lambda e=absolute, f=evaluate: f(e), repeats)
        rows.append(row)
    report("select", rows, parameters=len(list(model.parameters())))


if __name__ == "__main__":
    main()
