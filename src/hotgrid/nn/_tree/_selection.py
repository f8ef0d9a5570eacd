"""`select`: the nodes of an expression; if there are none, the error shows what is there."""

from collections.abc import Iterator, Sequence
from typing import overload

from torch import nn

from hotgrid.errors import ArgumentError

from ._evaluate import nodes_of
from ._nearest import nearest
from ._node import Node, Tree, tree
from ._query import Query


class Selection(Sequence[Node]):
    """The nodes that an expression selects, in document order; never empty.

    Attributes:
        expression: The expression.
        tree: The tree that it was applied to.
    """

    __slots__ = ("_nodes", "expression", "tree")

    def __init__(self, tree: Tree, expression: str, nodes: Sequence[Node]) -> None:
        self.tree = tree
        self.expression = expression
        self._nodes = tuple(nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    @overload
    def __getitem__(self, place: int) -> Node: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Node]: ...
    def __getitem__(self, place: int | slice) -> Node | Sequence[Node]:
        """Return the node at a place, or those of a slice."""
        return self._nodes[place]

    @property
    def paths(self) -> list[str]:
        """The path of each node."""
        return [node.path for node in self._nodes]

    def parameters(self) -> dict[str, nn.Parameter]:
        """All parameters at or below the nodes, by path, in document order.

        A parameter that several modules share comes once, under its first path in the
        whole tree.

        Raises:
            ArgumentError: There are no parameters, as in a selection of activations.
        """
        chosen: dict[int, Node] = {}
        covered = 0
        for node in self._nodes:
            if node.order >= covered:
                for leaf in node.parameters():
                    first = self.tree.first_of(leaf)
                    chosen[first.order] = first
                covered = node.end
        if not chosen:
            raise ArgumentError(
                f"`{self.expression}` selects {_listed(self._nodes)}: no parameter in it"
            )
        return {chosen[order].path: chosen[order].parameter for order in sorted(chosen)}

    def modules(self) -> dict[str, nn.Module]:
        """The selected modules by path, in document order; parameters are left out.

        Raises:
            ArgumentError: Only parameters are selected.
        """
        found = {node.path: node.module for node in self._nodes if not node.is_parameter}
        if not found:
            raise ArgumentError(
                f"`{self.expression}` selects {_listed(self._nodes)}: only parameters; "
                "add `/..` for the modules that have them"
            )
        return found

    def __repr__(self) -> str:
        return f"<Selection `{self.expression}`: {_listed(self._nodes)}>"


def select(module: nn.Module | Tree, expression: "str | Query") -> Selection:
    """Select modules and parameters of a module by a path expression.

    Expressions are XPath 1.0 over the tree of the module, whose types are the elements
    and whose fields are attributes: `@name`, `@index`, `@path`, `@shape`, `@rank`,
    `@size`, `@dtype`, `@trainable`. They begin above the root: `GPT/*`, `//Linear`.

    Args:
        module: A module, wrapped or not; or its tree, to select from it several times.
        expression: A text, or a `query`.

    Returns:
        The nodes, in document order.

    Raises:
        ArgumentError: The expression has an error, or it selects nothing; the message
            says where it fails and what is there.

    Example:
        >>> layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
        >>> select(layers, "//Linear[2]/*[@name='weight']").paths
        ['2.weight']
        >>> select(layers, "//Param[@rank=1]").paths
        ['0.bias', '2.bias']
    """
    grown = module if isinstance(module, Tree) else tree(module)
    text = str(expression)
    found = [node for node in nodes_of(text)(grown.document) if node.order]
    if not found:
        raise ArgumentError(nearest(grown, text))
    return Selection(grown, text, found)


def _listed(nodes: Sequence[Node], most: int = 3) -> str:
    said = ", ".join(f"{node.type} {node.path or '(root)'}" for node in nodes[:most])
    more = len(nodes) - most
    return said + (f" and {more} more" if more > 0 else "")
