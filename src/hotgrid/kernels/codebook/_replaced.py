"""Some modules of a tree exchanged, the tree that was given left as it is."""

import copy

from torch import nn


def replaced(module: nn.Module, made: dict[int, nn.Module]) -> nn.Module:
    """Return a copy of the tree, its tensors shared, with modules exchanged by their `id`."""
    if id(module) in made:
        return made[id(module)]
    # Before its children, so that a module within itself does not go on for ever.
    made[id(module)] = twin = copy.copy(module)
    for name in ("_parameters", "_buffers", "_modules"):
        setattr(twin, name, dict(getattr(module, name)))
    for name, child in module._modules.items():
        twin._modules[name] = None if child is None else replaced(child, made)
    return twin
