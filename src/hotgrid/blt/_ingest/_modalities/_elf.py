"""ELF: the executables of Linux and other systems, by their sections."""

from collections.abc import Iterator

from hotgrid.blt._ingest._settings import IngestSettings
from hotgrid.blt._sidecar._graph import Leaf
from hotgrid.errors import DamagedError

from ._modality import Modality, View
from ._sections import MOST_SECTIONS, Fields, sections_view

_TYPES = {1: "progbits", 2: "symtab", 3: "strtab", 4: "rela", 5: "hash", 6: "dynamic"}
_TYPES |= {7: "note", 8: "nobits", 9: "rel", 11: "dynsym", 14: "init_array", 15: "fini_array"}
_NO_BITS = 8
# 32 or 64 bits, little-endian or big-endian.
_CLASSES = (b"\1\1", b"\1\2", b"\2\1", b"\2\2")


class Elf(Modality):
    """ELF files of 32 and 64 bits, in either byte order."""

    name = "elf"

    def accepts(self, head: bytes, name: str) -> bool:
        """Whether the first bytes are those of an ELF file."""
        return head.startswith(b"\x7fELF") and head[4:6] in _CLASSES

    def views(self, data: bytes, name: str, settings: IngestSettings) -> list[View]:
        """The file as it is; pieces are its sections."""
        return [sections_view(data, _sections(data), "elf")]


def _sections(data: bytes) -> Iterator[Leaf]:
    wide = data[4] == 2
    fields = Fields(data, "<" if data[5] == 1 else ">")
    (table,) = fields.read("Q" if wide else "I", 40 if wide else 32)
    size, count, names = fields.read("HHH", 58 if wide else 46)
    if not table:
        return
    form, least = ("IIQQQQIIQQ", 64) if wide else ("IIIIIIIIII", 40)
    if size < least:
        raise DamagedError(f"the ELF file has section headers of {size} bytes")
    if not count:  # more than a field of the header can hold
        (count,) = fields.read("Q" if wide else "I", table + (32 if wide else 20))
    if count > MOST_SECTIONS:
        raise DamagedError(f"the ELF file has {count:,} sections, above {MOST_SECTIONS:,}")
    texts = 0
    if 0 < names < count:
        texts = fields.read(form, table + names * size)[4]
    for number in range(count):
        named, kind, flags, address, offset, length, _, _, align, _ = fields.read(
            form, table + number * size
        )
        if kind in (0, _NO_BITS):
            continue
        title = fields.name(texts + named)
        extra = {"name": title, "type": _TYPES.get(kind, hex(kind)), "alignment": align}
        extra["virtual_address"] = address
        extra["flags"] = {
            "writable": bool(flags & 1),
            "allocatable": bool(flags & 2),
            "executable": bool(flags & 4),
        }
        yield Leaf(f"elf_section_{title}", offset, offset + length, 1.0, extra)
