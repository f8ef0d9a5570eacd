"""`Trainer`: the loop around a step function."""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from hotgrid.cluster import Communicator, StopRequest, world
from hotgrid.errors import ArgumentError, UnstableError
from hotgrid.grid.model import checked_device
from hotgrid.train._metrics import GradientNorm, Ledger, Loss, Metric, Window, counts
from hotgrid.train._report import Dashboard

from ._average import Average
from ._batches import Batches, BatchStream, Feed
from ._early_stopping import EarlyStopping
from ._folder import TrainingFolder
from ._guard import LossGuard, Watch, not_finite
from ._identity import (
    asked_of,
    better_of,
    expect_alike,
    identity_of_batches,
    identity_of_optimizer,
    settings_of_ranks,
    shape_of,
    watched,
)
from ._optimizer import optimizer_for
from ._placement import Compiled, Placement, Sharding
from ._random import seed_all
from ._recent import Recent
from ._rollback import Rollback
from ._settings import (
    Evaluation,
    Saving,
    expect_able,
    expect_compilable,
    expect_counts,
    expect_given,
    expect_rules,
)
from ._state import TrainingState
from ._step import Precision, StepFunction, StepMaking


@dataclass(frozen=True)
class TrainingOutcome:
    """How a run ended.

    Attributes:
        step: How many steps were made in all.
        why: `finished`, `early stopping` or `stopped` (by SIGTERM).
        values: The last values, by name, such as `train/loss` and `valid/accuracy`.
    """

    step: int
    why: Literal["finished", "early stopping", "stopped"]
    values: dict[str, float | None]


class Trainer:
    """Trains a module with a step function.

    The step function stays plain: it is given the module and a batch, and returns the mean
    loss, or a dict with `loss` and whatever metrics need. If the dict has a `count`, the
    number of items that the loss is a mean over, then micro-batches and ranks are
    weighted by it.

    Args:
        module: The module to train. With `sharding="cut"` it is changed in place.
        loss: The step function.
        batches: The source of batches: `Batches` or a `BatchStream`.
        optimizer: The result of `groups`, a torch optimizer, or a function that makes
            one from the module.
        steps: How many steps to make in all.
        folder: The folder of the run, with checkpoints, events and the report. Without one
            nothing is written.
        device: Where to compute; by default where the module is.
        ranks: The ranks; by default all that were started together.
        sharding: `copies` keeps a copy of the module on every rank, `cut` splits its
            parameters over them.
        layers: With `cut`, the classes of layers that are gathered one at a time.
        accumulate: Micro-batches in a step.
        precision: `bfloat16` computes in it where that is safe (autocast).
        compiled: Compile the module. `graphs` also captures it in CUDA graphs, which helps a
            small module whose kernels take longer to launch than to run. All batches have the
            same shape then, and a step has one micro-batch, on one rank.
        average: The decay of a moving average of parameters and buffers; None for none.
        metrics: Metrics to show besides the loss and the norms of gradients.
        evaluation: Evaluate at intervals.
        early_stopping: End when a metric no longer improves.
        saving: Which steps are saved; used with a folder.
        guard: How to handle losses that are not finite or jump.
        log_every: Show metrics, and look for faults, every N steps.
        seed: The seed of the random numbers of every rank.
        asked: Other settings that determine results, such as the data, as text; a run can only
            be resumed with the same.
        files: Other files of the run, by name. They are written to the folder when the run
            begins, and belong to it as its checkpoints do. None instead of contents for what
            is written later, such as the folder of the finished model.
        show: Show progress on standard error: plots on a terminal, lines in a pipe. By
            default only with a folder or on a terminal.

    Raises:
        ArgumentError: An argument is invalid.

    Example:
        >>> layer = torch.nn.Linear(2, 1, bias=False)
        >>> _ = torch.nn.init.zeros_(layer.weight)
        >>> x = torch.eye(2).repeat(8, 1)
        >>> source = TensorBatches((x, x @ torch.tensor([[1.0], [2.0]])), size=4)
        >>> def loss(module, batch):
        ...     return (module(batch[0]) - batch[1]).square().mean()
        >>> optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
        >>> outcome = Trainer(layer, loss, source, optimizer, steps=60, show=False).run()
        >>> outcome.step, outcome.why, [[round(x, 2) for x in layer.weight[0].tolist()]]
        (60, 'finished', [[1.0, 2.0]])
    """

    def __init__(
        self,
        module: nn.Module,
        loss: StepFunction,
        batches: Batches | BatchStream,
        optimizer: Any,
        *,
        steps: int,
        folder: str | Path | None = None,
        device: torch.device | str | None = None,
        ranks: Communicator | None = None,
        sharding: Sharding = "copies",
        layers: type[nn.Module] | tuple[type[nn.Module], ...] = (),
        accumulate: int = 1,
        precision: Precision = "float32",
        compiled: Compiled = False,
        average: float | None = None,
        metrics: Sequence[Metric] = (),
        evaluation: Evaluation | None = None,
        early_stopping: EarlyStopping | None = None,
        saving: Saving | None = None,
        guard: LossGuard | None = None,
        log_every: int = 50,
        seed: int = 0,
        asked: Mapping[str, object] | None = None,
        files: Mapping[str, bytes | None] | None = None,
        show: bool | None = None,
    ) -> None:
        expect_counts(steps=steps, accumulate=accumulate, log_every=log_every)
        expect_given(module, loss, metrics)
        expect_rules(
            evaluation=evaluation, early_stopping=early_stopping, saving=saving, guard=guard
        )
        guard = guard or LossGuard()
        expect_able(precision, guard, folder)
        self.steps, self.accumulate, self.step = steps, accumulate, 0
        self._log_every, self._precision = log_every, precision
        self.ranks = world(device or _device_of(module)) if ranks is None else ranks
        expect_compilable(compiled, accumulate, self.ranks.size)
        self.device = _numbered(checked_device(device or _device_of(module)))
        module.to(self.device)
        # FSDP2 changes the class of the module.
        self._name, shape = type(module).__name__, shape_of(module)
        self.placement = Placement(module, self.ranks, sharding, layers, compiled)
        self.module = module
        self.optimizer = optimizer_for(optimizer, module)
        self.placement.copy()
        self.average = None if average is None else Average(module, average)
        self._making = StepMaking(
            loss,
            self.placement,
            self.optimizer,
            self.average,
            accumulate,
            precision,
            self.device,
        )
        self._ledger = _ledger_of(metrics, self.optimizer.names)
        self._feed = Feed(batches, self.ranks.rank, self.ranks.size)
        self._begun = False
        saving = Saving() if saving is None or folder is None else saving
        self._saving, self._early_stopping = watched(
            self._ledger.metrics, evaluation, saving, early_stopping
        )
        self._evaluation, self._ended_early = evaluation, False
        self._stopping: dict[str, Any] | None = None
        self._guard, self._watch = guard, Watch(guard)
        self._recent = Recent()
        self._seed, self._show, self._files = seed, show, dict(files or {})
        self.values: dict[str, float | None] = {}
        self._evaluated: dict[str, float | None] = {}
        state = TrainingState(
            module, self.optimizer, self.average, self.ranks, self.device, seed
        )
        self._folder = TrainingFolder(folder, self.ranks, self._saving, state)
        alike = {
            "module": f"{self._name}, {shape}",
            "optimizer": identity_of_optimizer(self.optimizer),
            "accumulate": str(accumulate),
            "precision": precision,
            "average": str(average),
            "seed": str(seed),
        }
        self._asked = asked_of({**alike, **identity_of_batches(batches)}, asked)
        # A stream belongs to one rank.
        same = alike if isinstance(batches, BatchStream) else self._asked
        used = self._saving if self._folder.used else None
        self._alike = same | settings_of_ranks(
            log_every, metrics, evaluation, self._early_stopping, used, guard
        )

    # The parts of a run.

    def run(self, *, resume: bool | Literal["auto"] = False) -> TrainingOutcome:
        """Train to the last step, until early stopping, or until SIGTERM or Ctrl-C.

        Args:
            resume: Continue the run in the folder; `auto` begins one if there is none. A
                run that a launcher has restarted continues by itself.

        Returns:
            How the run ended.

        Raises:
            UnstableError: A loss or a gradient is not finite, or a loss has jumped; the
                message has the step, the batch and the group.
            StoreError: A checkpoint cannot be written or read, or there is nothing to resume.
            ArgumentError: The run in the folder has other settings, the batches end, or the
                trainer has run already.
        """
        if self._begun:
            raise ArgumentError(
                f"this trainer has run already, to step {self.step}; make another one, with "
                "more `steps` and `run(resume=True)` to continue the run in its folder"
            )
        self._begun = True
        with contextlib.ExitStack() as opened:
            stop = StopRequest(heeded=self._folder.used, interrupts=True)
            opened.enter_context(stop)
            given = {"steps": str(self.steps), "resume": str(resume), **self._alike}
            # First of all: ranks that differ would wait for each other.
            expect_alike(self.ranks, given)
            opened.enter_context(self._folder)
            seed_all(self._seed, self.ranks.rank)
            saved = self._folder.begin(self._asked, self._options(), resume, self._files)
            dashboard = Dashboard(self.steps, self._shown())
            events = self._folder.open_events(saved, self._facts())
            if saved is not None:
                self._restore(saved)
            dashboard.recall(events)
            opened.enter_context(dashboard)
            self._dashboard = dashboard
            try:
                return self._ended(self._go(stop))
            except UnstableError:
                self._folder.report()
                raise

    def _go(self, stop: StopRequest) -> Literal["finished", "early stopping", "stopped"]:
        if not self.module.training:
            self.module.train()
        self._mark = time.perf_counter()
        self._seconds = 0.0
        if self._folder.used and self.step == 0:
            self._save()
        alone, make = self.ranks.size == 1, self._making.step
        while self.step < self.steps:
            if self._ended_early:
                return "early stopping"
            try:
                for step in range(self.step, self._next_pause()):
                    if alone and stop():
                        return self._stopped()
                    make(step, self._feed, self._ledger, self._recent)
                    self.step = step + 1
                if why := self._pause(stop):
                    return why
            except Rollback as back:
                self._restore(self._folder.go_back(back, self._guard, self._feed.skipped))
        return "finished"

    def _next_pause(self) -> int:
        """The next step after which there is something to do; a function of the step alone."""
        every = [self._log_every]
        if self._evaluation is not None:
            every.append(self._evaluation.every)
        if self._folder.used:
            every.append(self._saving.every)
        return min(self.steps, *((self.step // n + 1) * n for n in every))

    # What is done between steps.

    def _pause(self, stop: StopRequest) -> Literal["early stopping", "stopped"] | None:
        """Examine losses, show metrics, evaluate and save, as far as it is due."""
        asked = self._examine(stop())
        now: dict[str, float | None] = {}
        if self.step % self._log_every == 0 or self.step == self.steps:
            now |= self._log()
        evaluation = self._evaluation
        if evaluation and (self.step % evaluation.every == 0 or self.step == self.steps):
            found = self._evaluate(evaluation)
            now |= found
            if self._early_stopping is not None:
                rule = self._early_stopping
                self._stopping, self._ended_early = rule.after(self._stopping, found)
        self.values |= now
        self._evaluated = now
        last = self.step == self.steps or self._ended_early or asked
        if last or self._folder.due(self.step, now):
            self._save(last=last)
        self._mark = time.perf_counter()
        if self._ended_early:
            return "early stopping"
        return "stopped" if asked and self.step < self.steps else None

    def _stopped(self) -> Literal["stopped"]:
        """Save where SIGTERM has stopped a single rank, unless that step is saved."""
        self._examine(True)
        self._evaluated = {}
        self._save(last=True)
        return "stopped"

    def _examine(self, stop: bool) -> bool:
        """Look for faults in the steps since the last time; whether a rank is to stop."""
        self._take_time()
        recent, self._recent = self._recent, Recent()
        names = self.optimizer.names
        losses, norms = recent.fetch(self._ledger, names)
        # A sum of finite numbers is finite: nearly always nothing else is to be done.
        heard = self._gathered([stop, math.isfinite(sum(losses) + sum(norms))])
        if self._guard.spike is not None or not all(fine for _, fine in heard):
            steps = recent.of_ranks(self._gathered((losses, norms)), names, self.step)
            fault = self._watch.first_fault(steps)
            if fault is not None:
                raise Rollback(fault)
        return any(each for each, _ in heard)

    def _log(self) -> dict[str, float | None]:
        window = Window(self._seconds, self.ranks.size, self._device_name, self._precision)
        self._seconds = 0.0
        values = self._ledger.values(self._gathered(self._ledger.sums()), window)
        self._ledger.clear()
        rates = {f"rate, {name}": rate for name, rate in self.optimizer.rates().items()}
        found = {f"train/{name}": x for name, x in (values | rates).items()}
        self._folder.write("train", self.step, values=found, seconds=window.seconds)
        self._dashboard.show(self.step, found)
        return found

    def _evaluate(self, evaluation: Evaluation) -> dict[str, float | None]:
        began = time.perf_counter()
        ledger = self._making.evaluate(evaluation)
        sums = self._gathered(ledger.sums())
        seconds = time.perf_counter() - began
        values = ledger.values(
            sums, Window(seconds, self.ranks.size, self._device_name, self._precision)
        )
        found = {f"{evaluation.name}/{name}": x for name, x in values.items()}
        self._folder.write("evaluate", self.step, values=found, seconds=seconds)
        self._dashboard.show(self.step, found)
        return found

    # Saving and restoring.

    def _save(self, last: bool = False) -> None:
        if self._folder.used:
            self._expect_finite()
        extra = {
            "position": self._feed.position,
            "skipped": sorted(self._feed.skipped),
            "data": self._gathered(self._feed.state()),
            "pending": self._gathered(self._ledger.state()),
            "stopping": self._stopping,
            "watch": self._watch.state(),
            "values": self.values,
            "seconds": self._seconds,
            "ranks": self.ranks.size,
        }
        self._folder.save(self.step, extra, self._evaluated, last=last)

    def _expect_finite(self) -> None:
        """Do not save parameters that no run could continue with."""
        heard = [name for names in self._gathered(not_finite(self.module)) for name in names]
        if heard:
            text = f"`{heard[0]}` is not finite after step {self.step}; the step is not saved"
            self._folder.write("fault", self.step, text=text, batches=[])
            way = "Lower the learning rate, or clip gradients"
            raise UnstableError(f"{text}. {way}", step=self.step, cause=way)

    def _restore(self, saved: tuple[int, dict[str, Any]]) -> None:
        self.step, extra = saved
        rank = self.ranks.rank
        self._feed.load(extra["position"], extra["skipped"], extra["data"])
        # The rows of ranks that are gone go to the first.
        pending = extra["pending"]
        mine = pending[rank : rank + 1]
        if rank == 0:
            mine = mine + pending[self.ranks.size :]
        self._ledger.load(mine)
        # A run that ended early continues with more patience, or without the rule.
        rule, self._stopping = self._early_stopping, extra["stopping"]
        self._ended_early = rule is not None and rule.ends(self._stopping)
        self._watch.load(extra["watch"])
        self.values = dict(extra["values"])
        self._recent = Recent()
        self._mark, self._seconds = time.perf_counter(), extra["seconds"]

    def _ended(self, why: Literal["finished", "early stopping", "stopped"]) -> TrainingOutcome:
        self._folder.write("end", self.step, why=why)
        self._folder.report()
        return TrainingOutcome(self.step, why, dict(self.values))

    def _gathered(self, value: Any) -> list[Any]:
        return [value] if self.ranks.size == 1 else self.ranks.gather_json(value)

    def _take_time(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        now = time.perf_counter()
        self._seconds, self._mark = self._seconds + now - self._mark, now

    @functools.cached_property
    def _device_name(self) -> str:
        if self.device.type == "cuda":
            return torch.cuda.get_device_name(self.device)
        return self.device.type

    def _shown(self) -> bool:
        return (
            self.ranks.rank == 0
            and self._show is not False
            and (self._show is True or self._folder.used or Dashboard.on_terminal())
        )

    def _options(self) -> dict[str, Any]:
        return {"steps": self.steps, "log_every": self._log_every, "ranks": self.ranks.size}

    def _facts(self) -> dict[str, Any]:
        return {
            "module": self._name,
            "parameters": sum(p.numel() for p in self.module.parameters()),
            "steps": self.steps,
            "ranks": self.ranks.size,
            "device": self._device_name,
            "precision": self._precision,
            "groups": [row._asdict() for row in self.optimizer.rows()],
            "better": better_of(self._ledger.metrics, self._evaluation, self._saving),
        }

    @contextlib.contextmanager
    def averaged(self) -> Iterator[nn.Module]:
        """Give the module its averaged parameters and buffers inside the block.

        Raises:
            ArgumentError: The trainer has no average.
        """
        if self.average is None:
            raise ArgumentError("there is no average; use `Trainer(average=0.999)`")
        with self.average.in_use():
            yield self.module


def _ledger_of(metrics: Sequence[Metric], groups: Sequence[str]) -> Ledger:
    """The metrics that are shown, and the loss and the norms, which steps find anyway."""
    norms = [GradientNorm(name) for name in groups]
    shown = {each.name: each for each in (Loss(), *metrics, *norms)}
    asked = {each.name for each in metrics if not counts(each)}
    return Ledger(list(shown.values()), given=shown.keys() - asked)


def _numbered(device: torch.device) -> torch.device:
    """A device; the present one if it is a GPU without a number."""
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def _device_of(module: nn.Module) -> torch.device:
    first = next(module.parameters(), None)
    return torch.device("cpu") if first is None else first.device
