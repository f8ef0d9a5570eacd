"""`Tuned`: an op that finds its fastest candidate on the first call and remembers it."""

import os
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.cuda import is_current_stream_capturing

from hotgrid.config import Config, current
from hotgrid.config.sections import Autotune, Kernels
from hotgrid.errors import ConfigError, KernelError, near

from ._call import Call
from ._check._validation import variant
from ._fast_calls import FastCalls
from ._forked import on_one_thread, threads_are_lost, without_lost_threads
from ._measure._stamp import stamp
from ._modes import plain
from ._op import NATIVE, Candidate, Op, fitting
from ._trials._cache import TuningCache
from ._trials._ranking import Ranking
from ._trials._trial import ONE_AT_A_TIME, compete

_MOST_REMEMBERED = 4096  # exact calls; they are cheap to find again


@dataclass
class _Regime:
    """The choices made under one set of settings.

    Attributes:
        config: The configuration it was last entered with.
        autotune: How to tune.
        kernels: How to check, and what is named by hand.
        chosen: The function for each exact call.
        rankings: By key and stamp.
        fast: The same for calls as the public functions get them.
    """

    config: Config
    autotune: Autotune
    kernels: Kernels
    chosen: dict[Hashable, Callable[..., Any]] = field(default_factory=dict)
    rankings: dict[tuple[str, str], Ranking] = field(default_factory=dict)
    fast: FastCalls = field(default_factory=FastCalls)


class Tuned:
    """An op as a function: the candidate that is fastest here computes each call.

    The first call of a kind times the candidates; later calls look the winner up by a
    tuple of dtypes, devices, shapes, strides and settings. Several threads may call it.
    Arguments are positional and not checked: the public function of the op does that.

    Args:
        op: The op.

    Example:
        >>> from hotgrid.kernels import OPS
        >>> tuned = Tuned(OPS["topk"].op)
        >>> values, indices = tuned(torch.tensor([3, 1, 2]), 2, 0, True, True)
        >>> values.tolist(), indices.tolist()
        ([3, 2], [0, 2])
    """

    def __init__(self, op: Op) -> None:
        self.op = op
        self._regimes: dict[tuple[Autotune, Kernels], _Regime] = {}
        self._regime: _Regime | None = None
        self._lock = threading.Lock()
        _ALL.add(self)

    def __call__(self, *arguments: Any) -> Any:
        """Compute the op."""
        config = current()
        regime = self._regime
        if regime is None or regime.config is not config:
            regime = self._entered(config)
        if _recorded(arguments):
            return self._in_a_graph(regime, arguments)(*arguments)
        signature = signature_of(arguments)
        function = regime.chosen.get(signature)
        if function is None:
            return self._first(regime, signature, arguments)
        return function(*arguments)

    def fast(self, name: Hashable, *tensors: Tensor) -> Callable[..., Any] | None:
        """Return the function that computed an earlier call of this kind, without checks.

        Args:
            name: Which function is called, and with which settings.
            tensors: All the tensors that it was given.

        Returns:
            A function of the tensors, as `keep_fast` made it; None if there was no such call
            under these settings, or if this one is traced, transformed or recorded.
        """
        if is_dynamo_compiling():
            return None
        regime = self._regime
        if regime is None or regime.config is not current():
            return None
        return regime.fast.find(name, tensors)

    def keep_fast(
        self,
        name: Hashable,
        tensors: tuple[Tensor, ...],
        arguments: Sequence[Any],
        compute: Callable[..., Any],
        gradients: bool = False,
    ) -> None:
        """Let `fast` find calls like one that has just been computed.

        Nothing is kept for a call that is traced, transformed or recorded.

        Args:
            name: As for `fast`.
            tensors: As for `fast`.
            arguments: What candidates were given for them.
            compute: Takes the function of a candidate and the tensors, and calls it.
            gradients: Whether results of `compute` have gradients; if not, calls that need
                one are not kept.
        """
        if not plain(*tensors, gradients=gradients):
            return
        # Read once: another thread may enter other settings meanwhile.
        regime = self._regime
        function = _chosen_before(regime, arguments)
        if function is not None and regime is not None:
            regime.fast.keep(name, tensors, partial(compute, function))

    def function_of(self, *arguments: Any) -> Callable[..., Any] | None:
        """Return the function of an earlier call like this one under the settings in force."""
        return _chosen_before(self._regime, arguments)

    def candidate_for(self, *arguments: Any) -> Candidate:
        """Return the candidate that computes a call under the settings in force.

        It is found by tuning if no earlier call or process has found it.

        Raises:
            ConfigError: `kernels.choose` names a candidate that does not exist or cannot.
            KernelError: No candidate can compute the call.
        """
        regime = self._entered(current())
        return self._candidate(regime, self.op.describe(*arguments), arguments)

    def ranking_for(self, *arguments: Any) -> Ranking:
        """Return the ranking of a call, from this process, the cache or a fresh trial."""
        regime = self._entered(current())
        call = self.op.describe(*arguments)
        return self._ranking(regime, call.key(regime.autotune.level), call, arguments)

    def forget(self) -> None:
        """Forget what this process has chosen; the cache on disk stays."""
        with self._lock:
            self._regimes.clear()
            self._regime = None

    def _entered(self, config: Config) -> _Regime:
        with self._lock:
            key = (config.autotune, config.kernels)
            regime = self._regimes.get(key)
            if regime is None:
                regime = self._regimes[key] = _Regime(config, *key)
            # An equal configuration is as good, but only the same one is found at once.
            regime.config = config
            self._regime = regime
            return regime

    def _first(self, regime: _Regime, signature: Hashable, arguments: Sequence[Any]) -> Any:
        """Choose a function, compute a call with it, and remember it for calls like this."""
        call = self.op.describe(*arguments)
        candidate = self._candidate(regime, call, arguments)
        function = variant(self.op, candidate, regime.kernels)
        own = function is candidate.function
        if not (own and candidate.group is NATIVE) and threads_are_lost(call.device):
            function, own = on_one_thread(function), False
        found = function(*arguments)
        if own and candidate.ready is not None:
            function = candidate.ready(*arguments) or function
        if len(regime.chosen) >= _MOST_REMEMBERED:
            regime.chosen.clear()
        regime.chosen[signature] = function
        return found

    def _in_a_graph(self, regime: _Regime, arguments: Sequence[Any]) -> Callable[..., Any]:
        """Return the function for a call in a CUDA graph: the one with the fastest kernels.

        Nothing can be timed meanwhile; an unknown call gets the candidate that would be tried
        first.
        """
        call = self.op.describe(*arguments)
        able = self._able(call)
        candidate, known = self._named(regime, able), self._known(regime, call)
        if candidate is None and known is not None:
            by_name = {each.name: each for each in able}
            order = [by_name[each.name] for each in known.in_a_graph() if each.name in by_name]
            candidate = order[0] if order else None
        return variant(self.op, candidate or able[0], regime.kernels)

    def _candidate(self, regime: _Regime, call: Call, arguments: Sequence[Any]) -> Candidate:
        able = self._able(call)
        named = self._named(regime, able)
        if named is not None:
            return named
        if len(able) == 1 or able[0].always_wins:
            return able[0]
        by_name = {each.name: each for each in able}
        # A bucket holds several sizes, and its winner may not be able to compute this one.
        for level in (regime.autotune.level, "full"):
            ranking = self._ranking(regime, call.key(level), call, arguments)
            for outcome in ranking.outcomes:
                if outcome.able and outcome.name in by_name:
                    return by_name[outcome.name]
        raise KernelError(
            f"no candidate of `{self.op.name}` computes {call.key('full')}: "
            + "; ".join(f"`{each.name}` {each.problem}" for each in ranking.outcomes)
        )

    def _able(self, call: Call) -> list[Candidate]:
        able = fitting(self.op.candidates, call)
        if not able:
            known = ", ".join(self.op.names)
            raise KernelError(
                f"no candidate of `{self.op.name}` applies to {call.key('full')}; "
                f"there are: {known}"
            )
        return able

    def _named(self, regime: _Regime, able: Sequence[Candidate]) -> Candidate | None:
        """The candidate that the settings name for this op, if they do."""
        name = dict(pair.split("=", 1) for pair in regime.kernels.choose).get(self.op.name)
        if name is None:
            return None
        for candidate in able:
            if candidate.name == name:
                return candidate
        if name in self.op.names:
            raise ConfigError(
                f"`kernels.choose` names `{self.op.name}={name}`, which does not apply to "
                f"this call; those that do: {', '.join(each.name for each in able)}"
            )
        raise ConfigError(
            f"`kernels.choose` names `{self.op.name}={name}`, but the candidates are "
            f"{', '.join(self.op.names)}{near(name, self.op.names)}"
        )

    def _known(self, regime: _Regime, call: Call) -> Ranking | None:
        mark = stamp(self.op.names, call.device)
        return regime.rankings.get((call.key(regime.autotune.level), mark))

    def _ranking(
        self, regime: _Regime, key: str, call: Call, arguments: Sequence[Any]
    ) -> Ranking:
        with ONE_AT_A_TIME, without_lost_threads(call.device):
            mark = stamp(self.op.names, call.device)
            known = regime.rankings.get((key, mark))
            if known is not None:
                return known
            cache = TuningCache.at(regime.autotune.cache)
            found = cache.find(key, mark)
            if found is None:
                found = compete(self.op, call, arguments, regime.autotune, key)
                if found.winner is not None:
                    cache.add(found)
            regime.rankings[key, mark] = found
            return found

    def _start_anew(self) -> None:
        """Forget in a forked child which functions may use torch's threads."""
        self._lock = threading.Lock()  # another thread of the parent may have held it
        for regime in self._regimes.values():
            regime.chosen, regime.fast = {}, FastCalls()


_ALL: "weakref.WeakSet[Tuned]" = weakref.WeakSet()


def _after_fork() -> None:
    ONE_AT_A_TIME._at_fork_reinit()  # pyright: ignore[reportAttributeAccessIssue]  as threading does
    for each in list(_ALL):
        each._start_anew()


os.register_at_fork(after_in_child=_after_fork)


def _chosen_before(
    regime: _Regime | None, arguments: Sequence[Any]
) -> Callable[..., Any] | None:
    """The choice for a call, if it was made under the settings in force."""
    if regime is None or regime.config is not current():
        return None
    return regime.chosen.get(signature_of(arguments))


def _recorded(arguments: Sequence[Any]) -> bool:
    """Whether a call becomes part of a CUDA graph."""
    for x in arguments:
        if isinstance(x, Tensor):
            return x.is_cuda and is_current_stream_capturing()
    return False


def signature_of(arguments: Sequence[Any]) -> Hashable:
    """Return the key of a call: everything about tensors except their numbers."""
    return tuple(
        [
            (x.dtype, x.device, x.shape, x.stride()) if isinstance(x, Tensor) else x
            for x in arguments
        ]
    )
