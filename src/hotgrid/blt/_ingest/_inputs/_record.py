"""The items that sources yield: documents as parts, and what could not be read."""

import hashlib
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Part:
    """Bytes of a document.

    Attributes:
        label: For example the column of a row; empty for a file.
        name: With the suffix of the file, which says what it may be; may be empty.
        data: The bytes.
        pure: Whether they are text or bytes of no known kind, and not to be decoded.
    """

    label: str
    name: str
    data: bytes
    pure: bool = False


@dataclass(frozen=True)
class Record:
    """One document as it was read.

    Attributes:
        name: Where it comes from; the same on every machine and in every run.
        parts: At least one.
    """

    name: str
    parts: tuple[Part, ...]

    @cached_property
    def source_hash(self) -> str:
        """The SHA-256 of the bytes; of several parts, that of their labels, sizes and bytes."""
        if len(self.parts) == 1:
            return hashlib.sha256(self.parts[0].data).hexdigest()
        whole = hashlib.sha256()
        for part in self.parts:
            whole.update(f"{part.label}\0{len(part.data)}\0".encode("utf-8", "surrogateescape"))
            whole.update(part.data)
        return whole.hexdigest()

    @property
    def size(self) -> int:
        """The bytes of all parts."""
        return sum(len(part.data) for part in self.parts)


@dataclass(frozen=True)
class Fault:
    """Something that could not be read, and why."""

    name: str
    reason: str
