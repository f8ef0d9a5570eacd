"""Freezing and re-heading by selector."""

from dataclasses import dataclass

from torch import nn

from hotgrid.errors import ArgumentError
from hotgrid.nn import Query, select, tree

Selector = str | Query


@dataclass(frozen=True)
class Trainable:
    """The share of a model that is trained; print it.

    Attributes:
        trained: Numbers that are trained.
        total: All numbers of the parameters; a shared parameter counts once.
        paths: The parameters that are trained.
    """

    trained: int
    total: int
    paths: tuple[str, ...]

    def __str__(self) -> str:
        share = 100 * self.trained / self.total if self.total else 0.0
        return f"{self.trained:,} of {self.total:,} parameters are trained ({share:.2f} %)"


def trainable(model: nn.Module) -> Trainable:
    """Count the parameters that are trained, and all.

    Example:
        >>> print(trainable(torch.nn.Linear(4, 1)))
        5 of 5 parameters are trained (100.00 %)
    """
    every = select(tree(model), "//Param").parameters()
    paths = tuple(path for path, parameter in every.items() if parameter.requires_grad)
    return Trainable(
        sum(every[path].numel() for path in paths),
        sum(parameter.numel() for parameter in every.values()),
        paths,
    )


def freeze(model: nn.Module, selector: Selector, *, frozen: bool = True) -> Trainable:
    """Freeze the parameters that a selector selects, or unfreeze them.

    Args:
        model: The model, wrapped or not.
        selector: Parameters, or modules with all parameters in them.
        frozen: False to train them again.

    Returns:
        A summary of the parameters that are trained now.

    Raises:
        ArgumentError: The selector selects nothing.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
        >>> print(freeze(model, "//Linear[1]"))
        5 of 25 parameters are trained (20.00 %)
    """
    for parameter in select(model, selector).parameters().values():
        parameter.requires_grad_(not frozen)
    return trainable(model)


def rehead(model: nn.Module, selector: Selector, new: nn.Module) -> nn.Module:
    """Replace the one module that a selector selects.

    The new module gets the device and the dtype of the old one, and its training mode.

    Args:
        model: The model, wrapped or not; compile it and wrap it afterwards if you can.
        selector: Selects one module, which is not the whole model.
        new: The new module.

    Returns:
        The old module.

    Raises:
        ArgumentError: The selector selects nothing, several modules, a parameter, or the
            whole model.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 10))
        >>> rehead(model, "//Linear[2]", torch.nn.Linear(8, 2))
        Linear(in_features=8, out_features=10, bias=True)
        >>> model[1].out_features
        2
    """
    if not isinstance(new, nn.Module):
        raise ArgumentError(f"`new` is {new!r}; expected a torch.nn.Module")
    nodes = list(select(model, selector))
    if len(nodes) > 1:
        shown = ", ".join(f"`{node.path}`" for node in nodes[:6])
        raise ArgumentError(f"`{selector}` selects {len(nodes)} nodes, {shown}; expected one")
    node = nodes[0]
    if node.is_parameter or node.parent is None:
        what = f"the parameter `{node.path}`" if node.is_parameter else "the whole model"
        raise ArgumentError(f"`{selector}` selects {what}; expected a module inside the model")
    old = node.module
    first = next(iter(old.parameters()), None)
    if first is not None:
        new = new.to(device=first.device, dtype=first.dtype)
    setattr(node.parent.module, node.key, new.train(old.training))
    return old
