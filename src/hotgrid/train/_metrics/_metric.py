"""`Metric`: the base of all metrics, and the data that they are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias

from torch import Tensor

from hotgrid.errors import ArgumentError, near

Sums: TypeAlias = "tuple[Tensor | float, ...]"


# One is made for every micro-batch, and a frozen dataclass takes three times as long to make.
class Seen:
    """The data that a metric is given: one micro-batch, or one step.

    Attributes:
        outputs: The outputs of the step function, `loss` among them.
        batch: The micro-batch.
        norms: The norm of the gradient of every group; empty except in a step.
    """

    __slots__ = ("batch", "norms", "outputs")

    def __init__(
        self,
        outputs: Mapping[str, Any],
        batch: Any = None,
        norms: Mapping[str, Tensor] = MappingProxyType({}),
    ) -> None:
        self.outputs, self.batch, self.norms = outputs, batch, norms

    def need(self, name: str, metric: str) -> Any:
        """Return an output that a metric cannot do without.

        Raises:
            ArgumentError: The step function did not return it.
        """
        try:
            return self.outputs[name]
        except KeyError:
            hint = near(name, self.outputs)
            raise ArgumentError(
                f"the metric `{metric}` needs `{name}`, and the step function returned "
                f"{', '.join(self.outputs)}{hint}; return a dict such as "
                f'{{"loss": ..., "{name}": ...}}'
            ) from None

    def items(self) -> Tensor | float:
        """How many items there were: `items`, `count`, or the rows of the batch."""
        return items_of(self.outputs, self.batch)


@dataclass(frozen=True, slots=True)
class Window:
    """The steps that are shown together.

    Attributes:
        seconds: The time they took, without evaluation and checkpoints.
        ranks: The number of ranks.
        device: The name of the device, such as `NVIDIA H200`.
        precision: The precision of the computation: `float32` or `bfloat16`.
    """

    seconds: float = 0.0
    ranks: int = 1
    device: str = "cpu"
    precision: str = "float32"


class Metric(ABC):
    """A number that is shown, kept as sums until then.

    `sums` gives a few additive numbers for each micro-batch. They are added over
    micro-batches, steps and ranks, so the value is that of all items together, also if
    batches have different sizes. Tensors stay on their device; nothing waits for them
    before the value is shown.

    A metric is a frozen dataclass with JSON values as fields. A new one is a class with
    `name`, `sums` and `value`.

    Attributes:
        better: Whether the lowest or the highest value is the best; None if neither is.
        per: Whether it sees every micro-batch, or every step after its last one.
        unit: The text that follows the value.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Largest(Metric):
        ...     name = "mean largest score"
        ...     def sums(self, seen):
        ...         best = seen.need("scores", self.name).amax(-1)
        ...         return best.sum(), float(best.numel())
        ...     def value(self, sums, window):
        ...         return sums[0] / sums[1]
        >>> seen = Seen({"scores": torch.tensor([[1.0, 2.0], [4.0, 3.0]])})
        >>> Largest().value([float(each) for each in Largest().sums(seen)], Window())
        3.0
    """

    better: ClassVar[Literal["lowest", "highest"] | None] = None
    per: ClassVar[Literal["batch", "step"]] = "batch"
    unit: ClassVar[str] = ""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the value; a class variable will do."""

    @abstractmethod
    def sums(self, seen: Seen) -> Sums:
        """Return the additive numbers of a micro-batch or a step: 0-d tensors or floats."""

    @abstractmethod
    def value(self, sums: Sequence[float], window: Window) -> float | None:
        """Return the value of summed numbers; None is shown as n/a."""

    def to_json(self) -> dict[str, Any]:
        """Return the metric as JSON, for `metric_from_json`."""
        return {"metric": type(self).__name__, **asdict(self)}  # pyright: ignore[reportArgumentType]


def metric_from_json(text: Mapping[str, Any]) -> Metric:
    """Return the metric that `to_json` described.

    Raises:
        ArgumentError: There is no such metric, or it has other fields.

    Example:
        >>> metric_from_json(TopAccuracy(5).to_json())
        TopAccuracy(k=5)
    """
    known = {each.__name__: each for each in _kinds(Metric)}
    fields = dict(text)
    name = fields.pop("metric", None)
    if name not in known:
        raise ArgumentError(
            f"there is no metric {name!r}{near(name, known)}; there are "
            f"{', '.join(sorted(known))}"
        )
    try:
        return known[name](**fields)
    except TypeError as problem:
        raise ArgumentError(f"{text!r} is not a metric: {problem}") from None


def _kinds(kind: type[Metric]) -> Iterator[type[Metric]]:
    for each in kind.__subclasses__():
        yield each
        yield from _kinds(each)


def items_of(outputs: Mapping[str, Any], batch: Any) -> Tensor | float:
    """The items of a micro-batch: `items`, `count`, or the rows of the batch."""
    found = outputs["items"] if "items" in outputs else outputs.get("count")
    if found is not None:
        return found
    # The usual batch first: this is done in every step.
    if type(batch) is tuple and batch and isinstance(batch[0], Tensor):
        batch = batch[0]
    if isinstance(batch, Tensor) and (shape := batch.shape):
        return float(shape[0])
    return float(_rows(batch))


def _rows(batch: Any) -> int:
    """The rows of the first tensor in a batch."""
    if isinstance(batch, (tuple, list)) and batch and isinstance(batch[0], Tensor):
        batch = batch[0]
    if isinstance(batch, Tensor):
        return batch.size(0) if batch.ndim else 1
    inner = batch.values() if isinstance(batch, Mapping) else batch
    if isinstance(inner, Sequence) or isinstance(batch, Mapping):
        for each in inner:
            if rows := _rows(each):
                return rows
    return 0
