"""The fields that every model's configuration has in common."""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

from hotgrid.data import check_document
from hotgrid.errors import ArgumentError


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The shape of an image model; each family adds its own numbers.

    Args:
        name: The name that `create_model` knows it by.
        num_classes: How many logits there are; 0 for a model without a head.
        in_chans: Channels of the images.
        image_size: Height and width of the images. Convolutional models take any.
        drop_path: Stochastic depth of the last block; it grows linearly from 0.
        dropout: Share of the pooled features set to 0 in training, before the head.
        checkpointing: Whether training recomputes blocks in the backward pass, which needs
            less memory and more time.

    Raises:
        ArgumentError: A number is out of range.
    """

    family: ClassVar[str] = ""

    name: str
    num_classes: int = 1000
    in_chans: int = 3
    image_size: int = 224
    drop_path: float = 0.0
    dropout: float = 0.0
    checkpointing: bool = False

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            # JSON has no tuples.
            if isinstance(value, list):
                object.__setattr__(self, field.name, tuple(value))
        check_document(self, f"`{self.name}`")
        if self.num_classes < 0:
            raise ArgumentError(f"`num_classes` {self.num_classes}: choose 0 (no head) or more")
        for name in ("in_chans", "image_size"):
            if getattr(self, name) < 1:
                raise ArgumentError(f"`{name}` must be at least 1, got {getattr(self, name)}")
        for name in ("drop_path", "dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ArgumentError(
                    f"`{name}` {getattr(self, name)}: choose a share from 0 up to, not "
                    "including, 1"
                )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data; `create_model(**it)` makes the same model."""
        return dataclasses.asdict(self)
