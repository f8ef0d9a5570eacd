"""The settings of a run for saving and evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol, cast

from torch import nn

from hotgrid.errors import ArgumentError
from hotgrid.train._metrics import Loss, Metric
from hotgrid.train._optimizers import expect_shapes

from ._batches import Batches
from ._early_stopping import EarlyStopping
from ._guard import LossGuard


class FiniteBatches(Batches, Protocol):
    """Batches with a known length."""

    def __len__(self) -> int:
        """The number of batches in one pass."""
        ...


@dataclass(frozen=True)
class Saving:
    """Which steps are saved, and which of them are kept.

    A checkpoint is removed only when no rule keeps it. The last step, and the one at which
    SIGTERM stopped a run, are always saved.

    Args:
        every: Save every N steps.
        last: How many of the newest are kept.
        best: A value, such as `valid/loss`. A step at which it improves is saved, and the
            best is kept.
        better: Whether the lowest or the highest value is the best; by default what the
            metric says, such as the highest accuracy.
        keep_every: Steps that are a multiple of this are kept.
        asynchronous: Write in a thread, while training continues.

    Example:
        >>> Saving(every=500, best="valid/loss").last
        3
    """

    every: int = 1000
    last: int = 3
    best: str | None = None
    better: Literal["lowest", "highest"] | None = None
    keep_every: int | None = None
    asynchronous: bool = True

    def __post_init__(self) -> None:
        expect_counts(every=self.every, last=self.last)
        if self.keep_every is not None:
            expect_counts(keep_every=self.keep_every)
        if self.better not in ("lowest", "highest", None):
            raise ArgumentError(f"`better` is {self.better!r}; expected lowest or highest")


@dataclass(frozen=True)
class Evaluation:
    """Evaluate on other batches at intervals, and at the end.

    Evaluation uses averaged parameters if the trainer has an average, without gradients and
    with the module in `eval` mode. Ranks share the batches.

    Args:
        batches: The batches of one pass, such as `TensorBatches(..., endless=False)`.
        every: Evaluate every N steps.
        metrics: The metrics to show.
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
        expect_counts(every=self.every)
        if not isinstance(self.batches, Batches) or not hasattr(self.batches, "__len__"):
            raise ArgumentError(
                f"`batches` is a {type(self.batches).__name__}; evaluation needs a source with "
                "`batch(index, rank, ranks)` and `len`, such as `TensorBatches(..., "
                "endless=False)`"
            )
        if not len(self.batches):
            raise ArgumentError("`batches` of an evaluation has no batches; give at least one")
        expect_metrics(self.metrics)
        if self.name == "train":
            raise ArgumentError("`name` is 'train', the name of training values; use another")
        if getattr(self.batches, "endless", False):
            raise ArgumentError(
                "`batches` of an evaluation are endless, so that some rows of the last batch "
                "would count twice; make them with `endless=False`"
            )


_RULES = MappingProxyType(
    {
        "evaluation": Evaluation,
        "early_stopping": EarlyStopping,
        "saving": Saving,
        "guard": LossGuard,
    }
)


def expect_rules(**given: object) -> None:
    """Refuse a rule of another type than its name stands for; None is no rule."""
    for name, value in given.items():
        kind = _RULES[name].__name__
        if value is not None and not isinstance(value, _RULES[name]):
            raise ArgumentError(f"`{name}` is a {type(value).__name__}; expected `{kind}(...)`")


def expect_counts(**counts: object) -> None:
    """Refuse a value that is not a number from 1; the message names it."""
    for name, value in counts.items():
        if type(value) is not int or value < 1:
            raise ArgumentError(f"`{name}` is {value!r}; expected a number from 1")


def expect_able(precision: object, guard: LossGuard, folder: object) -> None:
    """Refuse an unknown precision, and a guard that needs checkpoints where none are kept."""
    if precision not in ("float32", "bfloat16"):
        raise ArgumentError(f"`precision` is {precision!r}; expected float32 or bfloat16")
    if guard.rollback and folder is None:
        raise ArgumentError("`LossGuard(rollback=True)` needs a `folder`, for checkpoints")


def expect_compilable(compiled: object, accumulate: int, ranks: int) -> None:
    """Refuse an unknown way to compile, and CUDA graphs where gradients outlive a graph."""
    if compiled not in (True, False, "graphs"):
        raise ArgumentError(f"`compiled` is {compiled!r}; expected True, False or graphs")
    if compiled == "graphs" and (accumulate > 1 or ranks > 1):
        raise ArgumentError(
            f"`compiled` is 'graphs', with {accumulate} micro-batches in a step and {ranks} "
            "ranks; CUDA graphs need one of each. Use `compiled=True`"
        )


def expect_given(module: object, loss: object, metrics: object) -> None:
    """Check that these are a module, a step function and a list of metrics."""
    if not isinstance(module, nn.Module):
        raise ArgumentError(f"`module` is a {type(module).__name__}; expected an nn.Module")
    if not callable(loss):
        raise ArgumentError(
            f"`loss` is {loss!r}; expected a function of the module and a batch"
        )
    expect_shapes(module)
    expect_metrics(metrics)


def expect_metrics(metrics: object) -> None:
    """Refuse anything but a list of metrics, and two of the same name."""
    wrong = metrics
    if isinstance(metrics, Sequence) and not isinstance(metrics, str):
        wrong = next((each for each in metrics if not isinstance(each, Metric)), None)
    if wrong is not None:
        raise ArgumentError(
            f"`metrics` has {wrong!r}; expected a list of metrics, such as [Accuracy()]"
        )
    names = [each.name for each in cast("Sequence[Metric]", metrics)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ArgumentError(
            f"two of the `metrics` are called `{twice}`; leave one out, or give it another "
            "`name`"
        )
