"""Muon with its parameters: matrices of one shape are stacked, and shared out over ranks."""

import types
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from hotgrid.cluster import Communicator
from hotgrid.tensors._torch_private import foreach_copy_

from ._orthogonal import (
    Recipe,
    descend,
    directions,
    normalise,
    orthogonalise,
    whole_update,
)
from ._spec import Bound, local


class BoundMuon(Bound):
    """Matrices in stacks of one shape and dtype, each updated by one batched call."""

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        recipe: Recipe,
        scale: Callable[[int, int], float],
        ranks: Communicator,
        compiled: bool | None,
    ) -> None:
        alike: dict[object, dict[str, nn.Parameter]] = {}
        for path, parameter in parameters.items():
            kind = (parameter.shape, parameter.dtype, parameter.device)
            cut = hasattr(parameter, "to_local")
            alike.setdefault((kind, cut), {})[path] = parameter
        self._stacks = [
            (_CutStack if cut else _Stack)(members, recipe, scale, ranks, compiled)
            for (_, cut), members in alike.items()  # pyright: ignore[reportGeneralTypeIssues]
        ]
        slots = {path: s for stack in self._stacks for path, s in stack.slots.items()}
        self.slots = {path: slots[path] for path in parameters}

    @torch.no_grad()
    def step(self, values: Mapping[str, float]) -> None:
        for stack in self._stacks:
            stack.step(values)


class _Stack:
    """Matrices of one shape, whole on every rank."""

    def __init__(
        self,
        members: Mapping[str, nn.Parameter],
        recipe: Recipe,
        scale: Callable[[int, int], float],
        ranks: Communicator,
        compiled: bool | None,
    ) -> None:
        self._members = list(members.values())
        first = self._members[0]
        self._rows, self._columns = _matrix_shape(first)
        self._recipe, self._ranks = recipe, ranks
        self._scale = scale(self._rows, self._columns)
        self._numbers: dict[str, Tensor] = {}
        on_gpu = first.device.type == "cuda"
        if on_gpu if compiled is None else compiled:
            self._numbers = {key: torch.zeros(()) for key in ("momentum", "rate", "shrink")}
        self._functions: dict[str, Callable[..., Any]] = {}
        self._variance = self._new_variance(first.device)
        self.slots = {
            path: self._new_slots(i, p) for i, (path, p) in enumerate(members.items())
        }

    def _new_slots(self, index: int, parameter: nn.Parameter) -> dict[str, Tensor]:
        if index == 0:
            shape = (len(self._members), self._rows, self._columns)
            self._average = parameter.new_zeros(shape)
        slots = {"momentum": self._average[index].view(parameter.shape)}
        return slots | self._variance_slot(index)

    def _new_variance(self, device: torch.device) -> Tensor | None:
        if self._recipe.variance is None:
            return None
        tall = self._rows >= self._columns
        shape = (self._rows, 1) if tall else (1, self._columns)
        return torch.zeros((len(self._members), *shape), device=device)

    def _variance_slot(self, index: int) -> dict[str, Tensor]:
        return {} if self._variance is None else {"variance": self._variance[index]}

    def step(self, values: Mapping[str, float]) -> None:
        """Update all members that have a gradient."""
        chosen = [i for i, p in enumerate(self._members) if p.grad is not None]
        if not chosen:
            return
        all_of_them = len(chosen) == len(self._members)
        average, variance = self._average, self._variance
        if not all_of_them:
            average = average[chosen]
            variance = None if variance is None else variance[chosen]
        members = [self._members[i] for i in chosen]
        own = [p.detach() for p in members]
        gradients = torch.stack([self._matrix(p.grad) for p in members])  # pyright: ignore
        parameters = torch.stack([self._matrix(p) for p in own])
        self._update(parameters, gradients, average, variance, self._given(values))
        foreach_copy_(own, [new.view(own[0].shape) for new in parameters.unbind(0)])
        if not all_of_them:
            self._average[chosen] = average
            if self._variance is not None and variance is not None:
                self._variance[chosen] = variance

    def _update(
        self,
        parameters: Tensor,
        gradients: Tensor,
        average: Tensor,
        variance: Tensor | None,
        given: Mapping[str, Any],
    ) -> None:
        momentum, rate, shrink = given["momentum"], given["rate"], given["shrink"]
        recipe = self._recipe
        if self._ranks.size == 1:
            call = self._function(whole_update)
            call(parameters, gradients, average, variance, momentum, rate, shrink, recipe)
            return
        x = self._function(directions)(gradients, average, momentum, recipe)
        x = self._function(normalise)(self._orthogonal(x), variance, recipe)
        self._function(descend)(parameters, x, rate, shrink, recipe)

    def _orthogonal(self, x: Tensor) -> Tensor:
        """Orthogonalise the own share of the stack, and collect those of all ranks."""
        count, size = len(x), self._ranks.size
        share = -(-count // size)
        start = min(count, self._ranks.rank * share)
        mine = x[start : start + share]
        if len(mine):
            mine = self._function(orthogonalise)(mine, self._recipe)
        # Ranks at the end may have fewer, or none: all send equally many.
        padded = mine.new_zeros((share, *x.shape[1:]), dtype=self._recipe.compute)
        padded[: len(mine)] = mine
        return self._ranks.all_gather(padded).flatten(0, 1)[:count]

    def _matrix(self, tensor: Tensor) -> Tensor:
        return tensor if tensor.ndim == 2 else tensor.reshape(self._rows, self._columns)

    def _given(self, values: Mapping[str, float]) -> dict[str, Any]:
        """What changes from step to step; as tensors where functions are compiled."""
        given = {
            "momentum": values["momentum"],
            "rate": values["rate"] * self._scale,
            "shrink": values["rate"] * values["decay"],
        }
        if not self._numbers:
            return given
        for key, value in given.items():
            self._numbers[key].fill_(value)
        return dict(self._numbers)

    def _function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if not self._numbers:
            return function
        name = function.__name__
        if name not in self._functions:
            # torch counts recompilations for each code object, and gives up after eight.
            own = types.FunctionType(
                function.__code__.replace(),  # pyright: ignore[reportFunctionMemberAccess]
                function.__globals__,  # pyright: ignore[reportFunctionMemberAccess]
                name,
            )
            self._functions[name] = torch.compile(own, dynamic=False, fullgraph=True)
        return self._functions[name]


class _CutStack(_Stack):
    """Matrices of one shape, each a DTensor: gathered to be orthogonalised."""

    def _new_slots(self, index: int, parameter: nn.Parameter) -> dict[str, Tensor]:
        self._averages = [*getattr(self, "_averages", []), torch.zeros_like(parameter.detach())]
        return {"momentum": self._averages[index]} | self._variance_slot(index)

    def step(self, values: Mapping[str, float]) -> None:
        chosen = [i for i, p in enumerate(self._members) if p.grad is not None]
        if not chosen:
            return
        given, recipe = self._given(values), self._recipe
        gathered = []
        for i in chosen:
            gradient = self._members[i].grad
            average = local(self._averages[i])
            x = directions(local(gradient), average, given["momentum"], recipe)  # pyright: ignore
            gathered.append(self._matrix(_like(gradient, x).full_tensor()))
        variance = None if self._variance is None else self._variance[chosen]
        orthogonal = self._orthogonal(torch.stack(gathered))
        updates = self._function(normalise)(orthogonal, variance, recipe)
        if self._variance is not None and variance is not None:
            self._variance[chosen] = variance
        for i, update in zip(chosen, updates, strict=True):
            parameter = self._members[i].detach()
            mine = _part_of(update.view(parameter.shape), parameter)
            descend(local(parameter), mine, given["rate"], given["shrink"], recipe)


def _matrix_shape(parameter: Tensor) -> tuple[int, int]:
    """Convolutions are matrices too: outputs by all the rest."""
    return parameter.shape[0], parameter.shape[1:].numel()


def _like(pattern: Any, part: Tensor) -> Any:
    """A DTensor laid out like another, made of this rank's part."""
    from torch.distributed.tensor import DTensor

    return DTensor.from_local(
        part,
        pattern.device_mesh,
        pattern.placements,
        run_check=False,
        shape=pattern.shape,
        stride=pattern.stride(),
    )


def _part_of(whole: Tensor, pattern: Any) -> Tensor:
    """This rank's part of a tensor that is the same on all ranks; nothing is sent."""
    from torch.distributed.tensor import DTensor, Replicate

    mesh = pattern.device_mesh
    everywhere = DTensor.from_local(whole, mesh, [Replicate()] * mesh.ndim, run_check=False)
    return everywhere.redistribute(mesh, pattern.placements).to_local()
