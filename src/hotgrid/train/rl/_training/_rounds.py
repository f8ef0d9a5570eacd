"""`Rounds`: collect, remember, learn; with nothing that waits for the device."""

import contextlib

import torch
from torch import Tensor

from hotgrid.tensors._torch_private import one_thread, without_onednn
from hotgrid.train.rl._draws import Draws
from hotgrid.train.rl._environments import GymnasiumCopies, World
from hotgrid.train.rl._learners import Agent
from hotgrid.train.rl._replay import Ring

from ._recorded import Recorded
from ._settings import OffPolicy

# Rounds that a GPU makes before one is captured: kernels are chosen and memory is taken.
_BEFORE_CAPTURE = 3
# With fewer transitions in an update, and fewer numbers in a world, one thread is faster.
_FEW_ROWS, _FEW_NUMBERS = 1 << 11, 1 << 15


class Rounds:
    """The work between two looks at a run.

    On a GPU, rounds that learn are captured once as a CUDA graph and replayed. On a CPU, a
    step of all copies and the updates of a round are `Recorded`. All state changes in place,
    so eager rounds and replayed ones can follow each other.

    Args:
        world: Copies of the environment.
        agent: The agent that acts and learns.
        ring: The memory of transitions.
        draws: The source of random numbers.
        settings: The proportions of the run.
        captured: Whether to replay; the world must be one of tensors.
    """

    def __init__(
        self,
        world: World,
        agent: Agent,
        ring: Ring,
        draws: Draws,
        settings: OffPolicy,
        *,
        captured: bool = False,
    ) -> None:
        self.world, self.agent, self.ring, self.draws = world, agent, ring, draws
        self._settings, self._captured = settings, captured
        self.chance = torch.ones((), device=draws.device)
        self._names: list[str] = []
        # Sums over rounds: how many, and every value that is shown, by seed.
        self._sums: Tensor | None = None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._made = 0
        numbers = sum(each.numel() for each in world.tensors().values())
        few = world.seeds * settings.batch <= _FEW_ROWS and numbers <= _FEW_NUMBERS
        self._threads = one_thread if few else contextlib.nullcontext
        self._collect, self._learn = self._collected, self._learnt
        if captured and draws.device.type == "cpu":
            self._collect, self._learn = Recorded(self._collect), Recorded(self._learn)

    def make(self, chance: float, *, learn: bool) -> None:
        """Make a round; without learning it only collects."""
        self.chance.fill_(chance)
        if not learn or not self._captured or self.draws.device.type == "cpu":
            # For small matrices oneDNN is no faster; of some, on ARM, it is far slower.
            with without_onednn(), self._threads():
                self._round(learn)
            return
        if self._graph is not None:
            self._graph.replay()
            return
        self._made += 1
        if self._made <= _BEFORE_CAPTURE:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self._round(learn)
            torch.cuda.current_stream().wait_stream(stream)
            return
        self._graph = torch.cuda.CUDAGraph()
        self._graph.register_generator_state(self.draws.generator)
        with torch.cuda.graph(self._graph):
            self._round(learn)
        # A capture only records.
        self._graph.replay()

    def values(self, *, afresh: bool = True) -> dict[str, Tensor]:
        """Return means over rounds since the sums were last begun, `[seeds]` each.

        Args:
            afresh: Whether to begin new sums.
        """
        if self._sums is None:
            return {}
        count, *sums = self._sums.clone()
        if afresh:
            self._sums.zero_()
        count = count.clamp(min=1)
        return {name: each / count for name, each in zip(self._names, sums, strict=True)}

    def tensors(self) -> dict[str, Tensor]:
        """Return all state by name."""
        parts = {"world": self.world, "agent": self.agent, "replay": self.ring}
        found = {
            f"{part}/{name}": tensor
            for part, owner in parts.items()
            for name, tensor in owner.tensors().items()
        }
        if self._sums is not None:
            found["sums"] = self._sums
        return found

    def expect(self, names: list[str]) -> None:
        """Make a place for sums with these names, before they are loaded."""
        if self._sums is not None and names == self._names:
            # Recordings know it by its memory.
            self._sums.zero_()
            return
        self._names = names
        if names:
            shape = (1 + len(names), self.world.seeds)
            self._sums = torch.zeros(shape, device=self.draws.device)

    def restart(self, seed: int) -> None:
        """Begin new episodes in a world that a checkpoint cannot hold, one of Gymnasium."""
        if isinstance(self.world, GymnasiumCopies):
            self.world.restart(seed)
            if self.ring.n_steps is not None:
                self.ring.n_steps.cut()

    @property
    def names(self) -> list[str]:
        """The names of the sums so far."""
        return self._names

    def _round(self, learn: bool) -> None:
        for _ in range(self._settings.collect):
            self._collect()
        if learn:
            self._learn()

    def _collected(self) -> None:
        """Take a step with every copy, and remember it."""
        action = self.agent.explore(self.world.observation, self.chance, self.draws)
        step = self.world.step(action)
        rows = self.ring.rows.packed(step, self.ring.gamma)
        self.ring.write(rows, step.terminated | step.truncated)

    def _learnt(self) -> None:
        """Make the updates of a round, and add up the results of the last one."""
        how, values = self._settings, {}
        for batch in self.ring.batches(how.updates, how.batch, self.draws):
            errors, values = self.agent.learn(batch, self.draws)
            self.ring.reprioritise(batch, errors)
        if self._sums is None:
            self.expect(list(values))
        first = next(iter(values.values()))
        self._sums += torch.stack((torch.ones_like(first), *values.values()))  # pyright: ignore[reportOperatorIssue]
