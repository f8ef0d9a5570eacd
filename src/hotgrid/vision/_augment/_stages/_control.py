"""Stages of stages: in turn, perhaps, or one of several."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError
from hotgrid.vision._augment._draws import BatchDraws
from hotgrid.vision._augment._stage import AugmentStage, ImageBatch, augment_stage


@augment_stage("sequence")
@dataclass(frozen=True)
class StageSequence(AugmentStage):
    """Apply stages in turn.

    A stage at the end does not change the random numbers of those before it.

    Args:
        stages: The stages.
    """

    stages: tuple[AugmentStage, ...] = ()

    @property
    def parts(self) -> tuple[AugmentStage, ...]:
        """The stages."""
        return self.stages

    def apply(self, batch: ImageBatch, draws: BatchDraws) -> ImageBatch:
        """Return the changed batch."""
        for number, stage in enumerate(self.stages):
            batch = stage.apply(batch, draws.stream(number))
        return batch


@augment_stage("with_prob")
@dataclass(frozen=True)
class WithProb(AugmentStage):
    """Apply a stage to some of the samples.

    Args:
        prob: How likely a sample is one of them.
        stage: The stage.
    """

    prob: float
    stage: AugmentStage

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("prob", 0 <= self.prob <= 1, "a probability from 0 to 1")

    @property
    def parts(self) -> tuple[AugmentStage, ...]:
        """The stage."""
        return (self.stage,)

    def apply(self, batch: ImageBatch, draws: BatchDraws) -> ImageBatch:
        """Return the changed batch."""
        changed = self.stage.apply(batch, draws.stream(0))
        return chosen(draws.chance(self.prob), changed, batch, self.stage)


@augment_stage("choose_one")
@dataclass(frozen=True)
class ChooseOne(AugmentStage):
    """Apply one of several stages to each sample. All are computed.

    Args:
        stages: The stages.
        weights: How likely each is, relative to the others; by default all alike.
        noop: The weight of none of them.
    """

    stages: tuple[AugmentStage, ...]
    weights: tuple[float, ...] = ()
    noop: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect("stages", len(self.stages) > 0, "one or more stages")
        good = not self.weights or len(self.weights) == len(self.stages)
        good = good and all(weight >= 0 for weight in (*self.weights, self.noop))
        self._expect("weights", good, "one for each stage, 0 or more")
        self._expect("weights", sum(self._all()) > 0, "one that is above 0")

    @property
    def parts(self) -> tuple[AugmentStage, ...]:
        """The stages."""
        return self.stages

    def _all(self) -> tuple[float, ...]:
        return (*(self.weights or (1.0,) * len(self.stages)), self.noop)

    def apply(self, batch: ImageBatch, draws: BatchDraws) -> ImageBatch:
        """Return the changed batch."""
        pick = draws.choice(self._all())
        found = batch
        for number, stage in enumerate(self.stages):
            changed = stage.apply(batch, draws.stream(number))
            found = chosen(pick == number, changed, found, stage)
        return found


def chosen(
    mine: Tensor, changed: ImageBatch, kept: ImageBatch, stage: AugmentStage
) -> ImageBatch:
    """Some samples of one batch, the others of another."""
    a, b = changed.images, kept.images
    if a.dtype != b.dtype or a.shape != b.shape:
        raise ArgumentError(
            f"stage `{stage.name}` makes {a.dtype} {list(a.shape[1:])} of {b.dtype} "
            f"{list(b.shape[1:])}, so it cannot be applied to some samples alone"
        )
    images = torch.where(mine[:, None, None, None], a, b)
    targets = kept.targets
    if targets is not None and changed.targets is not None and changed.targets is not targets:
        targets = torch.where(mine[:, None], changed.targets, targets)
    return ImageBatch(images, targets)
