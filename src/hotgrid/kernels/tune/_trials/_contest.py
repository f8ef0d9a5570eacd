"""Candidates that are not functions of tensors: timed, ranked and kept as those of ops are."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch

from hotgrid.config import current, logger
from hotgrid.config.sections import Autotune
from hotgrid.kernels.tune._measure._sampling import clock_of, timed
from hotgrid.kernels.tune._measure._stamp import stamp

from ._cache import TuningCache
from ._ranking import Outcome, Ranking
from ._trial import ONE_AT_A_TIME

# What this process has found, by cache, key and stamp.
_FOUND: dict[tuple[str, str, str], Ranking] = {}


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Several ways to do the same work, of which the fastest is to be found.

    Results are not compared: all candidates are known to compute the same.

    Attributes:
        key: What is timed, as one line; its first word is the op of `hotgrid tune`.
        device: Where it runs.
        candidates: By name, a function that prepares a candidate and returns what is timed.
            Compiling is part of the preparation. Only one is prepared at a time.
        units: How many units of work, such as steps, one timed call does; times are those
            of one unit.
        limit: The seconds that the hardware needs at least for one unit; 0 if unknown.

    Example:
        >>> both = {"one": lambda: lambda: sum(range(9)), "two": lambda: lambda: 36}
        >>> contest = Contest(key="add n=9", device=torch.device("cpu"), candidates=both)
        >>> sorted(each.name for each in contest.ranking().outcomes)
        ['one', 'two']
    """

    key: str
    device: torch.device
    candidates: Mapping[str, Callable[[], Callable[[], object]]]
    units: int = 1
    limit: float = 0.0

    @property
    def stamp(self) -> str:
        """The machine and the candidates that a ranking holds for."""
        return stamp(tuple(sorted(self.candidates)), self.device)

    def known(self) -> Ranking | None:
        """Return the ranking that this process or the cache has, or None."""
        place = current().autotune.cache
        found = _FOUND.get((str(place), self.key, self.stamp))
        if found is None:
            found = TuningCache.at(place).find(self.key, self.stamp)
            if found is not None:
                self._remember(found)
        return found

    def ranking(self) -> Ranking:
        """Return the known winner, or time the candidates and store the result."""
        with ONE_AT_A_TIME:
            found = self.known()
            if found is None:
                found = self.held()
                if found.winner is not None:
                    self._remember(found)
                    TuningCache.at(current().autotune.cache).add(found)
            return found

    def held(self, *, thorough: bool = False) -> Ranking:
        """Time the candidates now; nothing is kept.

        Args:
            thorough: Time slow candidates to the end too.
        """
        settings = current().autotune
        if thorough:
            settings = replace(settings, level="full")
        outcomes: list[Outcome] = []
        on = torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext()
        with ONE_AT_A_TIME, on:
            for name in self.candidates:
                scores = [each.score for each in outcomes if each.score is not None]
                outcomes.append(self._outcome(name, settings, min(scores, default=torch.inf)))
        found = Ranking.of(self.key, self.stamp, outcomes, self.limit)
        times = [f"{e.name} {(e.score or 0) * 1e6:.1f} us" for e in found.outcomes if e.able]
        logger("autotune").info("%s: %s", self.key, ", ".join(times))
        return found

    def _outcome(self, name: str, settings: Autotune, best: float) -> Outcome:
        """Time one candidate; if it fails it cannot win, and the contest continues."""
        clock = clock_of(self.device)
        try:
            run = self.candidates[name]()
            timing = timed(
                run,
                lambda work: clock(work) / self.units,
                warmups=settings.warmups,
                samples=settings.samples,
                best=torch.inf if settings.level == "full" else best,
            )
        except Exception as error:  # noqa: BLE001  a candidate may fail in any way
            problem = " ".join(f"{type(error).__name__}: {error}".split())
            logger("autotune").warning(
                "%s: candidate `%s` cannot win: %s", self.key, name, problem
            )
            return Outcome(name=name, group=self.key.partition(" ")[0], problem=problem)
        finally:
            # The next candidate needs the memory of this one.
            run = None
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
        return Outcome.timed(name, self.key.partition(" ")[0], timing, self.limit)

    def _remember(self, found: Ranking) -> None:
        _FOUND[str(current().autotune.cache), self.key, self.stamp] = found
