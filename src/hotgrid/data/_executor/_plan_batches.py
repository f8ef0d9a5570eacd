"""Batches of a plan: threads that write into them, a few batches ahead."""

import os
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from hotgrid.data._plan import Plan
from hotgrid.errors import ArgumentError, DamagedError

from ._assembly import Assembly
from ._buffers import Buffers
from ._corrupt import CorruptError, CorruptSample, Quarantine
from ._runner import Runner
from ._schedule import Schedule


class PlanBatches:
    r"""Batches of the columns that a plan yields; any batch by its number, or one by one.

    What is in a batch depends on the plan and the number of the batch alone: not on the
    number of workers, how far ahead they are, or where reading began. Ranks share the rows of
    a batch in turn. So `Trainer(batches=...)` takes it as it is and resumes exactly.

    A batch is a dict: tensors `[rows, ...]` for numbers, padded with zeros where samples
    differ in size, and lists for bytes, texts and JSON. Threads write samples straight into
    the tensors. Their memory is used again once no tensor holds it.

    Args:
        plan: What to make.
        size: Rows of a batch, of all ranks together.
        workers: How many threads; by default one for every core of this process.
        ahead: How many batches are prepared ahead.
        last: `drop` leaves out batches that are not full, in every epoch; `short` keeps
            them, as evaluation needs it.
        epochs: Stop after this many epochs; None never stops.
        rank: Which rank this is, for iterating.
        ranks: How many ranks share the batches.
        pad: Fill up samples of different sizes with zeros to one tensor. False yields lists
            of arrays for such columns.
        pin: Page-locked memory, for copies to a GPU that do not wait.
        quarantine: A file to list damaged samples in. Those in it count already.

    Raises:
        ArgumentError: An argument is wrong, or the plan is; its text says which column.

    Example:
        >>> _ = Path("a.jsonl").write_text("".join(f'{{"x": {n}}}\n' for n in range(6)))
        >>> plan = Plan(JsonLines(("a.jsonl",), {"x": "int64"}), order=Order(shuffle=False))
        >>> with PlanBatches(plan, 2, epochs=1) as batches:
        ...     [batch["x"].tolist() for batch in batches]
        [[0, 1], [2, 3], [4, 5]]
    """

    def __init__(
        self,
        plan: Plan,
        size: int,
        *,
        workers: int | None = None,
        ahead: int = 4,
        last: Literal["drop", "short"] = "drop",
        epochs: int | None = None,
        rank: int = 0,
        ranks: int = 1,
        pad: bool = True,
        pin: bool = False,
        quarantine: Path | str | None = None,
    ) -> None:
        workers = len(os.sched_getaffinity(0)) if workers is None else workers
        for name, value in (("size", size), ("workers", workers), ("ahead", ahead)):
            if value < 1:
                raise ArgumentError(f"`{name}` must be at least 1, got {value}")
        if last not in ("drop", "short"):
            raise ArgumentError(f"`last` is {last!r}; choose 'drop' or 'short'")
        if not 0 <= rank < ranks:
            raise ArgumentError(f"`rank` {rank} is not one of {ranks} ranks, 0 to {ranks - 1}")
        self.plan, self.size, self.workers, self.ahead = plan, size, workers, ahead
        self._last, self._epochs, self._pad = last, epochs, pad
        self._of: tuple[int, int] = (rank, ranks)
        self._runner = Runner(plan)
        self._buffers = Buffers(pin)
        self._quarantine = Quarantine(
            plan.most_corrupt, Path(quarantine) if quarantine else None
        )
        samples = len(self._runner.samples)
        self._schedule = Schedule(plan.order, samples, size, last, self._lengths())
        self._threads: ThreadPoolExecutor | None = None
        self._pending: deque[Assembly] = deque()
        self._pending_of = self._of
        self._next = 0

    def __len__(self) -> int:
        """How many batches an epoch has."""
        return len(self._schedule)

    @property
    def samples(self) -> int:
        """How many samples the source has."""
        return len(self._runner.samples)

    @property
    def facts(self) -> dict[str, Any]:
        """Further facts that the source knows, such as `classes`."""
        return self._runner.samples.facts

    @property
    def corrupt(self) -> tuple[CorruptSample, ...]:
        """The damaged samples found so far."""
        return self._quarantine.samples

    @property
    def identity(self) -> str:
        """What decides which samples a batch has; a resumed run must share it."""
        epoch = f"{len(self)} batches of {self.size} from {self.samples} samples"
        return f"plan {self.plan.fingerprint()}: {epoch}"

    def batch(self, index: int, rank: int = 0, ranks: int = 1) -> dict[str, Any]:
        """Return the part of a rank of a batch, and prepare the ones after it.

        Raises:
            ArgumentError: The rows of a batch cannot be shared equally by the ranks.
            DamagedError: More samples are damaged than the plan allows.
        """
        if self.size % ranks and self._last == "drop":
            raise ArgumentError(
                f"a batch of {self.size} rows cannot be shared equally by {ranks} ranks; use "
                f"a `size` that is a multiple of {ranks}"
            )
        expected = self._pending[0].number if self._pending else None
        if expected != index or self._pending_of != (rank, ranks):
            self._cancel()
            self._pending_of = (rank, ranks)
            self._submit(index)
        self._fill()
        ready = self._pending.popleft()
        try:
            found = ready.tensors(self._pad)
        except BaseException:
            self._cancel()
            raise
        # The next ones are made while this one is used.
        self._fill(ready.number + 1)
        return found

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> dict[str, Any]:
        if self._epochs is not None and self._next >= self._epochs * len(self):
            raise StopIteration
        found = self.batch(self._next, *self._of)
        self._next += 1
        return found

    def state(self) -> dict[str, Any]:
        """Return where iterating is, as plain JSON."""
        return {"next": self._next, "of": self.identity}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue where another loader of the same plan was.

        Raises:
            ArgumentError: It was of another plan or size, or the source has other samples.
            DamagedError: It is not a state.
        """
        try:
            position, identity = int(state["next"]), str(state["of"])
        except (KeyError, TypeError, ValueError) as problem:
            raise DamagedError(f"this is not the state of a loader: {problem}") from problem
        if identity != self.identity:
            raise ArgumentError(
                f"the state is of {identity}; this loader has {self.identity}, so its batches "
                "would differ"
            )
        self._next = position

    def close(self) -> None:
        """Stop the threads. The next batch starts them again."""
        self._cancel()
        if self._threads is not None:
            self._threads.shutdown(wait=True)
            self._threads = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fill(self, first: int = 0) -> None:
        number = self._pending[-1].number + 1 if self._pending else first
        end = None if self._epochs is None else self._epochs * len(self)
        while len(self._pending) < self.ahead and (end is None or number < end):
            self._submit(number)
            number += 1

    def _cancel(self) -> None:
        for each in self._pending:
            for future in each.futures:
                future.cancel()
        self._pending.clear()

    def _submit(self, number: int) -> None:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.workers, "hotgrid-data")
        rows = self._schedule.rows(number)
        rank, ranks = self._pending_of
        places = range(rank, len(rows.indices), ranks)
        made = Assembly(number, rows, places, self._runner.types, self._buffers)
        # Two chunks for every worker: small enough to share, large enough to be worth it.
        chunk = max(1, -(-len(places) // (2 * self.workers)))
        made.futures = [
            self._threads.submit(self._make, made, range(at, min(at + chunk, len(places))))
            for at in range(0, len(places), chunk)
        ]
        self._pending.append(made)

    def _make(self, made: Assembly, rows: range) -> None:
        for row in rows:
            self._sample(made, row)

    def _sample(self, made: Assembly, row: int) -> None:
        """Make a row, of its sample or of the next one in the batch that is not damaged."""
        indices, repeats = made.rows.indices, made.rows.repeats
        place = made.places[row]
        for step in range(len(indices)):
            at = (place + step) % len(indices)
            # A substitute draws other numbers than the sample itself does.
            repeat = 0 if repeats is None else int(repeats[at])
            repeat = repeat if step == 0 else -1 - place
            slots = made.slots(row)
            try:
                values = self._runner.run(int(indices[at]), made.rows.epoch, repeat, slots)
            except CorruptError as problem:
                if self.plan.corrupt == "raise":
                    raise DamagedError(str(problem)) from problem
                self._quarantine.add(problem.sample)
                if self.plan.corrupt == "drop":
                    made.dropped.add(row)
                    return
                continue
            for name, value in values.items():
                if value is not slots.get(name) and self._runner.types[name].fixed:
                    self._runner.require_shape(name, value)
            made.put(row, values, slots)
            return
        raise DamagedError(f"all {len(indices)} samples of batch {made.number} are damaged")

    def _lengths(self) -> Any:
        """The lengths of all samples, where there are buckets."""
        order = self.plan.order
        if not order.buckets:
            return None
        known = self.plan.types()
        if order.length not in known or str(known[order.length]) not in ("int64", "int32"):
            kind = known.get(order.length, "missing")
            raise ArgumentError(f"`length` names column `{order.length}`, which is {kind}")
        samples = self._runner.samples
        if order.length in self.plan.source.columns():
            try:
                return np.array(samples.values(order.length), np.int64)
            except (DamagedError, TypeError):
                # A damaged sample, or a null: asked one by one, the others have lengths.
                pass
        runner = Runner(self.plan, [order.length], samples)
        with ThreadPoolExecutor(self.workers) as threads:
            found = threads.map(lambda n: _length(runner, n), range(len(samples)))
            return np.array([*found], np.int64)


def _length(runner: Runner, index: int) -> int:
    """The length of a sample; a damaged one has none, and is found when its turn comes."""
    try:
        return int(next(iter(runner.run(index).values())))
    except CorruptError:
        return 0
