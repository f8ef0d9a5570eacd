"""The competition: candidates compared with the reference, timed and ranked."""

import inspect
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import cycle
from operator import is_
from typing import Any

import torch
from torch import Tensor

from hotgrid.config import logger
from hotgrid.config.sections import Autotune
from hotgrid.kernels.tune._call import Call, Work
from hotgrid.kernels.tune._measure._bandwidth import copy_bandwidth
from hotgrid.kernels.tune._measure._sampling import clock_of, kernel_seconds, matmul_peak, timed
from hotgrid.kernels.tune._measure._stamp import stamp
from hotgrid.kernels.tune._modes import outside_of_modes
from hotgrid.kernels.tune._op import Candidate, Op, batches

from ._inputs import copies, in_turn, normal_inputs
from ._ranking import Outcome, Ranking

_SMALL_BYTES, _SMALL_FLOPS = 2**20, 1e7

# Two trials at the same time would time each other. A candidate may use a tuned op.
ONE_AT_A_TIME = threading.RLock()
"""Held during every trial of the process."""


def compete(
    op: Op, call: Call, arguments: Sequence[Any], settings: Autotune, key: str | None = None
) -> Ranking:
    """Time the candidates of a call and rank them under a key, by default the call's own.

    Those of the most promising group and priority come first. `minimal` stops when one of
    them works, `balanced` when a further group brings none that is faster, and
    `extensive` and `full` try all. Except for `full`, a candidate near the hardware limit
    ends the search, and hopelessly slow ones are not timed to the end.

    The winner is kept for later callers, so it depends neither on the numbers of this one
    (see `_inputs`) nor on autocast being on, nor on modes around the call.
    """
    with (
        ONE_AT_A_TIME,
        outside_of_modes(),
        torch.no_grad(),
        _on(call.device),
        _uncast(call.device),
    ):
        key = call.key(settings.level) if key is None else key
        trial = _Trial(op, call, normal_inputs(arguments), settings, key)
        for batch in batches(op.candidates, call):
            before = trial.best
            for candidate in batch:
                trial.enter(candidate)
                if trial.at_the_limit:
                    break
            if trial.at_the_limit or _content(settings, before, trial.best):
                break
        return trial.ranking()


def limit_of(work: Work, call: Call) -> float:
    """Return the seconds that the hardware needs at least, as measured on this machine.

    It is 0 for calls so small that starting them takes longer than working.
    """
    if work.bytes < _SMALL_BYTES and work.flops < _SMALL_FLOPS:
        return 0.0
    device = str(call.device)
    moving = work.bytes / copy_bandwidth(device).bytes_per_second
    computing = work.flops / matmul_peak(device, call.dtype) if work.flops else 0.0
    return max(moving, computing)


def _content(settings: Autotune, before: float, now: float) -> bool:
    if settings.level == "minimal":
        return now < float("inf")
    return settings.level == "balanced" and before < float("inf") and now >= before


def _on(device: torch.device) -> Any:
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _alike(one: Tensor, other: Tensor) -> bool:
    """Whether all numbers are the same; the caller's, where they are used, may be NaN."""
    return torch.equal(one, other) or bool(
        ((one == other) | (one.isnan() & other.isnan())).all()
    )


def _held(device: torch.device) -> int:
    """The bytes that the cache of a GPU holds; 0 on a processor, where one copy is used."""
    if device.type != "cuda":
        return 0
    return torch.cuda.get_device_properties(device).L2_cache_size


def _uncast(device: torch.device) -> Any:
    known = torch.amp.is_autocast_available(device.type)
    return torch.autocast(device.type, enabled=False) if known else nullcontext()


class _Trial:
    """One key being tuned."""

    def __init__(
        self, op: Op, call: Call, arguments: tuple[Any, ...], settings: Autotune, key: str
    ) -> None:
        self._op = op
        self._call = call
        self._arguments = arguments
        self._turns = in_turn(arguments, _held(call.device))
        self._settings = settings
        self._limit = limit_of(op.work(call), call)
        self._excerpt = op.excerpt(*arguments)
        self._expected = op.reference(*self._excerpt)
        self._outcomes: list[Outcome] = []
        self._key = key
        self.best = float("inf")
        self.at_the_limit = False

    def enter(self, candidate: Candidate) -> None:
        """Let a candidate compete; if it fails, the trial continues."""
        try:
            outcome = self._outcome(candidate)
        except Exception as error:  # noqa: BLE001  a candidate may fail in any way
            outcome = self._excluded(candidate, f"{type(error).__name__}: {error}")
        self._outcomes.append(outcome)
        if outcome.able and outcome.score is not None and outcome.share is not None:
            self.best = min(self.best, outcome.score)
            self.at_the_limit = (
                self._settings.level != "full"
                and outcome.share >= self._settings.stop_at_roofline
            )

    def ranking(self) -> Ranking:
        """Return the result of the trial."""
        op, settings = self._op, self._settings
        mark = stamp(op.names, self._call.device)
        ranking = Ranking.of(self._key, mark, self._outcomes, self._limit)
        log = logger("autotune")
        if ranking.winner is not None and log.enabled("info"):
            few = [
                f"{each.name} {(each.score or 0) * 1e6:.1f} us"
                for each in ranking.outcomes[: None if settings.level == "full" else 3]
                if each.able
            ]
            log.info("%s: %s", self._key, ", ".join(few))
        return ranking

    def _outcome(self, candidate: Candidate) -> Outcome:
        # Its own copies: writing into them must not affect other candidates.
        own = copies(self._arguments)
        excerpt = self._op.excerpt(*own)
        found = candidate.function(*excerpt)
        if changed := self._changed(own):
            return self._excluded(candidate, f"it writes into its argument {changed}")
        difference = self._op.compare(self._expected, found, *self._excerpt)
        if difference:
            return self._excluded(candidate, f"it disagrees with the reference: {difference}")
        if not all(map(is_, excerpt, own)):
            candidate.function(*own)  # another shape may have to be compiled
        function = candidate.function
        if candidate.ready is not None and (ready := candidate.ready(*own)) is not None:
            difference = self._op.compare(function(*own), ready(*own), *own)
            if difference:
                return self._excluded(candidate, f"its `ready` function differs: {difference}")
            function = ready
        if changed := self._changed(own):
            return self._excluded(candidate, f"it writes into its argument {changed}")
        sets = cycle([own, *self._turns[1:]])
        run = lambda: function(*next(sets))
        timing = timed(
            run,
            clock_of(self._call.device),
            warmups=self._settings.warmups,
            samples=self._settings.samples,
            best=float("inf") if self._settings.level == "full" else self.best,
        )
        alone = kernel_seconds(run, self._call.device)
        return Outcome.timed(candidate.name, candidate.group.name, timing, self._limit, alone)

    def _changed(self, own: Sequence[Any]) -> str:
        """The name of the first argument that is no longer as it was, or nothing."""
        names = [*inspect.signature(self._op.reference).parameters]
        for number, (before, now) in enumerate(zip(self._arguments, own, strict=True)):
            if isinstance(now, Tensor) and now is not before and not _alike(before, now):
                return f"`{names[number]}`" if number < len(names) else str(number)
        return ""

    def _excluded(self, candidate: Candidate, problem: str) -> Outcome:
        flat = " ".join(problem.split())
        logger("autotune").warning(
            "%s: candidate `%s` cannot win: %s", self._key, candidate.name, flat
        )
        return Outcome(name=candidate.name, group=candidate.group.name, problem=flat)
