"""The nodes of a sidecar: a document, its views, and their pieces."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Leaf:
    """A piece of a view, such as a patch.

    Attributes:
        label: For example `patch_3`.
        start: The first byte in the view.
        end: After the last byte.
        confidence: That it is a piece, 0 to 1.
        extra: More about it, as JSON. Leaves of one document with the same `source_id` are
            joined by an edge.
    """

    label: str | None
    start: int
    end: int
    confidence: float = 1.0
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Branch:
    """A view of a document, such as its text, with its leaves in order."""

    label: str
    modality: str
    leaves: Sequence[Leaf] = ()


@dataclass(frozen=True)
class Trunk:
    """A document: the SHA-256 of its bytes, how many they are, and its views."""

    source_hash: str
    total_bytes: int
    branches: Sequence[Branch] = ()
