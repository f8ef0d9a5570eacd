"""Training runs: rows, ranks, saving, and messages about failures."""

import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from hotgrid.chat._model._folder import ABOUT, TOKENIZER
from hotgrid.chat._model._gpt import GPT, IGNORED
from hotgrid.chat._model._vocabulary import token_bytes
from hotgrid.cluster import Communicator, world
from hotgrid.errors import ArgumentError
from hotgrid.tokens import Encoding
from hotgrid.train import (
    BitsPerByte,
    Evaluation,
    Groups,
    Loss,
    ModelFlops,
    Saving,
    Throughput,
    Trainer,
    TrainingOutcome,
)

from ._loader import HeldOutRows, TextBatches, TokenBatch

# The folder of the finished model in the folder of its run.
FINISHED = "model"
# The most rows that a rank computes at once, where nothing is given.
_ROWS = {"cuda": 32}
_ROWS_ELSEWHERE = 8
# How often a run is saved, evaluated and shown, where nothing is given.
_SAVED, _EVALUATED, _SHOWN = 20, 10, 50


@dataclass(frozen=True)
class RunSettings:
    """How a run is carried out.

    Args:
        folder: The folder of the run.
        resume: Continue the run in the folder; `auto` begins one if there is none.
        device: Where to compute; by default a GPU if there is one.
        precision: `bfloat16` computes in it where that is safe.
        rows: Rows that a rank computes at once. Fewer need less memory; the batch stays the
            same.
        compiled: Compile the model.
        average: The decay of a moving average of the parameters; None has none.
        isolate: Whether tokens see those of their own document alone.
        evaluate_every: Evaluate every N steps; by default ten times in all.
        save_every: Save every N steps; by default twenty times in all.
        log_every: Show metrics every N steps; by default fifty times in all.
        seed: The seed of weights, order and shuffling.
        show: Show progress on standard error.
    """

    folder: str | Path
    resume: bool | Literal["auto"] = False
    device: str | None = None
    precision: Literal["float32", "bfloat16"] = "float32"
    rows: int | None = None
    compiled: bool = False
    average: float | None = None
    isolate: bool = False
    evaluate_every: int | None = None
    save_every: int | None = None
    log_every: int | None = None
    seed: int = 0
    show: bool | None = None

    def where(self) -> str:
        """The device."""
        return self.device or ("cuda" if torch.cuda.is_available() else "cpu")

    def first_rank(self) -> bool:
        """Whether this is the rank that prints."""
        return world(self.where()).rank == 0

    def shared(self, total: int, ranks: int) -> tuple[int, int]:
        """Return the rows of a micro-batch, and how many of them are in a step.

        Raises:
            ArgumentError: The rows of a batch cannot be shared evenly.
        """
        if total < ranks or total % ranks:
            raise ArgumentError(
                f"a batch of {total} rows cannot be shared by {ranks} ranks: choose "
                "`batch_tokens` as a multiple of context x ranks"
            )
        mine = total // ranks
        if self.rows is not None:
            if self.rows < 1 or mine % self.rows:
                raise ArgumentError(
                    f"{mine} rows on each rank cannot be computed {self.rows} at a time: "
                    "choose a divisor for `rows`"
                )
            return self.rows, mine // self.rows
        most = _ROWS.get(torch.device(self.where()).type, _ROWS_ELSEWHERE)
        rows = max(each for each in range(1, min(most, mine) + 1) if mine % each == 0)
        return rows, mine // rows


@dataclass(frozen=True)
class Work:
    """The parts of a training run.

    Attributes:
        model: What is trained.
        optimizer: Its groups.
        batches: Where batches come from.
        valid: What it is evaluated on; None for nothing.
        steps: How many steps.
        accumulate: Micro-batches of a step.
        asked: What else determines the result.
        about: The contents of `model.json`.
        encoding: The vocabulary.
        tokenizer: The contents of `tokenizer.json`.
    """

    model: GPT
    optimizer: Groups
    batches: TextBatches
    valid: HeldOutRows | None
    steps: int
    accumulate: int
    asked: Mapping[str, str]
    about: bytes
    encoding: Encoding
    tokenizer: bytes


def carry_out(work: Work, run: RunSettings, ranks: Communicator) -> TrainingOutcome:
    """Train, and end with a helpful message when memory runs out.

    Raises:
        ArgumentError: Memory runs out, or the run cannot be resumed.
        UnstableError: The loss is no longer finite; earlier checkpoints stay as they are.
    """
    evaluation = None
    if work.valid is not None:
        every = _every(run.evaluate_every, work.steps // _EVALUATED)
        evaluation = Evaluation(work.valid, every, (Loss(), BitsPerByte()))
    with _memory_suffices(work, run):
        trainer = Trainer(
            work.model,
            step_function(work.encoding, work.model.config.vocabulary, run.where()),
            work.batches,
            work.optimizer,
            steps=work.steps,
            folder=run.folder,
            device=run.where(),
            ranks=ranks,
            accumulate=work.accumulate,
            precision=run.precision,
            compiled=run.compiled,
            average=run.average,
            metrics=(BitsPerByte(), Throughput(), ModelFlops(work.model.flops())),
            evaluation=evaluation,
            saving=Saving(every=_every(run.save_every, math.ceil(work.steps / _SAVED))),
            log_every=_every(run.log_every, work.steps // _SHOWN),
            seed=run.seed,
            asked={**work.asked, "ranks": str(ranks.size)},
            files={ABOUT: work.about, TOKENIZER: work.tokenizer, FINISHED: None},
            show=run.show,
        )
        try:
            outcome = trainer.run(resume=run.resume)
        finally:
            work.batches.close()
        if trainer.average is not None:
            with trainer.averaged(), torch.no_grad():
                kept = {name: each.clone() for name, each in work.model.state_dict().items()}
            work.model.load_state_dict(kept)
    return outcome


def _every(given: int | None, usual: int) -> int:
    return max(1, usual) if given is None else given


def step_function(
    encoding: Encoding, vocabulary: int, device: str
) -> Callable[[Any, TokenBatch], dict[str, Tensor]]:
    """Return the loss of a batch, the tokens it is the mean over, and their bytes."""
    sizes = torch.tensor(token_bytes(encoding, vocabulary), device=device)

    def loss(model: Any, batch: TokenBatch) -> dict[str, Tensor]:
        counted = batch.targets != IGNORED
        return {
            "loss": model(batch.tokens, targets=batch.targets, documents=batch.documents),
            "count": counted.sum(),
            "bytes": (sizes[batch.targets.clamp(min=0)] * counted).sum(),
        }

    return loss


@contextlib.contextmanager
def _memory_suffices(work: Work, run: RunSettings) -> Iterator[None]:
    try:
        yield
    except (torch.OutOfMemoryError, RuntimeError) as problem:
        text = str(problem)
        known = isinstance(problem, torch.OutOfMemoryError) or "can't allocate memory" in text
        if not known:
            raise
        raise ArgumentError(
            f"out of memory on {run.where()} ({text.splitlines()[0][:160]}). "
            "Compute fewer rows at once with `--rows` (the batch stays the same), or shorten "
            "rows with `--context`; `--precision bfloat16` helps too. The last checkpoint is "
            f"in `{run.folder}`"
        ) from problem


def digest(value: Any) -> str:
    """A short name of any plain value or of bytes."""
    data = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    return hashlib.blake2b(data, digest_size=8).hexdigest()
