"""One step, and one evaluation: what happens on the device, without waiting for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.tensors._torch_private import foreach_mul_
from hotgrid.train._metrics import Ledger, Seen, items_of
from hotgrid.train._optimizers import local_part

from ._average import Average
from ._batches import Feed, to_device
from ._optimizer import GroupedOptimizer
from ._placement import Placement
from ._recent import Recent
from ._settings import Evaluation

StepFunction: TypeAlias = "Callable[[Any, Any], Tensor | Mapping[str, Any]]"
Precision = Literal["float32", "bfloat16"]


class StepMaking:
    """How steps are made."""

    def __init__(
        self,
        loss: StepFunction,
        placement: Placement,
        optimizer: GroupedOptimizer,
        average: Average | None,
        accumulate: int,
        precision: Precision,
        device: torch.device,
    ) -> None:
        self._loss, self._placement, self._optimizer = loss, placement, optimizer
        self._average, self._accumulate = average, accumulate
        self._precision, self._device = precision, device
        # Contexts that do nothing take time too.
        self._plain = placement.alone and precision == "float32"
        # As in a plain loop: to free a graph before the next one is made takes longer.
        self._last: Tensor | None = None
        # Whether the step function gives a `count`; known from its first call on.
        self._counted: bool | None = None

    def step(self, done: int, feed: Feed, ledger: Ledger, recent: Recent) -> None:
        """Make the step after `done` steps; nothing here waits for the device."""
        optimizer, k = self._optimizer, self._accumulate
        optimizer.apply(done)
        counts: list[Any] = []
        seen: Any = None
        watched = ledger.per_batch or ledger.per_step
        for place in range(k):
            position, batch = next(feed)
            batch = to_device(batch, self._device)
            if self._plain:
                found = self._loss(self._placement.called, batch)
                outputs = self._backward(found, recent, counts)
            else:
                with self._gradients(place == k - 1):
                    with self._autocast():
                        found = self._loss(self._placement.called, batch)
                    outputs = self._backward(found, recent, counts)
            recent.positions.append(position)
            if ledger.counting:
                recent.items.append(items_of(outputs, batch))
            if watched:
                seen = Seen(outputs, batch)
                for sums, rows in ledger.per_batch:
                    rows.append(sums(seen))
        if counts:
            self._divide(counts)
        norms = optimizer.clip()
        optimizer.step()
        optimizer.zero_grad()
        if self._average is not None:
            self._average.update()
        recent.norms.append(norms)
        if ledger.per_step:
            seen.norms = norms
            for sums, rows in ledger.per_step:
                rows.append(sums(seen))

    def evaluate(self, evaluation: Evaluation) -> Ledger:
        """The sums of one pass over the share of this rank."""
        ledger, placement = Ledger(evaluation.metrics), self._placement
        placement.same_buffers(self._average.buffers if self._average else ())
        # Layers that were set to evaluate, such as frozen norms, stay so afterwards.
        modes = [(each, each.training) for each in placement.module.modules()]
        placement.module.eval()
        held = self._average.in_use() if self._average else contextlib.nullcontext()
        count, ranks = len(evaluation.batches), placement.ranks.size
        with held, torch.no_grad(), self._autocast():
            for first in range(0, count, ranks):
                at = first + placement.ranks.rank
                if at >= count and not placement.together:
                    break
                batch = evaluation.batches.batch(min(at, count - 1), 0, 1)
                batch = to_device(batch, self._device)
                outputs = _outputs(self._loss(placement.evaluated, batch))
                if at < count:
                    seen = Seen(outputs, batch)
                    for sums, rows in ledger.per_batch:
                        rows.append(sums(seen))
            placement.cut_again()
        for each, training in modes:
            each.training = training
        return ledger

    def _backward(self, found: Any, recent: Recent, counts: list[Any]) -> Mapping[str, Any]:
        """Add the gradients of a micro-batch: of its share of the mean, or of its sum."""
        # The usual loss first: this is done in every step.
        usual = isinstance(found, Tensor) and not found.ndim and not found.is_complex()
        outputs = {"loss": found} if usual else _outputs(found)
        loss, count = outputs["loss"], outputs.get("count")
        if not loss.requires_grad:
            raise ArgumentError(
                "the loss depends on no parameter that is trained: all of them are frozen, or "
                "the step function detaches the loss or computes it without gradients"
            )
        self._last = loss
        if (count is not None) is not self._counted:
            if self._counted is not None:
                raise ArgumentError(
                    "the step function returned a `count` for some micro-batches, and none for "
                    "others; return it always or never"
                )
            self._counted = count is not None
        if count is None:
            (loss / self._accumulate if self._accumulate > 1 else loss).backward()
        elif isinstance(count, Tensor) or (isinstance(count, int | float) and count > 0):
            total = loss * count
            total.backward()
            recent.counted[len(recent.losses)] = (total.detach(), count)
            counts.append(count)
        else:
            raise ArgumentError(
                f"the `count` of the step function is {count!r}; expected a number above 0"
            )
        recent.losses.append(loss.detach())
        return outputs

    def _divide(self, counts: list[Any]) -> None:
        """Turn summed gradients into those of the mean over all items."""
        ranks = self._placement.ranks
        total = torch.as_tensor(sum(counts), dtype=torch.float64, device=self._device).clone()
        ranks.all_reduce(total)
        parameters = self._placement.module.parameters()
        gradients = [local_part(p.grad) for p in parameters if p.grad is not None]
        kind = torch.promote_types(gradients[0].dtype, torch.float32)
        foreach_mul_(gradients, (ranks.size / total).to(kind))

    def _gradients(self, last: bool) -> contextlib.AbstractContextManager[None]:
        if self._placement.alone:
            return contextlib.nullcontext()
        return self._placement.accumulating(last)

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self._precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self._device.type, torch.bfloat16)


def _outputs(found: Tensor | Mapping[str, Any]) -> Mapping[str, Any]:
    """The result of the step function, with a loss without dims."""
    if isinstance(found, Tensor):
        found = {"loss": found}
    elif not isinstance(found, Mapping) or not isinstance(found.get("loss"), Tensor):
        raise ArgumentError(
            f"the step function returned {type(found).__name__}; expected the loss, a tensor "
            'with one number, or a dict with "loss"'
        )
    loss, count = found["loss"], found.get("count")
    if isinstance(count, Tensor) and count.ndim:
        if count.numel() != 1:
            raise ArgumentError(
                f"the `count` of the step function has the shape {list(count.shape)}; expected "
                "one number, such as its sum"
            )
        found = {**found, "count": count.reshape(())}
    if loss.is_complex():
        raise ArgumentError(
            f"the loss of the step function is {loss.dtype}; expected a real number, such as "
            "`loss.abs()`"
        )
    if loss.ndim == 0:
        return found
    if loss.numel() != 1:
        raise ArgumentError(
            f"the loss of the step function has the shape {list(loss.shape)}; expected one "
            "number, such as its mean"
        )
    return {**found, "loss": loss.reshape(())}
