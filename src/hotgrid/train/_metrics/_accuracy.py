"""How often the right class has the highest score, or one of the highest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from hotgrid.contracts import Contract
from hotgrid.errors import ArgumentError

from ._metric import Metric, Seen, Sums, Window

_SCORES = Contract("... classes")
# As in torch's cross entropy: such targets do not count.
_IGNORED = -100


@dataclass(frozen=True)
class Accuracy(Metric):
    """The share of items whose right class has the highest score.

    The step function returns `scores [..., classes]` and `targets [...]`. Targets of -100 do
    not count.

    Example:
        >>> scores = torch.tensor([[0.1, 0.9], [0.8, 0.2]])
        >>> sums = Accuracy().sums(Seen({"scores": scores, "targets": torch.tensor([1, 1])}))
        >>> [float(each) for each in sums]
        [1.0, 2.0]
    """

    name: ClassVar[str] = "accuracy"  # pyright: ignore[reportIncompatibleMethodOverride]
    better: ClassVar[Literal["lowest", "highest"] | None] = "highest"

    def sums(self, seen: Seen) -> Sums:
        """Return hits and items."""
        scores, targets = _scored(seen, self.name)
        return (scores.argmax(-1) == targets).sum(), (targets != _IGNORED).sum()

    def value(self, sums: Sequence[float], window: Window) -> float | None:
        """Return the share."""
        return sums[0] / sums[1] if sums[1] else None


@dataclass(frozen=True)
class TopAccuracy(Metric):
    """The share of items whose right class is among the `k` highest scores.

    Needs the same outputs as `Accuracy`.

    Example:
        >>> scores = torch.tensor([[0.1, 0.5, 0.4], [0.8, 0.1, 0.1]])
        >>> seen = Seen({"scores": scores, "targets": torch.tensor([2, 0])})
        >>> [float(each) for each in TopAccuracy(2).sums(seen)]
        [2.0, 2.0]
    """

    k: int = 5
    better: ClassVar[Literal["lowest", "highest"] | None] = "highest"

    def __post_init__(self) -> None:
        if type(self.k) is not int or self.k < 1:
            raise ArgumentError(f"`k` is {self.k!r}; expected a number from 1")

    @property
    def name(self) -> str:
        """Such as `top-5 accuracy`."""
        return f"top-{self.k} accuracy"

    def sums(self, seen: Seen) -> Sums:
        """Return hits and items."""
        scores, targets = _scored(seen, self.name)
        best = scores.topk(min(self.k, scores.shape[-1]), dim=-1).indices
        return (best == targets[..., None]).sum(), (targets != _IGNORED).sum()

    def value(self, sums: Sequence[float], window: Window) -> float | None:
        """Return the share."""
        return sums[0] / sums[1] if sums[1] else None


def _scored(seen: Seen, name: str) -> tuple[Tensor, Tensor]:
    scores, targets = seen.need("scores", name), seen.need("targets", name)
    _SCORES.check(scores)
    if scores.shape[:-1] != targets.shape:
        raise ArgumentError(
            f"the metric `{name}` has scores of shape {tuple(scores.shape)} and targets of "
            f"shape {tuple(targets.shape)}; expected [..., classes] and [...]"
        )
    return scores.detach(), targets
