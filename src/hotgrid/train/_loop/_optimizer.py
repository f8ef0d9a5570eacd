"""The interface of optimizers in the loop, and an adapter for those of torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from hotgrid.errors import ArgumentError, near
from hotgrid.tensors._torch_private import foreach_mul_
from hotgrid.train._groups import GroupRow, Groups, GroupValue
from hotgrid.train._optimizers import expect_dense, local_part

from ._kept import GroupEntries, packed, unpacked

# Settings with columns of their own, and those that do not change results.
_SHOWN = ("lr", "initial_lr", "weight_decay", "foreach", "fused", "capturable")


@runtime_checkable
class GroupedOptimizer(Protocol):
    """The interface of an optimizer for `Trainer`; `groups` makes such objects.

    Attributes:
        names: The names of the groups.
    """

    @property
    def names(self) -> Sequence[str]:
        """The names of the groups."""
        ...

    def apply(self, step: int) -> None:
        """Set every scheduled value to that of a step."""
        ...

    def clip(self) -> Mapping[str, Tensor]:
        """Clip the gradients of each group; return their norms before, without a host sync."""
        ...

    def step(self) -> None:
        """Update the parameters."""
        ...

    def zero_grad(self) -> None:
        """Drop the gradients."""
        ...

    def rates(self) -> Mapping[str, float]:
        """Return the present learning rate of every group."""
        ...

    def rows(self) -> Sequence[GroupRow]:
        """Return the table of the groups as data."""
        ...

    def state(self) -> Mapping[str, Tensor]:
        """Return the state, by `path/slot`."""
        ...

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load a state that `state` returned."""
        ...


class OptimizerAdapter:
    """An optimizer of torch with the methods that `Trainer` needs.

    `Trainer(optimizer=torch.optim.AdamW(...))` uses one without schedule and clipping. Its
    state is keyed by the paths of parameters, not by their order.

    Args:
        optimizer: The optimizer. A parameter group may have a `name`.
        module: The module whose parameters it updates.
        rate: The learning rate at a step, for all groups; by default that of the optimizer.
        clip: The largest norm of the gradient of a group; by default there is none.

    Raises:
        ArgumentError: A parameter is not one of the module, a name is used twice, or the
            optimizer needs a closure.

    Example:
        >>> layer = torch.nn.Linear(3, 1)
        >>> plain = torch.optim.SGD(layer.parameters(), lr=0.1)
        >>> optimizer = OptimizerAdapter(plain, layer, rate=lambda step: 0.1 / (1 + step))
        >>> optimizer.apply(3)
        >>> optimizer.rates()
        {'all': 0.025}
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        module: nn.Module,
        *,
        rate: Callable[[int], float] | None = None,
        clip: float | None = None,
    ) -> None:
        if clip is not None and not clip > 0:
            raise ArgumentError(f"`clip` is {clip!r}; expected a number above 0, or None")
        if isinstance(optimizer, torch.optim.LBFGS):
            raise ArgumentError(
                "`LBFGS` evaluates the loss several times in a step, which `Trainer` does not "
                "do; choose another optimizer, such as torch.optim.AdamW"
            )
        self._optimizer, self._clip = optimizer, clip
        self._rate = None if rate is None else GroupValue("`rate` of the optimizer", rate, {})
        self._groups = _named(optimizer.param_groups)
        self._paths: dict[str, nn.Parameter] = {}
        for name, group in self._groups.items():
            self._paths |= _own(module, name, dict(enumerate(group["params"])))
        self._entries = GroupEntries(self._groups)
        self._cut = any(hasattr(p, "to_local") for p in self._paths.values())
        self._zeroed = type(optimizer).zero_grad is not torch.optim.Optimizer.zero_grad

    @property
    def names(self) -> Sequence[str]:
        """The names of the groups."""
        return tuple(self._groups)

    def apply(self, step: int) -> None:
        """Set the learning rate of a step.

        Raises:
            ArgumentError: The rate is not a number of at least 0.
        """
        if self._rate is not None:
            for group in self._groups.values():
                group["lr"] = self._rate.at(step)

    def clip(self) -> dict[str, Tensor]:
        """Clip the gradients of each group; return their norms before."""
        norms: dict[str, Tensor] = {}
        for name, group in self._groups.items():
            gradients = [p.grad for p in group["params"] if p.grad is not None]
            if not gradients:
                continue
            norm = get_total_norm(gradients)
            if self._cut:
                norm = whole(norm)
            if self._clip is not None:
                # NaN stays NaN: the loop finds it and names the group.
                factor = (self._clip / (norm + 1e-6)).clamp(max=1.0)
                if self._cut:
                    gradients = [local_part(each) for each in gradients]
                foreach_mul_(gradients, factor)
            norms[name] = norm
        return norms

    def step(self) -> None:
        """Update the parameters."""
        self._optimizer.step()

    def zero_grad(self) -> None:
        """Drop the gradients."""
        if self._zeroed:
            self._optimizer.zero_grad(set_to_none=True)
            return
        # The method of torch does the same, with ten times the overhead.
        for group in self._groups.values():
            for parameter in group["params"]:
                parameter.grad = None

    def rates(self) -> dict[str, float]:
        """Return the present learning rate of every group."""
        return {name: float(group["lr"]) for name, group in self._groups.items()}

    def rows(self) -> list[GroupRow]:
        """Return the table of the groups as data."""
        return [
            GroupRow(
                name,
                type(self._optimizer).__name__,
                len(group["params"]),
                sum(p.numel() for p in group["params"]),
                float(group["lr"]),
                float(group.get("weight_decay", 0.0)),
                self._clip,
                sum(
                    local_part(x).nbytes
                    for p in group["params"]
                    for x in self._optimizer.state.get(p, {}).values()
                    if isinstance(x, Tensor)
                ),
                ", ".join(
                    f"{key} {value}"
                    for key, value in group.items()
                    if isinstance(value, bool | int | float | tuple) and key not in _SHOWN
                ),
            )
            for name, group in self._groups.items()
        ]

    def state(self) -> dict[str, Tensor]:
        """Return the state by `path/slot`, and the counters of groups by `.group/entry`.

        Raises:
            ArgumentError: The optimizer keeps something that cannot be saved.
        """
        known: dict[Tensor, str] = {parameter: path for path, parameter in self._paths.items()}
        found: dict[str, Tensor] = {}
        for parameter, slots in self._optimizer.state.items():
            if parameter not in known and slots:
                raise ArgumentError(
                    f"{type(self._optimizer).__name__} keeps a state that belongs to none of "
                    "its parameters, which cannot be saved"
                )
            for slot, value in slots.items():
                name, kept = packed(f"{known[parameter]}/{slot}", value)
                found[name] = kept
        for group, entries in self._entries.changed().items():
            found |= dict(packed(f".{group}/{key}", x) for key, x in entries.items())
        return found

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load a state that `state` returned, with the dtype and the kind of each value.

        Raises:
            ArgumentError: A path is not one of the parameters, or a group is unknown.
        """
        slots: dict[nn.Parameter, dict[str, Any]] = {}
        entries: dict[str, dict[str, Any]] = {}
        for name, tensor in state.items():
            path, _, last = name.rpartition("/")
            slot, value = unpacked(last, tensor)
            if path in self._paths:
                slots.setdefault(self._paths[path], {})[slot] = value
            elif path.startswith(".") and path[1:] in self._groups:
                entries.setdefault(path[1:], {})[slot] = value
            else:
                raise ArgumentError(
                    f"the saved state `{name}` belongs to no parameter of this optimizer"
                    f"{near(path, self._paths)}"
                )
        # `load_state_dict` of torch would cast them to the dtype of the parameter.
        self._optimizer.state.clear()
        for group in self._groups.values():
            counts = bool(group.get("capturable") or group.get("fused"))
            for parameter in group["params"]:
                if parameter in slots:
                    self._optimizer.state[parameter] = {
                        slot: value.to(parameter.device)
                        # As in torch, which has counters on the host where it can.
                        if isinstance(value, Tensor) and (slot != "step" or counts)
                        else value
                        for slot, value in slots[parameter].items()
                    }
        self._entries.load(entries)


def optimizer_for(given: Any, module: nn.Module) -> GroupedOptimizer:
    """The optimizer to use: as given, made by a function, or adapted."""
    if isinstance(given, type) or not (
        isinstance(given, torch.optim.Optimizer | GroupedOptimizer) or callable(given)
    ):
        raise ArgumentError(
            f"`optimizer` is {given!r}; expected the result of `groups`, a torch optimizer, "
            "or a function that makes one from the module"
        )
    if not isinstance(given, torch.optim.Optimizer | GroupedOptimizer):
        given = given(module)
        if not isinstance(given, torch.optim.Optimizer | GroupedOptimizer):
            raise ArgumentError(
                f"the function `optimizer` returned {given!r}; expected the result of `groups` "
                "or a torch optimizer"
            )
    if isinstance(given, torch.optim.Optimizer):
        given = OptimizerAdapter(given, module)
    if isinstance(given, Groups):
        _expect_complete(given, module)
    if isinstance(given, Groups | OptimizerAdapter):
        _expect_beside(given, module)
    expect_dense(module)
    return cast("GroupedOptimizer", given)


def _expect_complete(optimizer: Groups, module: nn.Module) -> None:
    """Refuse groups of another module, and what has come to the module since."""
    held: set[int] = set()
    for name, parameters in optimizer.parameters().items():
        _own(module, name, parameters)
        held |= set(map(id, parameters.values()))
    for path, parameter in module.named_parameters():
        if parameter.requires_grad and id(parameter) not in held:
            raise ArgumentError(
                f"`{path}` is trained and in no group; call `groups` after what adds "
                "parameters, such as `lora`, and with the module that is trained"
            )


def _expect_beside(optimizer: Groups | OptimizerAdapter, module: nn.Module) -> None:
    """Refuse an optimizer that was made before the module went to another device."""
    devices = {path: p.device for path, p in module.named_parameters()}
    for name, kept in optimizer.state().items():
        there = devices.get(name.rpartition("/")[0], kept.device)
        # Counters may stay on the host.
        if kept.ndim and kept.device != there:
            raise ArgumentError(
                f"the optimizer was made for parameters on {kept.device}, which are on {there} "
                f"now; make it after `module.to({str(there)!r})`, or give a function that "
                "makes it: `optimizer=lambda module: ...`"
            )


def whole(tensor: Tensor) -> Tensor:
    """The whole of a small tensor that is cut over ranks."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor  # pyright: ignore


def _own(
    module: nn.Module, group: str, parameters: Mapping[Any, nn.Parameter]
) -> dict[str, nn.Parameter]:
    """The parameters of a group by their paths in a module, which must have them."""
    known = {id(p): path for path, p in module.named_parameters()}
    for place, parameter in parameters.items():
        if id(parameter) not in known:
            raise ArgumentError(
                f"parameter {place} of group `{group}`, of shape {tuple(parameter.shape)}, is "
                f"not one of {type(module).__name__}; if the parameters are cut over ranks, "
                "give a function that makes the optimizer: `optimizer=lambda module: ...`"
            )
    return {known[id(parameter)]: parameter for parameter in parameters.values()}


def _named(groups: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    names = [
        str(group.get("name", "all" if len(groups) == 1 else f"group {place}"))
        for place, group in enumerate(groups)
    ]
    if len(set(names)) < len(names):
        raise ArgumentError(f"two groups of the optimizer have the same name: {names}")
    return dict(zip(names, groups, strict=True))
