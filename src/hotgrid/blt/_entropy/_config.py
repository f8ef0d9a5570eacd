"""`EntropyConfig`: the sizes of an entropy model, and presets."""

from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from hotgrid.blt._layers._ids import VOCABULARY
from hotgrid.errors import ArgumentError, near


@dataclass(frozen=True)
class EntropyConfig:
    """The sizes of an `EntropyModel`; the defaults are those of facebook/blt-entropy.

    Args:
        size: Channels of the residual stream.
        layers: How many blocks.
        heads: Heads of attention.
        hidden: The hidden size of MLPs.
        window: How many bytes a byte sees, itself included.
        length: Positions of the rotary table. Longer documents are streamed.
        base: The base of rotary angles.
        eps: Added under the root of norms.
        vocabulary: Bytes and special ids.

    Raises:
        ArgumentError: A size is below 1, or they do not divide.
    """

    size: int = 768
    layers: int = 14
    heads: int = 12
    hidden: int = 2048
    window: int = 512
    length: int = 8192
    base: float = 10_000.0
    eps: float = 1e-5
    vocabulary: int = VOCABULARY

    def __post_init__(self) -> None:
        for name in ("size", "layers", "heads", "hidden", "window", "length", "vocabulary"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ArgumentError(f"`{name}` is {value!r}; expected a whole number from 1")
        if self.size % (2 * self.heads):
            raise ArgumentError(
                f"`size` {self.size} is not a multiple of 2 * {self.heads} heads, as rotary "
                "positions rotate pairs"
            )
        if self.length < self.window:
            raise ArgumentError(
                f"`length` {self.length} is below the window of {self.window} bytes"
            )

    @property
    def receptive_field(self) -> int:
        """How many bytes a prediction depends on, the last one included."""
        return self.layers * (self.window - 1) + 1

    @classmethod
    def from_table(cls, table: dict[str, Any], place: str) -> "EntropyConfig":
        """Return a config from the metadata of a file.

        Raises:
            ArgumentError: A key is unknown.
        """
        known = {each.name: each.type for each in fields(cls)}
        for key in table:
            if key not in known:
                raise ArgumentError(f"{place} has an unknown size `{key}`{near(key, known)}")
        return cls(**table)


ENTROPY_SIZES = MappingProxyType(
    {
        "nano": EntropyConfig(size=192, layers=5, heads=3, hidden=512),
        "small": EntropyConfig(size=320, layers=6, heads=5, hidden=896),
        "base": EntropyConfig(size=384, layers=12, heads=6, hidden=1024),
        "blt-entropy": EntropyConfig(),
    }
)
"""Sizes by name: 2.3, 7.8, 21.4 and 99.5 million parameters."""
