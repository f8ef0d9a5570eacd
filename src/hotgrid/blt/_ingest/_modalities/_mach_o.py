"""Mach-O: the executables of macOS, by their sections."""

from collections.abc import Iterator

from hotgrid.blt._ingest._settings import IngestSettings
from hotgrid.blt._sidecar._graph import Leaf
from hotgrid.errors import DamagedError

from ._modality import Modality, View
from ._sections import MOST_SECTIONS, Fields, sections_view

_THIN = {
    b"\xfe\xed\xfa\xce": (">", False),
    b"\xfe\xed\xfa\xcf": (">", True),
    b"\xce\xfa\xed\xfe": ("<", False),
    b"\xcf\xfa\xed\xfe": ("<", True),
}
_FAT = b"\xca\xfe\xba\xbe"
_MOST_ARCHITECTURES = 30
_SEGMENT, _SEGMENT_64 = 0x1, 0x19
# Sections of these types have no bytes in the file.
_ZERO_FILL = (0x1, 0xC, 0x12)


class MachO(Modality):
    """Mach-O files, and the first architecture of universal ones."""

    name = "mach-o"

    def accepts(self, head: bytes, name: str) -> bool:
        """Whether the first bytes are those of a Mach-O file."""
        if head[:4] == _FAT:  # a class of Java begins with the same bytes, and a version
            return 0 < int.from_bytes(head[4:8], "big") <= _MOST_ARCHITECTURES
        return head[:4] in _THIN

    def views(self, data: bytes, name: str, settings: IngestSettings) -> list[View]:
        """The file as it is; pieces are its sections."""
        return [sections_view(data, _sections(data), "macho")]


def _sections(data: bytes) -> Iterator[Leaf]:
    base = 0
    if data[:4] == _FAT:
        (base,) = Fields(data, ">").read("I", 16)
    magic = data[base : base + 4]
    if magic not in _THIN:
        raise DamagedError("the universal file holds no Mach-O file")
    order, wide = _THIN[magic]
    fields = Fields(data, order)
    (count,) = fields.read("I", base + 16)
    at, found = base + (32 if wide else 28), 0
    for _ in range(min(count, MOST_SECTIONS)):
        kind, size = fields.read("II", at)
        if size < 8:
            raise DamagedError(f"a load command has {size} bytes")
        if kind in (_SEGMENT, _SEGMENT_64):
            for leaf in _of_segment(fields, at, base, wide=kind == _SEGMENT_64):
                found += 1
                if found > MOST_SECTIONS:
                    raise DamagedError(f"there are more than {MOST_SECTIONS:,} sections")
                yield leaf
        at += size


def _of_segment(fields: Fields, at: int, base: int, *, wide: bool) -> Iterator[Leaf]:
    (count,) = fields.read("I", at + (64 if wide else 48))
    header, size = at + (72 if wide else 56), 80 if wide else 68
    for _ in range(count):
        address, length = fields.read("QQ" if wide else "II", header + 32)
        offset = fields.read("I", header + (48 if wide else 40))[0]
        flags = fields.read("I", header + (64 if wide else 56))[0]
        section, segment = fields.name(header, 16), fields.name(header + 16, 16)
        extra = {"address": address, "size": length, "offset": offset, "flags": flags}
        extra["section_type"] = flags & 0xFF
        if flags & 0xFF not in _ZERO_FILL:
            label = f"macho_section_{segment}_{section}"
            yield Leaf(label, base + offset, base + offset + length, 1.0, extra)
        header += size
