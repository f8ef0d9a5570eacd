"""LoRA: a small product of two matrices added to the weight of a linear layer."""

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from hotgrid.errors import ArgumentError
from hotgrid.nn import select, tree

from ._freeze import Selector, Trainable, trainable


class LoRA:
    """The class mixed into a linear layer that has an adapter; see `lora`.

    Paths of the layer stay as they were; `lora_a` and `lora_b` are new ones.
    """

    lora_a: nn.Parameter
    lora_b: nn.Parameter
    lora_scale: float

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it as the class of the layer, which can be imported, and its state."""
        return _blank, (type(self).__bases__[1],), self.__dict__

    def forward(self, x: Tensor) -> Tensor:
        """The layer, plus the adapter."""
        # The rest of the class is the layer's own, see `_adapted`.
        base: Any = super()
        small = nn.functional.linear(x, self.lora_a.to(x.dtype))
        return base.forward(x) + nn.functional.linear(
            small, (self.lora_b * self.lora_scale).to(x.dtype)
        )


@cache
def _adapted(cls: type[nn.Linear]) -> type[nn.Linear]:
    """A subclass of a layer's class whose `forward` adds the adapter."""
    return type(f"LoRA{cls.__name__}", (LoRA, cls), {"__module__": cls.__module__})


def _blank(cls: type[nn.Linear]) -> nn.Linear:
    adapted = _adapted(cls)
    return adapted.__new__(adapted)


def lora(
    model: nn.Module,
    selector: Selector,
    rank: int,
    alpha: float | None = None,
    *,
    freeze_rest: bool = True,
) -> Trainable:
    """Add low-rank adapters to linear layers, in place: Hu et al. 2021.

    A layer `y = W x + b` becomes `y = W x + b + (alpha / rank) B A x`, where A is random and B
    is zero, so nothing changes at first. Its class becomes `LoRALinear`; the paths of `weight`
    and `bias` stay as they were, so files of weights fit as before. New parameters are
    `lora_a` and `lora_b`.

    Args:
        model: The model, not yet sharded.
        selector: Selects modules of class `torch.nn.Linear` or classes made from it.
        rank: The rank of the product.
        alpha: The strength of the adapter; by default the rank, so a factor of 1.
        freeze_rest: Whether everything else in the model is frozen, except for adapters of
            earlier calls.

    Returns:
        A summary of the parameters that are trained now; print it.

    Raises:
        ArgumentError: Something selected is not a linear layer, or has an adapter; the rank
            is not from 1 to the smaller side of the layer.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 10))
        >>> print(lora(model, "//Linear[1]", rank=2, alpha=4))
        256 of 5,066 parameters are trained (5.05 %)
        >>> merge_lora(model)
        ['0']
    """
    if alpha is not None and not math.isfinite(alpha):
        raise ArgumentError(f"`alpha` is {alpha!r}; expected a finite number, or None")
    layers = select(model, selector).modules()
    for path, layer in layers.items():
        _check(path, layer, rank, selector)
    scale = (rank if alpha is None else alpha) / rank
    if freeze_rest:
        earlier = [each for each in model.modules() if isinstance(each, LoRA)]
        kept = [p for each in earlier for p in (each.lora_a, each.lora_b) if p.requires_grad]
        model.requires_grad_(False)
        for parameter in kept:
            parameter.requires_grad_()
    # A shared layer comes under each of its paths.
    for layer in {id(layer): layer for layer in layers.values()}.values():
        _adapt(layer, rank, scale)
    return trainable(model)


def _adapt(layer: Any, rank: int, scale: float) -> None:
    a = layer.weight.new_empty(rank, layer.in_features)
    nn.init.kaiming_uniform_(a, a=math.sqrt(5))
    layer.lora_a = nn.Parameter(a)
    layer.lora_b = nn.Parameter(layer.weight.new_zeros(layer.out_features, rank))
    layer.lora_scale = scale
    layer.__class__ = _adapted(type(layer))


def _check(path: str, layer: nn.Module, rank: int, selector: Selector) -> None:
    if not isinstance(layer, nn.Linear):
        raise ArgumentError(
            f"`{path}`, which `{selector}` selects, is {type(layer).__name__}; LoRA applies "
            "linear layers: add `//Linear` to the selector"
        )
    if isinstance(layer, LoRA):
        raise ArgumentError(f"`{path}` has an adapter already; use `merge_lora` first")
    if isinstance(layer, NonDynamicallyQuantizableLinear):
        raise ArgumentError(
            f"`{path}` belongs to a MultiheadAttention, which reads its weight directly: an "
            "adapter on it would have no effect; leave it out of the selector"
        )
    if "weight" not in dict(layer.named_parameters(recurse=False)):
        raise ArgumentError(
            f"the weight of `{path}` is computed from others, such as by weight_norm, so an "
            "adapter could not be merged into it; remove that first "
            "(`parametrize.remove_parametrizations`), or leave it out of the selector"
        )
    most = min(layer.in_features, layer.out_features)
    if type(rank) is not int or not 1 <= rank <= most:
        raise ArgumentError(f"`rank` is {rank!r}; for `{path}` it can be 1 to {most}")


@torch.no_grad()
def merge_lora(model: nn.Module) -> list[str]:
    """Add every adapter to its weight, and restore the classes of the layers.

    The sum is computed in float32 or higher and rounded once. Classes, paths and the keys
    of `state_dict` are those from before `lora`. Parameters stay frozen or not as they are.

    Returns:
        The paths of the layers.

    Raises:
        ArgumentError: There are no adapters, or the layers are sharded.
    """
    nodes = [node for node in select(tree(model), "//*") if not node.is_parameter]
    found = {node.path: node.module for node in nodes if isinstance(node.module, LoRA)}
    if not found:
        raise ArgumentError("there are no adapters in the model: `lora(model, ...)` adds them")
    for path, layer in found.items():
        if LoRA not in type(layer).__bases__:
            raise ArgumentError(f"`{path}` is sharded; merge adapters in a whole model")
    layers = {id(layer): layer for layer in found.values()}
    for path, layer in found.items():
        owners = [each for each in model.modules() if _holds(each, layer.weight)]
        if any(id(each) not in layers for each in owners):
            raise ArgumentError(
                f"`{path}.weight` is shared with another layer, which merging would change; "
                "give the layer a weight of its own first"
            )
    for layer in layers.values():
        weight: Any = layer.weight
        wide = torch.float64 if weight.dtype == torch.float64 else torch.float32
        product = layer.lora_b.to(wide) @ layer.lora_a.to(wide)
        weight.copy_(weight.to(wide) + product * layer.lora_scale)
        layer.__class__ = type(layer).__bases__[1]
        del layer.lora_a, layer.lora_b, layer.lora_scale
    return list(found)


def _holds(module: nn.Module, parameter: Any) -> bool:
    return any(each is parameter for each in module.parameters(recurse=False))
