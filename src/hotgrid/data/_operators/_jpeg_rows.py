"""JPEG files without the rows below a crop, so that they are not decoded."""

# How many rows of pixels a row of blocks has, by chroma subsampling.
_BLOCK_ROWS = {"444": 8, "422": 8, "411": 8, "Gray": 8, "420": 16, "440": 16}


def first_rows(data: bytes, height: int, subsampling: str, rows: int) -> tuple[bytes, int]:
    """A JPEG file that ends after the first rows, and its height.

    The header is made to name a smaller height, at which the decoder stops; what follows is
    never decoded. Rows of blocks are kept whole, and one more, because colours are
    interpolated with the rows below. So the rows asked for have the bits of the whole image.

    Only files of one sequential scan are changed, and only if they end where they should: the
    decoder no longer sees whether they are cut off.

    Args:
        data: The file.
        height: The height that its header names.
        subsampling: How its colours are stored, as simplejpeg says.
        rows: How many rows are needed.

    Returns:
        The file and its height; both unchanged if there is nothing to gain.
    """
    block = _BLOCK_ROWS.get(subsampling, 0)
    kept = ((rows - 1) // block + 2) * block if block else height
    if kept >= height or data[-2:] != b"\xff\xd9":
        return data, height
    place = _height_place(data)
    if place is None:
        return data, height
    return data[:place] + kept.to_bytes(2, "big") + data[place + 2 :], kept


def _height_place(head: bytes) -> int | None:
    """Where the height is in the header of a sequential JPEG of one scan; None for others."""
    at, place, parts = 2, None, 0
    while at + 4 <= len(head) and head[at] == 0xFF:
        marker, size = head[at + 1], int.from_bytes(head[at + 2 : at + 4], "big")
        if marker in (0xC0, 0xC1):
            place, parts = at + 5, head[at + 9] if at + 9 < len(head) else 0
        elif marker == 0xDA:
            # All components in the first scan, or there are others.
            return place if at + 4 < len(head) and head[at + 4] == parts else None
        at += 2 + size
    return None
