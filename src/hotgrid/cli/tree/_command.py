"""`hotgrid tree`: show, count and select the modules and parameters of a model."""

from json import dumps
from typing import Annotated

from cyclopts import Parameter

from hotgrid.cli._terminal import Terminal
from hotgrid.cli._whole_number import WholeNumber
from hotgrid.errors import ArgumentError


def tree(
    model: str,
    /,
    *,
    select: str | None = None,
    depth: WholeNumber = None,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", metavar="NAME=VALUE")] = (),
    json: bool = False,
) -> int:
    """Show the modules and parameters of a model, count them, and try an expression.

    Args:
        model: A class or function that gives a torch.nn.Module: package.module:factory
            or file.py:factory.
        select: Show only what this path expression selects, such as "//Linear".
        depth: The greatest depth to show; the root has depth 0.
        set_: One argument of the factory; repeatable.
        json: Print one JSON object instead of a table.
    """
    if depth is not None and depth < 0:
        raise ArgumentError(f"`--depth` must be at least 0, got {depth}")
    from ._factory import built

    module = built(model, set_)
    from hotgrid import nn

    from ._text import plain, summary_of, table_of, total_of

    grown = nn.tree(module)
    chosen = None if select is None else list(nn.select(grown, select))
    shown = [
        node
        for node in (grown if chosen is None else chosen)
        if depth is None or (node.path.count(".") + 1 if node.path else 0) <= depth
    ]
    console = Terminal(highlight=False)
    if json:
        totals = {"model": model, "root": grown.root.type, **total_of([grown.root])}
        if chosen is not None:
            totals["select"] = {"expression": select, **total_of(chosen)}
        found = {**totals, "nodes": [plain(node) for node in shown]}
        console.out(dumps(found, indent=2), highlight=False)
        return 0
    if shown:
        console.for_tables().print(table_of(shown, guides=chosen is None))
    for line in summary_of(grown, chosen):
        console.print(line, style="dim", markup=False, soft_wrap=True)
    return 0
