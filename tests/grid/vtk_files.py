"""VTK files as an independent reader sees them."""

import base64
import struct
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np


def decoded(path: Path) -> tuple[ET.Element, dict[str, np.ndarray]]:
    """A VTK image as a reader sees it: length first, then the numbers, x fastest."""
    root = ET.parse(path).getroot()
    [piece] = root.iter("Piece")
    ends = [int(n) for n in piece.attrib["Extent"].split()[1::2]]
    shape = [n for n in reversed(ends) if n > 0]
    arrays = {}
    for array in piece.iter("DataArray"):
        assert (array.attrib["type"], array.attrib["format"]) == ("Float32", "binary")
        raw = base64.b64decode(array.text or "", validate=True)
        assert struct.unpack("<Q", raw[:8]) == (len(raw) - 8,)
        arrays[array.attrib["Name"]] = np.frombuffer(raw[8:], "<f4").reshape(shape)
    return root, arrays


def listed(path: Path) -> list[tuple[float, Path]]:
    """What a reader of a collection sees: times and files."""
    root = ET.parse(path).getroot()
    assert (root.tag, root.attrib["type"]) == ("VTKFile", "Collection")
    [collection] = root
    return [
        (float(each.attrib["timestep"]), path.parent / each.attrib["file"])
        for each in collection
    ]
