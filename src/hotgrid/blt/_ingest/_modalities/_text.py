"""Text, and bytes of no known kind: taken as they are."""

import codecs

from hotgrid.blt._ingest._settings import IngestSettings
from hotgrid.blt._sidecar._graph import Leaf

from ._modality import Modality, View

_CONTROLS = bytes(each for each in range(32) if each not in b"\t\n\r\f\x1b")
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF8)


class Text(Modality):
    """Text: UTF-8 without control characters, or something that says that it is Unicode."""

    name = "text"
    whole = False

    def accepts(self, head: bytes, name: str) -> bool:
        """Whether the first bytes are text."""
        if head.startswith(_MARKS):
            return True
        if b"\0" in head:
            return False
        try:
            # The last character may be cut.
            codecs.getincrementaldecoder("utf-8")().decode(head)
        except UnicodeDecodeError:
            return False
        strange = len(head) - len(head.translate(None, _CONTROLS))
        return strange <= len(head) // 100

    def views(self, data: bytes, name: str, settings: IngestSettings) -> list[View]:
        """The bytes as they are."""
        return [View("text", self.name, data, [Leaf("text", 0, len(data))])]


class UnknownBytes(Modality):
    """Bytes of no known kind."""

    name = "bytes"
    whole = False

    def accepts(self, head: bytes, name: str) -> bool:
        """Anything."""
        return True

    def views(self, data: bytes, name: str, settings: IngestSettings) -> list[View]:
        """The bytes as they are."""
        piece = Leaf("unknown_binary", 0, len(data), 0.3)
        return [View("bytes", self.name, data, [piece])]
