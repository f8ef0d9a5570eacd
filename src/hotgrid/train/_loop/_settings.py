"""What a run is asked to do besides training: save and evaluate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from hotgrid.errors import ArgumentError
from hotgrid.train._metrics import Loss, Metric

from ._batches import Batches


class FiniteBatches(Batches, Protocol):
    """Batches of which there are so many."""

    def __len__(self) -> int:
        """The number of batches in one pass."""
        ...


@dataclass(frozen=True)
class Saving:
    """Which steps are saved, and which of them are kept.

    A checkpoint is removed only when no rule keeps it. The last step, and the one at which
    SIGTERM stopped a run, are always saved.

    Args:
        every: Save every so many steps.
        last: How many of the newest are kept.
        best: A value, such as `valid/loss`. A step at which it improves is saved, and the
            best is kept.
        better: Whether the lowest or the highest value is the best.
        keep_every: Steps that are a multiple of this are kept.
        asynchronous: Write in a thread, while training goes on.

    Example:
        >>> Saving(every=500, best="valid/loss").last
        3
    """

    every: int = 1000
    last: int = 3
    best: str | None = None
    better: Literal["lowest", "highest"] = "lowest"
    keep_every: int | None = None
    asynchronous: bool = True

    def __post_init__(self) -> None:
        _expect_count("every", self.every)


@dataclass(frozen=True)
class Evaluation:
    """Evaluate on other batches at intervals, and at the end.

    Evaluation uses averaged parameters if the trainer has an average, without gradients and
    with the module in `eval` mode. Ranks share the batches.

    Args:
        batches: The batches of one pass, such as `TensorBatches(..., endless=False)`.
        every: Evaluate every so many steps.
        metrics: What is shown.
        name: The first part of the names of values, such as `valid` in `valid/loss`.

    Example:
        >>> source = TensorBatches(torch.zeros(10, 2), size=4, endless=False)
        >>> len(Evaluation(source, every=100).batches)
        3
    """

    batches: FiniteBatches
    every: int
    metrics: Sequence[Metric] = (Loss(),)
    name: str = "valid"

    def __post_init__(self) -> None:
        _expect_count("every", self.every)
        if not isinstance(self.batches, Batches) or not hasattr(self.batches, "__len__"):
            raise ArgumentError(
                f"`batches` is a {type(self.batches).__name__}; evaluation needs a source with "
                "`batch(index, rank, ranks)` and `len`, such as `TensorBatches(..., "
                "endless=False)`"
            )


def _expect_count(name: str, value: object) -> None:
    if type(value) is not int or value < 1:
        raise ArgumentError(f"`{name}` is {value!r}; expected a number from 1")
