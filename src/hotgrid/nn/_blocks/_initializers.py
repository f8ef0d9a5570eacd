"""Initialisers by name, applied by selection, and memory for modules on the meta device."""

import hashlib
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from hotgrid.errors import ArgumentError, near
from hotgrid.nn._tree._node import tree
from hotgrid.nn._tree._query import Query
from hotgrid.nn._tree._selection import select

Fill: TypeAlias = Callable[[Tensor, float, torch.Generator], object]


def _fans(x: Tensor) -> tuple[int, int]:
    """The inputs of one output and the outputs of one input, as in `torch.nn.init`."""
    if x.ndim < 2:
        raise ArgumentError(
            f"a parameter of shape {list(x.shape)} has no fan; it takes two dimensions or more"
        )
    field = math.prod(x.shape[2:])
    return x.shape[1] * field, x.shape[0] * field


def _uniform(x: Tensor, bound: float, generator: torch.Generator) -> Tensor:
    return x.uniform_(-bound, bound, generator=generator)


INITIALIZERS: MappingProxyType[str, Fill] = MappingProxyType(
    {
        "zeros": lambda x, scale, generator: x.zero_(),
        "constant": lambda x, scale, generator: x.fill_(scale),
        "normal": lambda x, scale, generator: x.normal_(0, scale, generator=generator),
        "truncated": lambda x, scale, generator: nn.init.trunc_normal_(
            x, 0, scale, -2 * scale, 2 * scale, generator=generator
        ),
        "uniform": _uniform,
        "fan_in_normal": lambda x, scale, generator: x.normal_(
            0, scale / math.sqrt(_fans(x)[0]), generator=generator
        ),
        "fan_in_uniform": lambda x, scale, generator: _uniform(
            x, scale * math.sqrt(3 / _fans(x)[0]), generator
        ),
        "fan_out_normal": lambda x, scale, generator: x.normal_(
            0, scale / math.sqrt(_fans(x)[1]), generator=generator
        ),
        "xavier": lambda x, scale, generator: _uniform(
            x, scale * math.sqrt(6 / sum(_fans(x))), generator
        ),
        "orthogonal": lambda x, scale, generator: nn.init.orthogonal_(
            x, scale, generator=generator
        ),
    }
)
"""Functions that fill a tensor, by name; they take it, the scale and a generator."""


@dataclass(frozen=True)
class Init:
    """An initialiser by name, one of `INITIALIZERS`, with a scale.

    The scale is the standard deviation of `normal` and `truncated` (cut at twice that),
    the bound of `uniform`, the value of `constant`, and a factor of the others: the
    standard deviation of `fan_in_normal` and `fan_in_uniform` is scale / sqrt(inputs).

    Raises:
        ArgumentError: There is no initialiser of this name.
    """

    name: str
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in INITIALIZERS:
            raise ArgumentError(
                f"there is no initialiser `{self.name}`{near(self.name, INITIALIZERS)} "
                f"(there are {', '.join(INITIALIZERS)})"
            )

    def fill(self, parameter: Tensor, generator: torch.Generator) -> None:
        """Fill one tensor in place; one that is cut over ranks as if it were whole."""
        fill = INITIALIZERS[self.name]
        with torch.no_grad():
            if not hasattr(parameter, "to_local"):
                fill(parameter, self.scale, generator)
                return
            from torch.distributed.tensor import distribute_tensor

            layout: Any = parameter
            whole = torch.empty(layout.shape, dtype=layout.dtype, device=layout.device)
            fill(whole, self.scale, generator)
            # Every rank has drawn the same: each part alone would repeat the first.
            mesh, placements = layout.device_mesh, layout.placements
            part: Any = distribute_tensor(whole, mesh, placements, src_data_rank=None)
            layout.to_local().copy_(part.to_local())


def initialize(
    module: nn.Module, rules: Mapping[str | Query, Init | str], *, seed: int = 0
) -> list[str]:
    """Fill the selected parameters of a module; a later rule overrides an earlier one.

    The values of a parameter depend on the seed and its path only, not on the order of
    rules or modules.

    Args:
        module: The module; wrapped or not.
        rules: Initialisers by expression, for all parameters at or below what it selects.
        seed: The random seed.

    Returns:
        The paths of the parameters that no rule selects, which keep what they have.

    Raises:
        ArgumentError: An expression selects nothing, an initialiser does not suit a
            parameter, or a parameter is on the meta device.

    Example:
        >>> layers = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        >>> initialize(layers, {"//*[@name='weight']": "orthogonal"})
        ['0.bias', '1.bias']
    """
    grown = tree(module)
    left = select(grown, "*").parameters()
    chosen: dict[str, tuple[nn.Parameter, Init]] = {}
    for expression, rule in rules.items():
        init = Init(rule) if isinstance(rule, str) else rule
        if not isinstance(init, Init):
            raise ArgumentError(
                f"the rule of `{expression}` is {rule!r}; expected an `Init` or the name of one"
            )
        for path, parameter in select(grown, expression).parameters().items():
            chosen[path] = (parameter, init)
    for path, (parameter, init) in chosen.items():
        if parameter.is_meta:
            raise ArgumentError(f"`{path}` is on the meta device; call `materialize` first")
        digest = hashlib.sha256(f"{seed}/{path}".encode()).digest()
        generator = torch.Generator(parameter.device)
        generator.manual_seed(int.from_bytes(digest[:8], "little"))
        try:
            init.fill(parameter, generator)
        except (ArgumentError, ValueError, RuntimeError) as problem:
            raise ArgumentError(f"`{path}` cannot be `{init.name}`: {problem}") from None
    return [path for path in left if path not in chosen]


def materialize(module: nn.Module, device: torch.device | str) -> nn.Module:
    """Give memory and initial values to the parts of a module on the meta device.

    Every module with parameters or buffers there must have `reset_parameters`, as those of
    torch and of this package do, so that nothing stays undefined. What has memory keeps its
    values and its device.

    Returns:
        The same module.

    Raises:
        ArgumentError: A module has no `reset_parameters`.
    """
    owners = {
        path: each
        for path, each in module.named_modules()
        if any(x.is_meta for x in _own(each))
    }
    for path, each in owners.items():
        if not callable(getattr(each, "reset_parameters", None)):
            raise ArgumentError(
                f"{type(each).__name__} `{path}` has no `reset_parameters`, so nothing could "
                f"fill it; give it one, or make it on `{device}` at once"
            )
    real = [x for each in owners.values() for x in _own(each) if not x.is_meta]
    _give_memory(owners.values(), device)
    kept = [(x, x.detach().clone()) for x in real]
    for each in owners.values():
        each.reset_parameters()  # pyright: ignore[reportCallIssue]
    with torch.no_grad():
        for x, values in kept:
            x.copy_(values)
    return module


def _own(module: nn.Module) -> list[Tensor]:
    return [*module.parameters(recurse=False), *module.buffers(recurse=False)]


def _give_memory(modules: Collection[nn.Module], device: torch.device | str) -> None:
    """Replace tensors on the meta device by ones without values."""
    tied: dict[int, list[tuple[nn.Module, str]]] = {}
    for each in modules:
        for name, parameter in each.named_parameters(recurse=False):
            if parameter.is_meta:
                tied.setdefault(id(parameter), []).append((each, name))
    for each in modules:
        each._apply(
            lambda x: torch.empty_like(x, device=device) if x.is_meta else x, recurse=False
        )
    # This makes a tensor for every place; shared ones must stay shared.
    for (first, name), *others in tied.values():
        for other, other_name in others:
            setattr(other, other_name, getattr(first, name))
