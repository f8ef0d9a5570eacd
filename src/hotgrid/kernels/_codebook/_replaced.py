"""Replace modules of a tree in a copy; the original is not changed."""

import copy
from typing import TypeVar

from torch import nn
from torch.nn.utils.parametrize import is_parametrized

_M = TypeVar("_M", bound=nn.Module)


def replaced(module: nn.Module, made: dict[int, nn.Module]) -> nn.Module:
    """Return a copy of the tree, its tensors shared, with modules exchanged by their `id`."""
    if id(module) in made:
        return made[id(module)]
    # Before its children, so that a module that contains itself ends.
    made[id(module)] = twin = _copied(module)
    for name, value in vars(nn.Module()).items():
        # Copy lists of children and hooks, so that the trees do not share them.
        if isinstance(value, dict | set):
            vars(twin)[name] = copy.copy(vars(module)[name])
    for name, child in module._modules.items():
        twin._modules[name] = None if child is None else replaced(child, made)
    return twin


def _copied(module: nn.Module) -> nn.Module:
    if not is_parametrized(module):
        return copy.copy(module)
    # These cannot be pickled, and `copy` uses the same protocol.
    twin = object.__new__(type(module))
    vars(twin).update(vars(module))
    return twin


def in_place_of(layer: nn.Module, made: _M) -> _M:
    """Return a new layer with the hooks and the mode of the one it replaces."""
    for name in vars(nn.Module()):
        if name.startswith(("_forward", "_backward", "_is_full_backward")):
            setattr(made, name, copy.copy(getattr(layer, name)))
    return made.train(layer.training)
