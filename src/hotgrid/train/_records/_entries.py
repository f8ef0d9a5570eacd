"""The tensors of a module by path: parameters and persistent buffers, wrapped or not."""

from torch import Tensor, nn

from hotgrid.nn import Query, Tree, select, tree

Selector = str | Query


class Entries:
    """The tensors of a module that a record holds.

    Attributes:
        tensors: Every tensor by path; a shared one comes under each of its paths.
        first: For every path the first path of the same tensor.
    """

    def __init__(self, module: nn.Module) -> None:
        self._tree: Tree = tree(module)
        root = select(self._tree, "/*")[0].module
        kept = {
            id(tensor)
            for tensor in root.state_dict(keep_vars=True).values()
            if isinstance(tensor, Tensor)
        }
        self.tensors: dict[str, Tensor] = {}
        for node in select(self._tree, "//*"):
            if node.is_parameter:
                self.tensors[node.path] = node.parameter
                continue
            for name, buffer in node.module.named_buffers(recurse=False):
                if id(buffer) in kept:
                    self.tensors[_joined(node.path, name)] = buffer
        firsts: dict[int, str] = {}
        self.first = {
            path: firsts.setdefault(id(tensor), path) for path, tensor in self.tensors.items()
        }

    def covered(self, selector: Selector) -> set[str]:
        """The first paths of all tensors at or below what is selected."""
        found: set[str] = set()
        for node in select(self._tree, selector):
            if node.is_parameter:
                found.add(self.first[node.path])
            else:
                below = _joined(node.path, "")
                found |= {first for path, first in self.first.items() if path.startswith(below)}
        return found

    def chosen(self, only: Selector | None, skip: Selector | None) -> list[str]:
        """The first paths of tensors that `only` selects and `skip` does not, in order."""
        inside = None if only is None else self.covered(only)
        outside = set() if skip is None else self.covered(skip)
        return [
            path
            for path, first in self.first.items()
            if path == first and (inside is None or path in inside) and path not in outside
        ]


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
