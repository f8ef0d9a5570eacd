"""`tree`: a module and its parameters as nodes, in the order of `state_dict`."""

import gc
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import overload

import torch
from torch import nn

from hotgrid.errors import ArgumentError

from ._wrappers import Kind, kind_of

PARAMETER = "Param"


class Node:
    """A module, or a parameter of one.

    Attributes:
        type: The name of the class, such as `Linear`; `Param` for a parameter.
        key: Its name in the parent: a field name, or the number in a list.
        name: The field name; None for the root and for members of a list.
        parent: The node that has it; None for the root.
        children: Parameters first, then modules, both in order of registration.
    """

    __slots__ = (
        *("_held", "_parent", "_path", "_tree", "children"),
        *("end", "key", "name", "order", "type"),
    )

    def __init__(
        self,
        tree: "Tree",
        held: "nn.Module | nn.Parameter | None",
        type_name: str,
        key: str,
        parent: "Node | None",
        order: int,
    ) -> None:
        self._tree = tree
        self._held = held
        self.type = type_name
        self.key = key
        self.name: str | None = key
        self._parent = parent
        self.order = order  # in the document; a subtree is `order` to `end`
        self.end = order + 1
        self.children: Sequence[Node] = ()
        self._path: str | None = None

    @property
    def parent(self) -> "Node | None":
        """The node of the module that has it; None for the root."""
        parent = self._parent
        return None if parent is None or parent.order == 0 else parent

    @property
    def index(self) -> int | None:
        """The number in a `ModuleList`, `Sequential` or `ParameterList`, from 0."""
        return int(self.key) if self.name is None and self.key else None

    @property
    def path(self) -> str:
        """The key in `state_dict()` of the module without wrappers; empty for the root."""
        parent = self._parent
        if parent is None or self.order == 1:
            return ""
        if self._path is None:
            above = parent.path
            path = f"{above}.{self.key}" if above else self.key
            if not self.children:
                return path
            self._path = path  # those below need it again
        return self._path

    @property
    def is_parameter(self) -> bool:
        """Whether it is a parameter; otherwise it is a module."""
        return isinstance(self._held, torch.Tensor)

    @property
    def parameter(self) -> nn.Parameter:
        """The parameter itself.

        Raises:
            ArgumentError: It is a module.
        """
        if not isinstance(self._held, torch.Tensor):
            raise ArgumentError(f"{self!r} is a module and has no `parameter`; use `module`")
        return self._held

    @property
    def module(self) -> nn.Module:
        """The module itself, without wrappers.

        Raises:
            ArgumentError: It is a parameter.
        """
        if not isinstance(self._held, nn.Module):
            raise ArgumentError(f"{self!r} is a parameter and has no `module`")
        return self._held

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of a parameter; None for a module and for a lazy parameter."""
        held = self._held
        if not isinstance(held, torch.Tensor) or nn.parameter.is_lazy(held):
            return None
        return tuple(held.shape)

    @property
    def rank(self) -> int | None:
        """The number of dimensions of a parameter; None as for `shape`."""
        shape = self.shape
        return None if shape is None else len(shape)

    @property
    def size(self) -> int | None:
        """The number of elements of a parameter; None as for `shape`."""
        return None if self.shape is None else self.parameter.numel()

    @property
    def dtype(self) -> torch.dtype | None:
        """The dtype of a parameter; None for a module."""
        return self.parameter.dtype if self.is_parameter else None

    @property
    def trainable(self) -> bool | None:
        """Whether a parameter takes gradients; None for a module."""
        return self.parameter.requires_grad if self.is_parameter else None

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes that expressions see, as text."""
        found = ((name, read(self)) for name, read in ATTRIBUTES.items())
        return {name: value for name, value in found if value is not None}

    def parameters(self) -> "Iterator[Node]":
        """The nodes of all parameters at or below it, in document order."""
        below = self._tree.nodes[self.order : self.end]
        return (node for node in below if isinstance(node._held, torch.Tensor))

    def __repr__(self) -> str:
        shape = "" if self.shape is None else f" {list(self.shape)}"
        return f"<{self.type} {self.path or '(root)'}{shape}>"


class Tree:
    """The nodes of a module, in document order; `root` is the module itself."""

    __slots__ = ("_firsts", "nodes")

    def __init__(self, module: nn.Module) -> None:
        kinds: dict[type, Kind] = {}
        document = Node(self, None, "", "", None, 0)
        self.nodes: list[Node] = [document]
        with _without_collector():
            document.children = [_grow(self, module, "", document, kinds)]
        document.name = self.root.name = None
        document.end = len(self.nodes)
        self._firsts: dict[int, Node] | None = None

    @property
    def root(self) -> Node:
        """The node of the module."""
        return self.nodes[1]

    @property
    def document(self) -> Node:
        """Where expressions begin: the root is its only child."""
        return self.nodes[0]

    def __len__(self) -> int:
        return len(self.nodes) - 1

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes[1:])

    @overload
    def __getitem__(self, place: int) -> Node: ...
    @overload
    def __getitem__(self, place: slice) -> list[Node]: ...
    def __getitem__(self, place: int | slice) -> Node | list[Node]:
        """Return the node at a place in document order; the root is at 0."""
        return self.nodes[1:][place]

    def first_of(self, leaf: Node) -> Node:
        """Where the parameter of a node comes first; another place if modules share it."""
        if self._firsts is None:
            self._firsts = {}
            for each in self.root.parameters():
                self._firsts.setdefault(id(each._held), each)
        return self._firsts[id(leaf._held)]

    def xml(self) -> str:
        """The same tree as an XML document, for other XPath engines and for viewers."""
        parts: list[str] = []
        _write(self.root, parts)
        return "".join(parts)

    def __repr__(self) -> str:
        parameters = sum(1 for _ in self.root.parameters())
        return f"<Tree of {self.root.type}: {len(self)} nodes, {parameters} parameters>"


def tree(module: nn.Module) -> Tree:
    """Return the tree of a module: its type, fields, paths and the shapes of parameters.

    Wrappers of `torch.compile`, DDP, FSDP2, activation checkpoints and averaged models are
    left out, so that paths stay those of the module itself. Buffers are not nodes.

    Args:
        module: Any module, on any device, also `meta`.

    Example:
        >>> [node.path for node in tree(nn.Sequential(nn.Linear(2, 3)))]
        ['', '0', '0.weight', '0.bias']

    Raises:
        ArgumentError: It is not a module.
    """
    if not isinstance(module, nn.Module):
        raise ArgumentError(f"`module` must be a torch.nn.Module, got {type(module).__name__}")
    return Tree(module)


def _grow(
    tree: Tree, module: nn.Module, key: str, parent: Node, kinds: dict[type, Kind]
) -> Node:
    """Add the node of a module and all below it; a shared module comes at each place."""
    kind = kinds.get(type(module)) or kinds.setdefault(type(module), kind_of(type(module)))
    while kind.inner is not None:
        module = getattr(module, kind.inner)
        kind = kinds.get(type(module)) or kinds.setdefault(type(module), kind_of(type(module)))
    nodes = tree.nodes
    order = len(nodes)
    node = Node(tree, module, kind.type, key, parent, order)
    children: list[Node] = []
    for name, parameter in module._parameters.items():
        if parameter is not None:
            order += 1
            children.append(Node(tree, parameter, PARAMETER, name, node, order))
    nodes.append(node)
    nodes += children
    node.children = children
    for name, child in module._modules.items():
        if child is not None:
            children.append(_grow(tree, child, name, node, kinds))
    if kind.counts:
        for child in children:
            child.name = None if child.key.isdecimal() else child.key
    node.end = len(nodes)
    return node


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause the garbage collector, which would search all objects while many are made."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _shape(node: Node) -> str | None:
    return None if node.shape is None else " ".join(map(str, node.shape))


def _dtype(node: Node) -> str | None:
    return None if node.dtype is None else str(node.dtype).removeprefix("torch.")


def _rank(node: Node) -> int | None:
    """As the property, with a short cut for most parameters."""
    held = node._held
    return held.ndim if type(held) is nn.Parameter else node.rank


# What `@name` and its like read. The names are fixed, so that a misspelt one can be reported.
ATTRIBUTES: dict[str, Callable[[Node], str | None]] = {
    "name": lambda node: node.name,
    "index": lambda node: _text(node.index),
    "path": lambda node: node.path,
    "shape": _shape,
    "rank": lambda node: _text(node.rank),
    "size": lambda node: _text(node.size),
    "dtype": _dtype,
    "trainable": lambda node: None if node.trainable is None else str(node.trainable).lower(),
}


# Those that are numbers, so that comparing need not go through text.
NUMBERS: dict[str, Callable[[Node], int | None]] = {
    "index": lambda node: node.index,
    "rank": _rank,
    "size": lambda node: node.size,
}


def _write(node: Node, parts: list[str]) -> None:
    said = "".join(f' {name}="{_escaped(text)}"' for name, text in node.attributes.items())
    parts.append(f"<{node.type}{said}>")
    for child in node.children:
        _write(child, parts)
    parts.append(f"</{node.type}>")


def _escaped(text: str) -> str:
    return re.sub(r"[\t\n\r]", lambda found: f"&#{ord(found[0])};", escape(text))
