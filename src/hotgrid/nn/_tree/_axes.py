"""The axes of a path: which nodes a step reaches, in the order that positions count.

An axis is a function of one node. Where positions do not matter, a step from many nodes
takes `reached` instead, which visits no node twice.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter

from ._node import Node

Axis = Callable[[Node], Sequence[Node]]

_order = attrgetter("order")


def _descendants(node: Node) -> Sequence[Node]:
    return node._tree.nodes[node.order + 1 : node.end]


def _subtree(node: Node) -> Sequence[Node]:
    return node._tree.nodes[node.order : node.end]


def _itself(node: Node) -> Sequence[Node]:
    return (node,)


def _parent(node: Node) -> Sequence[Node]:
    return () if node._parent is None else (node._parent,)


def _ancestors(node: Node) -> Sequence[Node]:
    found = []
    above = node._parent
    while above is not None:
        found.append(above)
        above = above._parent
    return found


def _ancestors_and_itself(node: Node) -> Sequence[Node]:
    return [node, *_ancestors(node)]


def _siblings_after(node: Node) -> Sequence[Node]:
    siblings = () if node._parent is None else node._parent.children
    return siblings[bisect_right(siblings, node.order, key=_order) :]


def _siblings_before(node: Node) -> Sequence[Node]:
    siblings = () if node._parent is None else node._parent.children
    return siblings[: bisect_left(siblings, node.order, key=_order)][::-1]


def _following(node: Node) -> Sequence[Node]:
    return node._tree.nodes[node.end :]


def _preceding(node: Node) -> Sequence[Node]:
    before = node._tree.nodes[: node.order]
    return [each for each in reversed(before) if each.end <= node.order]


AXES: dict[str, Axis] = {
    "child": lambda node: node.children,
    "descendant": _descendants,
    "descendant-or-self": _subtree,
    "self": _itself,
    "parent": _parent,
    "ancestor": _ancestors,
    "ancestor-or-self": _ancestors_and_itself,
    "following-sibling": _siblings_after,
    "preceding-sibling": _siblings_before,
    "following": _following,
    "preceding": _preceding,
}


def reached(axis: str, contexts: Sequence[Node]) -> Sequence[Node]:
    """All nodes that an axis reaches from nodes in document order, in document order."""
    if axis == "self":
        return contexts
    follow = AXES[axis]
    if len(contexts) == 1 and axis not in _REVERSED:
        return follow(contexts[0])
    starts = _FEWER[axis](contexts) if axis in _FEWER else contexts
    found = [node for start in starts for node in follow(start)]
    return found if axis in _DISJOINT else in_document_order(found)


def in_document_order(nodes: Sequence[Node]) -> list[Node]:
    """The nodes sorted, each once."""
    return sorted(set(nodes), key=_order)


_REVERSED = {"ancestor", "ancestor-or-self", "preceding-sibling", "preceding"}


def _outermost(contexts: Sequence[Node]) -> list[Node]:
    """Those that are in the subtree of no other."""
    found: list[Node] = []
    for node in contexts:
        if not found or node.order >= found[-1].end:
            found.append(node)
    return found


def _first_of_each_parent(contexts: Sequence[Node]) -> list[Node]:
    return list({id(node._parent): node for node in reversed(contexts)}.values())


def _last_of_each_parent(contexts: Sequence[Node]) -> list[Node]:
    return list({id(node._parent): node for node in contexts}.values())


# Nodes that reach all that others reach too.
_FEWER: dict[str, Callable[[Sequence[Node]], list[Node]]] = {
    "descendant": _outermost,
    "descendant-or-self": _outermost,
    "following-sibling": _first_of_each_parent,
    "preceding-sibling": _last_of_each_parent,
    "following": lambda contexts: [min(contexts, key=lambda node: node.end)],
    "preceding": lambda contexts: [contexts[-1]],
}
_DISJOINT = {"descendant", "descendant-or-self", "following"}
