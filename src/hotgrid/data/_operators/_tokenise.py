"""Text to token ids, by an encoder that the program registers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hotgrid.data._plan import ColumnType, Operator, operator
from hotgrid.errors import ArgumentError, near

_ENCODERS: dict[str, Callable[[str], Sequence[int]]] = {}


def set_encoder(name: str, encode: Callable[[str], Sequence[int]]) -> None:
    """Name a function that turns a text into token ids, for the operator `tokenise`.

    A plan holds the name alone: reading one never imports code.

    Args:
        name: The name in plans.
        encode: The function. It is called from several threads, and should release the GIL
            as the encodings of `hotgrid.tokens` do.

    Example:
        >>> set_encoder("bytes", lambda text: list(text.encode()))
        >>> Tokenise("bytes", start=(256,)).run("hi").tolist()
        [256, 104, 105]
    """
    _ENCODERS[name] = encode


@operator("tokenise")
@dataclass(frozen=True)
class Tokenise(Operator):
    """Turn a text into token ids with an encoder that `set_encoder` has named.

    Args:
        encoder: The name of the encoder.
        start: What every sequence begins with.
        most: Cut what is longer; 0 cuts nothing.
    """

    inputs: ClassVar = {"text": "text"}
    encoder: str
    start: tuple[int, ...] = ()
    most: int = 0

    def outputs(self, types: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        """Return the type of the ids.

        Raises:
            ArgumentError: The program has not registered the encoder.
        """
        if self.encoder not in _ENCODERS:
            hint = near(self.encoder, _ENCODERS) or "; register it with `set_encoder`"
            raise ArgumentError(f"there is no encoder `{self.encoder}`{hint}")
        return {"ids": ColumnType("int64", (None,))}

    def run(self, text: str) -> NDArray[Any]:
        """Encode one text."""
        ids = np.array([*self.start, *_ENCODERS[self.encoder](text)], np.int64)
        return ids[: self.most] if self.most else ids
