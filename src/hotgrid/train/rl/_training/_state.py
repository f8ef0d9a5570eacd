"""The contents of a checkpoint of a run, and how they are restored."""

from typing import Any

import torch
from torch import Tensor

from hotgrid.cluster import rank_seed
from hotgrid.config import logger
from hotgrid.store import Checkpoint, Checkpoints, Shard
from hotgrid.train.rl._learners import Agent
from hotgrid.train.rl._newest import load_newest

from ._evaluation import Returns
from ._rounds import Rounds

_RANDOM = "random"


class BestPolicy:
    """The weights of every seed at its best evaluation.

    Attributes:
        returns: The mean return there, `[seeds]`; minus infinity before the first.
    """

    def __init__(self, agent: Agent, seeds: int, device: torch.device) -> None:
        self._agent = agent
        self._weights = {name: x.clone() for name, x in agent.policy().items()}
        self.returns = torch.full((seeds,), -torch.inf, dtype=torch.float64, device=device)

    def note(self, found: Returns) -> None:
        """Keep the present weights of the seeds that did as well as ever, or better."""
        now = found.returns.mean(-1)
        better = now >= self.returns
        self.returns.copy_(torch.where(better, now, self.returns))
        for name, x in self._agent.policy().items():
            kept = self._weights[name]
            spread = better.view(-1, *[1] * (x.ndim - 1))
            kept.copy_(torch.where(spread, x, kept))

    def exchange(self) -> None:
        """Give the agent the best weights, and keep its own; a second call undoes it."""
        for name, x in self._agent.policy().items():
            own = x.clone()
            x.copy_(self._weights[name])
            self._weights[name].copy_(own)

    def tensors(self) -> dict[str, Tensor]:
        """Return weights and returns."""
        return {"returns": self.returns, **self._weights}


class RLState:
    """The tensors of a run: world, agent, replay, sums, best policies, random numbers."""

    def __init__(self, rounds: Rounds, best: BestPolicy) -> None:
        self._rounds, self._best = rounds, best

    def tensors(self) -> dict[str, Tensor | Shard]:
        """The tensors to save, by name."""
        found: dict[str, Tensor | Shard] = {**self._own()}
        found[_RANDOM] = self._rounds.draws.generator.get_state()
        return found

    def slots(self) -> dict[str, Any]:
        """The names of the sums, which are made in the first update."""
        return {"sums": self._rounds.names}

    def random_names(self) -> list[str]:
        """The one generator."""
        return [_RANDOM]

    def load(self, checkpoints: Checkpoints) -> tuple[int, dict[str, Any]]:
        """Go back to the newest checkpoint that is good."""
        checkpoints.wait()

        def load(notes: Checkpoint) -> Checkpoint:
            self._rounds.expect(notes.extra["optimizer"]["sums"])
            # A Gymnasium world has nothing to load: it begins new episodes.
            wanted: dict[str, Any] = {**self._own(), _RANDOM: None}
            return checkpoints.load(notes.step, wanted)

        found = load_newest(checkpoints, load)
        self._set_random(found.tensors[_RANDOM], found.step)
        return found.step, found.extra

    def _set_random(self, state: Tensor, step: int) -> None:
        generator = self._rounds.draws.generator
        if state.shape == generator.get_state().shape:
            generator.set_state(state)
            return
        # A CPU and a GPU have different generators.
        generator.manual_seed(rank_seed(generator.initial_seed(), step))
        logger("train").warning(
            "the run was saved on another kind of device: it continues from step %s with other "
            "random numbers", f"{step:,}",
        )  # fmt: skip

    def _own(self) -> dict[str, Tensor]:
        best = {f"best/{name}": x for name, x in self._best.tensors().items()}
        return self._rounds.tensors() | best
