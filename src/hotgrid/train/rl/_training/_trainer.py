"""`RLTrainer`: the loop that collects, learns, evaluates, saves and shows."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from hotgrid.cluster import SingleRank, StopRequest, rank_seed
from hotgrid.config import logger
from hotgrid.errors import ArgumentError, UnstableError
from hotgrid.grid.model import checked_device
from hotgrid.train._loop._folder import TrainingFolder
from hotgrid.train._loop._settings import Saving
from hotgrid.train._report import Dashboard
from hotgrid.train.rl._draws import Draws
from hotgrid.train.rl._environments import Box, Environment
from hotgrid.train.rl._learners import Learner, learner_to_json
from hotgrid.train.rl._replay import Rows, expect_memory, replay_of

from ._evaluation import AbandonedError, Returns, evaluate
from ._finite import expect_finite
from ._recipes import recipe_for
from ._rounds import Rounds
from ._settings import OffPolicy
from ._state import BestPolicy, RLState
from ._worlds import Place

_BEST = "valid/return"
# Seconds that an evaluation may go on after the run was asked to stop.
_GRACE = 5.0


@dataclass(frozen=True)
class RLOutcome:
    """How a run ended.

    Attributes:
        step: Steps of one seed.
        why: `finished`, or `stopped` by SIGTERM or Ctrl-C.
        returns: The last evaluation, of the best policies: float64 `[seeds, episodes]`.
    """

    step: int
    why: Literal["finished", "stopped"]
    returns: Tensor

    @property
    def mean(self) -> float:
        """The mean return over all episodes of all seeds."""
        return float(self.returns.mean())


class RLTrainer:
    """Learns an environment by a learner, for one seed or for many side by side.

    A round collects some steps with every copy and makes some updates; it waits for nothing.
    Evaluations are apart: they have their own copies and random numbers, so that training is
    the same with and without them. The policy that was best in an evaluation is kept for
    each seed, and the last evaluation is of these, over fresh episodes.

    Args:
        environment: An environment, its name, or `gymnasium:ID`.
        learner: What learns; by default that of `recipe_for`.
        settings: How much of all; by default those of `recipe_for`.
        steps: Steps of one seed, over all of its copies.
        seed: Random seed.
        seeds: How many runs are made side by side.
        folder: Where checkpoints, events and the report go; None writes nothing.
        device: Where all tensors are.
        saving: Which steps are saved; the best by return is always kept.
        log_every: Steps between two rows of the log.
        captured: Replay rounds: on a GPU as a CUDA graph, on a CPU as recorded calls; by
            default with a tensor environment.
        show: Whether progress is shown; by default with a folder, or on a terminal.

    Raises:
        ArgumentError: An argument is wrong, or the learner does not suit the environment.

    Example:
        >>> small = OffPolicy(copies=4, updates=1, batch=16, warmup=32, episodes=2,
        ...                   final_episodes=3)
        >>> trainer = RLTrainer("cartpole", settings=small, steps=64, show=False)
        >>> trainer.run().returns.shape
        torch.Size([1, 3])
    """

    def __init__(
        self,
        environment: Environment | str,
        *,
        learner: Learner | None = None,
        settings: OffPolicy | None = None,
        steps: int | None = None,
        seed: int = 0,
        seeds: int = 1,
        folder: str | Path | None = None,
        device: torch.device | str = "cpu",
        saving: Saving | None = None,
        log_every: int = 2000,
        captured: bool | None = None,
        show: bool | None = None,
    ) -> None:
        self.device = checked_device(device)
        self._place = place = Place(environment, self.device)
        recipe = recipe_for(place.recipe, isinstance(place.actions, Box))
        self.learner = recipe.learner if learner is None else learner
        self.settings = recipe.settings if settings is None else settings
        self.steps = recipe.steps if steps is None else steps
        self.seed, self.seeds, self.step = seed, seeds, 0
        self._log_every, self._show = log_every, show
        self._saving = Saving(every=20_000, last=2, best=_BEST) if saving is None else saving
        self._check_given()
        rows = Rows(place.observations, place.actions)
        expect_memory(self.settings.replay.capacity, rows.width, seeds, self.device)
        self._draws = draws = Draws(rank_seed(seed, 0), self.device)
        world = place.world(seeds, self.settings.copies, draws, seed)
        self.agent = self.learner.begin(
            place.observations, place.actions, seeds, draws, place.units
        )
        ring = replay_of(
            self.settings.replay,
            rows,
            seeds,
            self.settings.copies,
            steps=self.learner.n_steps,
            gamma=self.learner.gamma,
            device=self.device,
        )
        least = ring.least_steps(self.settings.batch) * self.settings.copies
        self._warmup = max(self.settings.warmup, least)
        self._expect_updates()
        self._captured = self._replayed(captured)
        self._rounds = Rounds(
            world, self.agent, ring, draws, self.settings, captured=self._captured
        )
        self._best = BestPolicy(self.agent, seeds, self.device)
        # Returns, and lengths as a rule, are better if they are higher.
        rule = replace(self._saving, better=self._saving.better or "highest")
        self._folder = TrainingFolder(
            folder, SingleRank(), rule, RLState(self._rounds, self._best)
        )
        self._updates, self._evaluated = 0, True

    def _check_given(self) -> None:
        for name, least in (("steps", 1), ("seeds", 1), ("log_every", 1), ("seed", 0)):
            value = self._log_every if name == "log_every" else getattr(self, name)
            if type(value) is not int or value < least:
                raise ArgumentError(f"`{name}` is {value!r}; expected a number from {least}")
        for name, value, kind in (
            ("learner", self.learner, Learner),
            ("settings", self.settings, OffPolicy),
            ("saving", self._saving, Saving),
        ):
            if not isinstance(value, kind):
                example = {"learner": "DQN()", "settings": "OffPolicy()", "saving": "Saving()"}
                raise ArgumentError(
                    f"`{name}` is {value!r}; expected a {kind.__name__}, such as "
                    f"{example[name]}"
                )
        best = self._saving.best
        known = (_BEST, "valid/length", *(("valid/return, lowest seed",) * (self.seeds > 1)))
        if best is not None and best not in known:
            raise ArgumentError(
                f"`Saving(best={best!r})`: the values of an evaluation are {', '.join(known)}"
            )

    def _expect_updates(self) -> None:
        last_round = (self.steps - 1) // self.settings.per_round * self.settings.per_round
        if last_round < self._warmup:
            raise ArgumentError(
                f"nothing would be learned in {self.steps} steps: updates begin after "
                f"{self._warmup} (`warmup`, and enough for a `batch`); take more `steps`, or "
                "a smaller `warmup`"
            )

    def _replayed(self, captured: bool | None = None) -> bool:
        """Whether rounds are replayed: as it was given, or where they can be."""
        if captured and not self._place.tensor:
            raise ArgumentError(
                f"`captured=True`: `{self._place.text}` is stepped by Gymnasium, and cannot be "
                "replayed; leave `captured` out"
            )
        if captured is not None:
            return captured
        why = self._place.host_work
        if self.device.type == "cuda" and why is not None:
            warnings.warn(
                f"the environment `{self._place.text}` is trained without a CUDA graph, which "
                f"is slower: its {why}; use Python numbers, `torch.full`, or tensors that are "
                "made once and kept for each device",
                stacklevel=3,
            )
            return False
        return self.device.type in ("cpu", "cuda") and self._place.tensor

    def run(self, *, resume: bool | Literal["auto"] = False) -> RLOutcome:
        """Learn to the last step, or until SIGTERM or Ctrl-C.

        Args:
            resume: Continue the run in the folder; `auto` begins one if there is none.

        Raises:
            StoreError: A checkpoint cannot be written or read.
            ArgumentError: The run in the folder has other settings, or this trainer has run
                already and does not resume.
            UnstableError: A loss, a value, a weight or a return is not finite; the
                checkpoints before it stay.
        """
        if self.step and self._folder.used and not resume:
            # A new run would move the one in the folder aside, and have nothing to learn.
            raise ArgumentError(
                f"this trainer has run already, to step {self.step}; make another one, or "
                "continue it with `resume=True`"
            )
        with contextlib.ExitStack() as opened:
            stop = StopRequest(heeded=self._folder.used, interrupts=True)
            opened.enter_context(stop)
            self._abandon = _Patience(stop)
            opened.enter_context(self._folder)
            saved = self._folder.begin(self._asked(), {"steps": self.steps}, resume, {})
            events = self._folder.open_events(saved, self._facts())
            if saved is not None:
                self.step, self._updates = saved[0], saved[1]["updates"]
                self._evaluated = saved[1].get("evaluated", True)
                # Not the random numbers of the first episodes again.
                self._rounds.restart(rank_seed(self.seed, -2 - self.step) % 2**31)
                if self.step > self.steps:
                    logger("train").warning(
                        "the run is at step %s already, beyond %s: nothing is left to learn",
                        f"{self.step:,}", f"{self.steps:,}",
                    )  # fmt: skip
            # Rounds are whole, so the last may end after the last step.
            rounds = -(-self.steps // self.settings.per_round)
            self._dashboard = Dashboard(rounds * self.settings.per_round, self._shown())
            self._dashboard.recall(events)
            opened.enter_context(self._dashboard)
            try:
                why = self._go(stop)
                found = self._last_evaluation() if why == "finished" else None
            except AbandonedError:
                logger("train").warning("an evaluation was abandoned; --resume repeats it")
                why, found = "stopped", None
            except UnstableError as problem:
                self._folder.write("fault", self.step, text=str(problem), batches=[])
                self._folder.report()
                raise
            if found is None:
                found = torch.empty(self.seeds, 0, dtype=torch.float64)
            self._folder.write("end", self.step, why=why)
            self._folder.report()
        return RLOutcome(self.step, why, found)

    def _go(self, stop: StopRequest) -> Literal["finished", "stopped"]:
        settings = self.settings
        if not self._evaluated:
            self._evaluate()
            self._evaluated = True
        self._mark, self._logged = time.perf_counter(), (self.step, self._updates)
        while self.step < self.steps:
            learn = self.step >= self._warmup
            chance = self.learner.chance_at(self.step) if learn else 1.0
            self._rounds.make(chance, learn=learn)
            before, self.step = self.step, self.step + settings.per_round
            self._updates += settings.updates if learn else 0
            last = self.step >= self.steps
            now: dict[str, float | None] = {}
            if self._passed(before, self._log_every) or last:
                self._log(chance)
            if self._passed(before, settings.evaluate_every) or last:
                try:
                    now = self._evaluate()
                except AbandonedError:
                    # A checkpoint of the last step has the policies of all evaluations.
                    if not last:
                        self._evaluated = False
                        self._save(now, last=True)
                    raise
            stopped = stop() and not last
            due = self._passed(before, self._saving.every) or self._folder.due(self.step, now)
            if last or stopped or due:
                self._save(now, last=last or stopped)
            if now or due:
                self._mark, self._logged = time.perf_counter(), (self.step, self._updates)
            if stopped:
                return "stopped"
        return "finished"

    def _passed(self, before: int, every: int) -> bool:
        return before // every != self.step // every

    def _save(self, now: Mapping[str, float | None], *, last: bool) -> None:
        """Save, unless something is not finite: a good checkpoint would be deleted for it."""
        weights = {f"weight of `{name}`": x for name, x in self.agent.policy().items()}
        expect_finite(self.step, {**self._rounds.values(afresh=False), **weights})
        notes = {"updates": self._updates, "evaluated": self._evaluated, **self._described()}
        self._folder.save(self.step, notes, now, last=last)

    # What is shown.

    def _log(self, chance: float) -> None:
        """Show what was learned; this is where the host waits for the device."""
        learned, ended = self._rounds.values(), self._rounds.world.episodes()
        expect_finite(self.step, {**learned, "return of training episodes": ended[1]})
        values = {name: float(x.mean()) for name, x in learned.items()}
        count, returns, lengths = ended.sum(-1).tolist()
        seconds = time.perf_counter() - self._mark
        step, updates = self._logged
        found: dict[str, float | None] = {
            "train/return": returns / count if count else None,
            "train/length": lengths / count if count else None,
            "train/exploration": chance,
            **{f"train/{name}": value for name, value in values.items()},
            "train/steps a second": (self.step - step) * self.seeds / seconds,
            "train/updates a second": (self._updates - updates) * self.seeds / seconds,
        }
        self._mark, self._logged = time.perf_counter(), (self.step, self._updates)
        self._folder.write("train", self.step, values=found, seconds=seconds)
        self._dashboard.show(self.step, found)

    def _evaluate(self) -> dict[str, float | None]:
        began = time.perf_counter()
        found = self._episodes(self.settings.episodes, self.step)
        expect_finite(self.step, {"return of an evaluation": found.returns})
        self._best.note(found)
        means = found.returns.mean(-1)
        values: dict[str, float | None] = {
            _BEST: float(means.mean()),
            "valid/length": float(found.lengths.mean()),
        }
        if self.seeds > 1:
            values["valid/return, lowest seed"] = float(means.min())
        seconds = time.perf_counter() - began
        self._folder.write("evaluate", self.step, values=values, seconds=seconds)
        self._dashboard.show(self.step, values)
        return values

    def _last_evaluation(self) -> Tensor:
        """Fresh episodes of the best policies."""
        if self.step == 0:
            raise ArgumentError("nothing was learned; there is no policy to evaluate")
        self._best.exchange()
        try:
            found = self._episodes(self.settings.final_episodes, -1)
        finally:
            self._best.exchange()
        expect_finite(self.step, {"return of the last evaluation": found.returns})
        means = found.returns.mean(-1)
        values = {"final/return": float(means.mean())}
        self._folder.write("evaluate", self.step, values=values, returns=means.tolist())
        return found.returns.cpu()

    def _episodes(self, episodes: int, step: int) -> Returns:
        # Random numbers of their own, which depend on the seed and the step alone.
        seed = rank_seed(self.seed, 2 + step)
        draws = Draws(seed, self.device)
        world = self._place.world(self.seeds, episodes, draws, seed % 2**31)
        with contextlib.closing(world) if hasattr(world, "close") else contextlib.nullcontext():  # pyright: ignore[reportArgumentType]
            return evaluate(self.agent, world, captured=self._captured, abandon=self._abandon)

    def _shown(self) -> bool:
        if self._show is not None:
            return self._show
        return self._folder.used or Dashboard.on_terminal()

    # What a run is.

    def _described(self) -> dict[str, Any]:
        learner = learner_to_json(self.learner)
        return {"environment": self._place.text, "learner": learner, "seeds": self.seeds}

    def _asked(self) -> Mapping[str, str]:
        return {
            "environment": self._place.text,
            "learner": str(self.learner),
            "settings": str(self.settings),
            "seed": str(self.seed),
            "seeds": str(self.seeds),
        }

    def _facts(self) -> dict[str, Any]:
        networks, best = self.agent.networks, self._saving.best
        highest = ("train/length", "valid/length", "valid/return, lowest seed")
        return {
            "module": f"{type(self.learner).__name__} of {self._place.text}",
            "parameters": sum(networks.values()),
            "steps": self.steps,
            "ranks": 1,
            "device": self.device.type,
            "precision": "float32",
            "groups": [{"group": name, "parameters": n} for name, n in networks.items()],
            "better": dict.fromkeys(highest, "highest")
            | ({best: self._saving.better or "highest"} if best else {}),
            **self._described(),
        }


class _Patience:
    """Whether a run was asked to stop some seconds ago."""

    def __init__(self, stop: StopRequest) -> None:
        self._stop, self._asked = stop, 0.0

    def __call__(self) -> bool:
        if not self._asked and self._stop():
            self._asked = time.monotonic()
        return bool(self._asked) and time.monotonic() - self._asked > _GRACE
