"""The tree of a model as a table in colours, and as plain data."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from hotgrid.nn import Node, Tree

_COLOURS = {"Param": "dim"}
# By the number of dimensions of a parameter: what optimizers distinguish.
_SHAPE_COLOURS = {0: "red", 1: "yellow", 2: "green"}


def table_of(nodes: Iterable["Node"], *, guides: bool) -> Table:
    """The table; with guides the first column shows the nesting."""
    table = Table(box=None, pad_edge=False)
    for heading in ("type", "path", "shape", "dtype", "parameters"):
        table.add_column(
            heading, no_wrap=True, justify="right" if heading == "parameters" else "left"
        )
    for node in nodes:
        colour = "dim" if node.is_parameter else "bold cyan" if node.children else "cyan"
        kind = Text(_guides(node) if guides else "", style="dim")
        kind.append(node.type, style=colour)
        shape, style = "", ""
        if node.is_parameter:
            shape = "lazy" if node.shape is None else " x ".join(map(str, node.shape)) or "1"
            style = _SHAPE_COLOURS.get(node.rank or 0, "magenta")
        elements = elements_of([node])
        table.add_row(
            kind,
            Text(node.path, style="" if node.trainable is not False else "strike"),
            Text(shape, style=style),
            Text("" if node.dtype is None else _dtype(node), style="dim"),
            Text(f"{elements:,}" if elements else ""),
        )
    return table


def summary_of(tree: "Tree", chosen: Sequence["Node"] | None) -> list[str]:
    """The lines below the table: what was selected, types, and totals."""
    whole = total_of([tree.root])
    lines = []
    if chosen is not None:
        some = total_of(chosen)
        share = some["parameters"] / whole["parameters"] if whole["parameters"] else 0
        lines.append(
            f"Selected {len(chosen):,} nodes: {some['parameters']:,} parameters in "
            f"{some['tensors']:,} tensors, {share:.2%} of all."
        )
    types = Counter(node.type for node in tree if not node.is_parameter)
    lines.append(", ".join(f"{count:,} {name}" for name, count in types.most_common()))
    frozen = whole["parameters"] - whole["trainable"]
    lines.append(
        f"{tree.root.type}: {whole['parameters']:,} parameters in {whole['tensors']:,} tensors "
        f"({_bytes(whole['bytes'])}), {frozen:,} frozen, {sum(types.values()):,} modules."
    )
    return lines


def total_of(nodes: Iterable["Node"]) -> dict[str, int]:
    """Parameters at or below nodes; shared ones count once."""
    leaves = {id(leaf.parameter): leaf for node in nodes for leaf in node.parameters()}
    known = [leaf for leaf in leaves.values() if leaf.size is not None]
    return {
        "tensors": len(leaves),
        "parameters": sum(leaf.size or 0 for leaf in known),
        "trainable": sum(leaf.size or 0 for leaf in known if leaf.trainable),
        "bytes": sum((leaf.size or 0) * leaf.parameter.element_size() for leaf in known),
    }


def elements_of(nodes: Iterable["Node"]) -> int:
    """The number of elements of parameters at or below nodes."""
    return total_of(nodes)["parameters"]


def plain(node: "Node") -> dict[str, Any]:
    """A node for JSON."""
    return {
        "type": node.type,
        "path": node.path,
        "name": node.name,
        "index": node.index,
        "shape": None if node.shape is None else list(node.shape),
        "dtype": None if node.dtype is None else _dtype(node),
        "trainable": node.trainable,
        "parameters": elements_of([node]),
    }


def _guides(node: "Node") -> str:
    """The lines of a tree in front of a node."""
    parts: list[str] = []
    inner, outer = node, node.parent
    while outer is not None:
        last = outer.children[-1] is inner
        if inner is node:
            parts.append("└─ " if last else "├─ ")
        else:
            parts.append("   " if last else "│  ")
        inner, outer = outer, outer.parent
    return "".join(reversed(parts))


def _dtype(node: "Node") -> str:
    return str(node.dtype).removeprefix("torch.")


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
