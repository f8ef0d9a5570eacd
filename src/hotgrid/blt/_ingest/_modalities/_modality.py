"""`Modality`: what documents are, and how they become bytes to cut."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hotgrid.blt._ingest._settings import IngestSettings
from hotgrid.blt._sidecar._graph import Leaf
from hotgrid.errors import DamagedError


@dataclass(frozen=True)
class View:
    """One view of a document: bytes, and the pieces that they have.

    Attributes:
        label: For example `text`, `pdf_raw`, or the column of a row.
        modality: The name of its modality.
        data: The bytes that are cut into patches. A patch begins where a piece does.
        pieces: In order; their offsets are those in `data`.
        extra: More about it, as JSON values.
        framed: Whether it is made of pieces of samples, which are patches by themselves.
    """

    label: str
    modality: str
    data: bytes
    pieces: Sequence[Leaf] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    framed: bool = False

    def under(self, label: str) -> "View":
        """The same view of a part that has a label of its own."""
        return replace(self, label=f"{label}/{self.label}") if label else self


class Modality(ABC):
    """A kind of documents.

    Attributes:
        name: The name of the kind.
        whole: Whether a file must be read as a whole. Others are cut where they are long.
    """

    name: str
    whole: bool = True

    @abstractmethod
    def accepts(self, head: bytes, name: str) -> bool:
        """Whether a file is of this kind, by its first 4096 bytes and its name."""

    @abstractmethod
    def views(self, data: bytes, name: str, settings: IngestSettings) -> list[View]:
        """Decode a file.

        Raises:
            DamagedError: It is damaged, or would be larger than a limit.
            MissingPartError: A decoder is not installed.
        """


def expect_decoded(size: int, settings: IngestSettings) -> None:
    """Refuse data that would be too large once it is decoded.

    Raises:
        DamagedError: The decoded data would be too large.
    """
    if size > settings.decoded_bytes:
        raise DamagedError(
            f"it has {size:,} bytes or more once it is decoded, above the limit of "
            f"{settings.decoded_bytes:,} (--decoded-bytes)"
        )
