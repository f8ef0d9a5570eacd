"""Muon with its parameters: matrices of one shape are stacked, and shared out over ranks."""

import types
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from hotgrid.cluster import Communicator
from hotgrid.errors import ArgumentError
from hotgrid.tensors._torch_private import foreach_copy_

from ._captured import Captured
from ._orthogonal import (
    Recipe,
    descend,
    directions,
    normalise,
    orthogonalise,
    whole_update,
)
from ._spec import Bound, Slots, local_part

# Above, the work of a GPU takes longer than its launches, and a graph keeps memory.
_SMALL = 1 << 26


class BoundMuon(Bound):
    """Parameters in stacks of one shape, dtype and layout, each updated by one batched call."""

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        recipe: Recipe,
        scale: Callable[[int, int], float],
        ranks: Communicator,
        compiled: bool | None,
    ) -> None:
        alike: dict[object, dict[str, nn.Parameter]] = {}
        for path, p in parameters.items():
            layout = getattr(p, "device_mesh", None), getattr(p, "placements", None)
            alike.setdefault((p.shape, p.dtype, p.device, layout), {})[path] = p
        numbers: dict[torch.device, dict[str, _Number]] = {}
        self._stacks = [
            _Stack(members, recipe, scale, ranks, compiled, numbers)
            for members in alike.values()
        ]
        small = sum(p.numel() for p in parameters.values()) <= _SMALL
        capturable = small and all(each.capturable for each in self._stacks)
        self._captured = Captured(self._stacks) if capturable else None
        slots = {path: s for stack in self._stacks for path, s in stack.slots.items()}
        self.slots = {path: slots[path] for path in parameters}

    @torch.no_grad()
    def step(self, values: Mapping[str, float]) -> None:
        if self._captured is not None and self._captured.step(values):
            return
        for stack in self._stacks:
            stack.step(values)


class _Number:
    """A number as a tensor: compiled functions and graphs would keep a Python number."""

    def __init__(self, device: torch.device) -> None:
        self.tensor = torch.zeros((), device=device)
        self._value = 0.0

    def set(self, value: float) -> None:
        if value != self._value:
            self.tensor.fill_(value)
            self._value = value


class _Stack:
    """Parameters of one shape `[n, *shape]`; of DTensors, the parts on this rank."""

    def __init__(
        self,
        members: Mapping[str, nn.Parameter],
        recipe: Recipe,
        scale: Callable[[int, int], float],
        ranks: Communicator,
        compiled: bool | None,
        numbers: dict[torch.device, dict[str, _Number]],
    ) -> None:
        self.members = list(members.values())
        first = self.members[0]
        rows, columns = first.shape[0], first.shape[1:].numel()
        self._recipe, self._ranks, self._scale = recipe, ranks, scale(rows, columns)
        self._layout = _Layout(first) if hasattr(first, "to_local") else None
        own = local_part(first.detach())
        self._average = torch.zeros(
            (len(members), *own.shape), dtype=own.dtype, device=own.device
        )
        self._variance = None
        if recipe.variance is not None:
            side = (rows, 1) if rows >= columns else (1, columns)
            self._variance = torch.zeros((len(members), *side), device=own.device)
        self.slots = self._new_slots(list(members))
        self._numbers: dict[str, _Number] = {}
        if own.device.type == "cuda" if compiled is None else compiled:
            shared = numbers.setdefault(
                own.device, {key: _Number(own.device) for key in ("momentum", "shrink")}
            )
            self._numbers = {**shared, "rate": _Number(own.device)}
        self._functions: dict[str, Callable[..., Any]] = {}

    def _new_slots(self, paths: list[str]) -> Slots:
        """Views of the stacks, so that loading a state fills them."""
        slots: Slots = {}
        for i, path in enumerate(paths):
            average = self._average[i]
            if self._layout is not None:
                average = self._layout.of_one(average)
            slots[path] = {"momentum": average}
            if self._variance is not None:
                slots[path]["variance"] = self._variance[i]
        return slots

    @property
    def capturable(self) -> bool:
        """Whether a step is nothing but work of one GPU."""
        alone = self._ranks.size == 1 and self._layout is None
        return alone and bool(self._numbers) and self._average.is_cuda

    def empty_gradients(self) -> Tensor:
        """Return room for the gradients of all members."""
        return torch.empty_like(self._average)

    def update(self, gradients: Tensor) -> None:
        """Update all members by stacked gradients, with the numbers that are set."""
        own = [parameter.detach() for parameter in self.members]
        parameters = torch.stack(own)
        given = {key: each.tensor for key, each in self._numbers.items()}
        self._update(parameters, gradients, self._average, self._variance, given)
        foreach_copy_(own, list(parameters.unbind(0)))

    def step(self, values: Mapping[str, float]) -> None:
        """Update all members that have a gradient."""
        gradients = {i: p.grad for i, p in enumerate(self.members) if p.grad is not None}
        if not gradients:
            return
        chosen = list(gradients)
        all_of_them = len(chosen) == len(self.members)
        average, variance = self._average, self._variance
        if not all_of_them:
            average = average[chosen]
            variance = None if variance is None else variance[chosen]
        own = [local_part(self.members[i].detach()) for i in chosen]
        parameters = torch.stack(own)
        stacked = torch.stack([local_part(gradient) for gradient in gradients.values()])
        self._update(parameters, stacked, average, variance, self.given(values))
        foreach_copy_(own, list(parameters.unbind(0)))
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
        recipe, layout = self._recipe, self._layout
        if self._ranks.size == 1 and layout is None:
            call = self._function(whole_update)
            call(parameters, gradients, average, variance, momentum, rate, shrink, recipe)
            return
        x = self._function(directions)(gradients, average, momentum, recipe)
        x = x if layout is None else layout.gathered(x)
        update = self._function(normalise)(self._orthogonal(x.flatten(2)), variance, recipe)
        update = update.reshape(x.shape)
        update = update if layout is None else layout.part_of(update)
        self._function(descend)(parameters, update, rate, shrink, recipe)

    def _orthogonal(self, x: Tensor) -> Tensor:
        """Orthogonalise the own share of the stack, and collect those of all ranks."""
        count, size = len(x), self._ranks.size
        share = -(-count // size)
        start = min(count, self._ranks.rank * share)
        mine = x[start : start + share]
        if len(mine):
            mine = self._function(orthogonalise)(mine, self._recipe)
        if size == 1:
            return mine
        # Ranks at the end may have fewer, or none: all send equally many.
        padded = mine.new_zeros((share, *x.shape[1:]), dtype=self._recipe.compute)
        padded[: len(mine)] = mine
        return self._ranks.all_gather(padded).flatten(0, 1)[:count]

    def given(self, values: Mapping[str, float]) -> dict[str, Any]:
        """Return the numbers of a step; tensors, which are set, where it is compiled."""
        given = {
            "momentum": values["momentum"],
            "rate": values["rate"] * self._scale,
            "shrink": values["rate"] * values["decay"],
        }
        if not self._numbers:
            return given
        for key, value in given.items():
            self._numbers[key].set(value)
        return {key: each.tensor for key, each in self._numbers.items()}

    def _function(self, function: types.FunctionType) -> Callable[..., Any]:
        if not self._numbers:
            return function
        name = function.__name__
        if name not in self._functions:
            # torch counts recompilations for each code object, and gives up after eight.
            own = types.FunctionType(function.__code__.replace(), function.__globals__, name)
            self._functions[name] = torch.compile(own, dynamic=False, fullgraph=True)
        return self._functions[name]


class _Layout:
    """How DTensors of one shape are laid out, for single ones and for stacks of them."""

    def __init__(self, pattern: Any) -> None:
        from torch.distributed.tensor import Replicate, Shard

        self._mesh, self._one = pattern.device_mesh, tuple(pattern.placements)
        self._shape, self._stride = pattern.shape, pattern.stride()
        if any(type(each) not in (Shard, Replicate) for each in self._one):
            raise ArgumentError(
                f"Muon cannot train a DTensor with the placements {self._one}: parameters "
                "must be sharded as `fully_sharded` does, or repeated"
            )
        self._stack = [
            Shard(each.dim + 1) if isinstance(each, Shard) else each for each in self._one
        ]
        self._repeated = [Replicate()] * len(self._one)

    def of_one(self, part: Tensor) -> Tensor:
        """A DTensor made of the part on this rank."""
        return self._joined(part, self._one, self._shape, self._stride)

    def gathered(self, parts: Tensor) -> Tensor:
        """The whole stack from the parts on all ranks, by one collective."""
        count = len(parts)
        shape = torch.Size((count, *self._shape))
        stride = torch.empty(shape, device="meta").stride()
        return self._joined(parts, self._stack, shape, stride).full_tensor()

    def part_of(self, whole: Tensor) -> Tensor:
        """This rank's part of a stack that is the same on all ranks; nothing is sent."""
        everywhere = self._joined(whole, self._repeated, whole.shape, whole.stride())
        return everywhere.redistribute(self._mesh, self._stack).to_local()

    def _joined(self, part: Tensor, placements: Any, shape: Any, stride: Any) -> Any:
        from torch.distributed.tensor import DTensor

        return DTensor.from_local(
            part, self._mesh, placements, run_check=False, shape=shape, stride=stride
        )
