"""`AugmentStage`: a step of augmentation as data, and what applies it to a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

import torch
from torch import Tensor

from hotgrid.data import Registry, build_document, check_document, document_fields
from hotgrid.errors import ArgumentError

from ._draws import BatchDraws

Class = TypeVar("Class", bound="type[AugmentStage]")


class ImageBatch(NamedTuple):
    """Images and what they show.

    Attributes:
        images: `[batch, channels, height, width]`, uint8, or floats from 0 to 1.
        targets: Classes `[batch]` or shares of classes `[batch, classes]`; None for neither.
    """

    images: Tensor
    targets: Tensor | None = None


class AugmentStage(ABC):
    """Base of stages: a frozen dataclass with JSON values or other stages as fields.

    A subclass is registered with `@augment_stage` and has `apply`, which is plain arithmetic
    on tensors: no Python that depends on their values, so that a recipe compiles as a whole.

    Attributes:
        name: Its name in configurations.
    """

    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_document(self, f"stage `{self.name}`")

    @abstractmethod
    def apply(self, batch: ImageBatch, draws: BatchDraws) -> ImageBatch:
        """Return the changed batch."""

    @property
    def parts(self) -> tuple[AugmentStage, ...]:
        """The stages inside it."""
        return ()

    @property
    def mixes(self) -> bool:
        """Whether it mixes samples, and with them their targets."""
        return any(part.mixes for part in self.parts)

    def to_plain(self) -> dict[str, Any]:
        """Return the stage as `{"name": ..., "body": {...}}`, without defaults."""
        return {"name": self.name, "body": document_fields(self)}

    @classmethod
    def from_plain(cls, document: Any, where: str = "the augmentation") -> AugmentStage:
        """Read a stage.

        Raises:
            ArgumentError: It is not what `to_plain` returns; the text names the setting.
        """
        if not isinstance(document, Mapping) or not isinstance(document.get("name"), str):
            raise ArgumentError(f"{where}: {str(document)[:60]!r} is not {{name, body}}")
        if unknown := sorted({*document} - {"name", "body"}):
            raise ArgumentError(f"{where} has {unknown}; expected `name` and `body`")
        found = _STAGES.get(document["name"], f"{where}: ")
        return build_document(found, document.get("body", {}), f"stage `{document['name']}`")

    def _expect(self, name: str, good: bool, expected: str) -> None:
        if not good:
            raise ArgumentError(
                f"`{name}` of stage `{self.name}` is {getattr(self, name)!r}; expected "
                f"{expected}"
            )

    def _expect_range(self, name: str, lowest: float, highest: float = float("inf")) -> None:
        low, high = getattr(self, name)
        good = lowest <= low <= high <= highest
        self._expect(name, good, f"two numbers from {lowest:g} to {highest:g}, ascending")


class ImageStage(AugmentStage):
    """Base of stages that change images alone and take any kind of number."""

    @abstractmethod
    def images(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""

    def apply(self, batch: ImageBatch, draws: BatchDraws) -> ImageBatch:
        """Return the changed batch."""
        return batch._replace(images=self.images(batch.images, draws))


class PixelStage(ImageStage):
    """Base of stages that are defined on bytes, as Pillow's are.

    Floats from 0 to 1 are rounded to bytes before, and divided by 255 after.
    """

    @abstractmethod
    def pixels(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images, in uint8 like the given ones."""

    def images(self, images: Tensor, draws: BatchDraws) -> Tensor:
        """Return the changed images."""
        if not images.is_floating_point():
            return self.pixels(images, draws)
        found = self.pixels(to_bytes(images * 255.0), draws)
        return found.to(images.dtype) / 255.0


def to_bytes(values: Tensor) -> Tensor:
    """Floats from 0 to 255, rounded."""
    return values.round().clamp(0.0, 255.0).to(torch.uint8)


_STAGES: Registry[AugmentStage] = Registry("a stage", "hotgrid.augment_stages")


def augment_stage(name: str) -> Callable[[Class], Class]:
    """Register a stage under a name, as a decorator of a frozen dataclass.

    Other packages name theirs as entry points in the group `hotgrid.augment_stages`.

    Args:
        name: Its name in configurations.

    Raises:
        ArgumentError: The name is taken.
    """

    def register(cls: Class) -> Class:
        cls.name = name
        _STAGES.add(name, cls)
        return cls

    return register


def augment_stages() -> dict[str, type[AugmentStage]]:
    """Return every stage by name, including those of other packages.

    Example:
        >>> sorted(augment_stages())[:2]
        ['alternate_flip', 'augmix']
    """
    return {name: _STAGES.get(name) for name in _STAGES.names()}
