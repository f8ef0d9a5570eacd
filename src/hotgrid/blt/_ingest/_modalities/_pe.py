"""PE: the executables of Windows, by their sections."""

from collections.abc import Iterator

from hotgrid.blt._ingest._settings import IngestSettings
from hotgrid.blt._sidecar._graph import Leaf

from ._modality import Modality, View
from ._sections import Fields, sections_view

_MOST_OFFSET = 4092


class Pe(Modality):
    """PE files."""

    name = "pe"

    def accepts(self, head: bytes, name: str) -> bool:
        """Whether the first bytes are those of a PE file."""
        if head[:2] != b"MZ" or len(head) < 64:
            return False
        at = int.from_bytes(head[60:64], "little")
        return at <= _MOST_OFFSET and head[at : at + 4] == b"PE\0\0"

    def views(self, data: bytes, name: str, settings: IngestSettings) -> list[View]:
        """The file as it is; pieces are its sections."""
        return [sections_view(data, _sections(data), "pe")]


def _sections(data: bytes) -> Iterator[Leaf]:
    fields = Fields(data, "<")
    (at,) = fields.read("I", 60)
    (count,) = fields.read("H", at + 6)
    (optional,) = fields.read("H", at + 20)
    for number in range(count):
        header = at + 24 + optional + 40 * number
        size, address, length, offset = fields.read("IIII", header + 8)
        (flags,) = fields.read("I", header + 36)
        title = fields.name(header, 8)
        extra = {"name": title, "virtual_address": address, "virtual_size": size}
        extra["characteristics"] = flags
        extra["flags"] = {
            "code": bool(flags & 0x20),
            "initialized_data": bool(flags & 0x40),
            "uninitialized_data": bool(flags & 0x80),
            "executable": bool(flags & 0x2000_0000),
            "readable": bool(flags & 0x4000_0000),
            "writable": bool(flags & 0x8000_0000),
        }
        yield Leaf(f"pe_section_{title}", offset, offset + length, 1.0, extra)
