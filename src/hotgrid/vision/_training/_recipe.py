"""`VisionRecipe`: everything about a run of training that is not the data or the device."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hotgrid.data import build_document, check_document, document_fields
from hotgrid.errors import ArgumentError
from hotgrid.vision._augment import AugmentStage, StageSequence


@dataclass(frozen=True)
class VisionRecipe:
    """How a model of images is trained. Data: it can be saved, compared and changed.

    Args:
        epochs: Passes over the images.
        batch: Images in a step, of all ranks together.
        optimizer: adamw, sgd (with Nesterov momentum), or muon for matrices and adamw else.
        rate: The highest learning rate.
        rate_batch: The batch that `rate` is for; it grows with the batch. 0: it does not.
        decay: Weight decay of matrices and kernels; vectors have none.
        betas: The betas of adamw.
        momentum: The momentum of sgd and muon.
        warmup: Epochs in which the rate rises.
        shape: How it falls then: cosine or linear.
        end: What it ends at, as a share of the highest.
        clip: The largest norm of all gradients together; 0 is no limit.
        smoothing: Label smoothing.
        drop_path: Stochastic depth of the last block.
        average: The decay of a moving average of the weights; 0 has none.
        norm_rate: The rate of the vectors of norms is this many times that of others. Beside
            1, they have weight decay too, as much in a step as others.
        layer_decay: The rate of a layer is this share of that of the next; 1 is none.
        freeze: A path expression of `hotgrid.nn.select` for what is not trained.
        repeats: How often a sample is seen in a row, augmented otherwise (in memory only).
        flip: Evaluate at the end on images and their mirror images together.
        augment: What is done with bytes.
        after: What is done after normalising, such as erasing and mixing.

    Raises:
        ArgumentError: A value is not possible.

    Example:
        >>> VisionRecipe(rate=0.1).changed(epochs=20.0).epochs
        20.0
    """

    epochs: float = 100.0
    batch: int = 256
    optimizer: Literal["adamw", "sgd", "muon"] = "adamw"
    rate: float = 1e-3
    rate_batch: int = 0
    decay: float = 0.05
    betas: tuple[float, float] = (0.9, 0.999)
    momentum: float = 0.9
    warmup: float = 5.0
    shape: Literal["cosine", "linear"] = "cosine"
    end: float = 0.01
    clip: float = 0.0
    smoothing: float = 0.1
    drop_path: float = 0.0
    average: float = 0.0
    norm_rate: float = 1.0
    layer_decay: float = 1.0
    freeze: str = ""
    repeats: int = 1
    flip: bool = False
    augment: AugmentStage = field(default_factory=StageSequence)
    after: AugmentStage = field(default_factory=StageSequence)

    def __post_init__(self) -> None:
        check_document(self, "the recipe")
        for name in ("epochs", "batch", "rate", "repeats", "layer_decay", "norm_rate"):
            if not getattr(self, name) > 0:
                self._refuse(name, "a number above 0")
        for name in ("smoothing", "drop_path", "average", "decay", "clip", "warmup", "end"):
            if not getattr(self, name) >= 0:
                self._refuse(name, "0 or more")
        for name in ("smoothing", "drop_path", "average"):
            if not getattr(self, name) < 1:
                self._refuse(name, "a number below 1")

    def _refuse(self, name: str, expected: str) -> None:
        raise ArgumentError(
            f"`{name}` of the recipe is {getattr(self, name)!r}; expected {expected}"
        )

    @property
    def highest(self) -> float:
        """The highest learning rate, for the batch."""
        return self.rate * (self.batch / self.rate_batch if self.rate_batch else 1.0)

    def to_plain(self) -> dict[str, Any]:
        """Return the recipe as JSON, without defaults."""
        return document_fields(self)

    @classmethod
    def from_plain(cls, document: Any, where: str = "the recipe") -> VisionRecipe:
        """Read a recipe.

        Raises:
            ArgumentError: A setting is unknown or of another type.
        """
        return build_document(cls, document, where)

    def changed(self, **settings: Any) -> VisionRecipe:
        """Return the recipe with other settings.

        Raises:
            ArgumentError: There is no such setting, or a value is not possible.
        """
        plain = self.to_plain() | {
            name: value.to_plain() if isinstance(value, AugmentStage) else value
            for name, value in settings.items()
        }
        return self.from_plain(plain)

    def with_texts(self, texts: Mapping[str, str]) -> VisionRecipe:
        """Return the recipe with settings that are given as text, as on a command line."""
        return self.changed(**{name: read_text(value) for name, value in texts.items()})


def scaled_warmup(recipe: VisionRecipe) -> VisionRecipe:
    """The recipe with a warmup that is at most a fifth of a run, for short ones."""
    return replace(recipe, warmup=min(recipe.warmup, recipe.epochs / 5))


def read_text(text: str) -> Any:
    """A value as Python or JSON writes it; other text as it is."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        pass
    try:
        return json.loads(text)
    except ValueError:
        return text
