"""Parts that the readers of executable files share: fields within bounds, sections."""

import struct
from collections.abc import Iterable

from hotgrid.blt._sidecar._graph import Leaf
from hotgrid.errors import DamagedError

from ._modality import View

MOST_SECTIONS = 65_536


class Fields:
    """Numbers and names at offsets of a file; what is outside of it is damage.

    Args:
        data: The file.
        order: `<` for little-endian, `>` for big-endian.
    """

    def __init__(self, data: bytes, order: str) -> None:
        self._data, self._order = data, order

    def read(self, form: str, offset: int) -> tuple[int, ...]:
        """The numbers of a form of `struct` at an offset.

        Raises:
            DamagedError: They are not in the file.
        """
        form = self._order + form
        if offset < 0 or offset + struct.calcsize(form) > len(self._data):
            raise DamagedError(f"a header at {offset} lies outside of the file")
        return struct.unpack_from(form, self._data, offset)

    def name(self, offset: int, most: int = 256) -> str:
        """The name at an offset, up to a zero."""
        if not 0 <= offset < len(self._data):
            return ""
        return self._data[offset : offset + most].split(b"\0", 1)[0].decode("latin-1")


def sections_view(data: bytes, pieces: Iterable[Leaf], label: str) -> View:
    """The file as it is, with its sections; those outside of the file are left out."""
    inside = [each for each in pieces if 0 <= each.start < each.end <= len(data)]
    inside.sort(key=lambda each: (each.start, each.end))
    if not inside:
        inside = [Leaf(label, 0, len(data), 0.7)]
    return View(label, "binary", data, inside, {"format": label})
