"""VTK image files, as ParaView and VisIt read them."""

import base64
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np


def write_vti(
    path: Path, size: Sequence[int], arrays: Mapping[str, np.ndarray], time: float
) -> None:
    """Write arrays `[*size]` as cell data of one VTK image, in 32-bit floats.

    The last dim of the grid is x, the one before it y. A cell is one unit long.
    """
    ends = [*reversed(size), 0, 0][:3]
    extent = " ".join(f"0 {end}" for end in ends)
    with path.open("wb") as file:
        file.write(
            b'<?xml version="1.0"?>\n'
            b'<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" '
            b'header_type="UInt64">\n'
        )
        file.write(
            f'<ImageData WholeExtent="{extent}" Origin="0 0 0" Spacing="1 1 1">\n'
            '<FieldData>\n<DataArray type="Float64" Name="TimeValue" NumberOfTuples="1" '
            f'format="ascii">{time!r}</DataArray>\n</FieldData>\n'
            f'<Piece Extent="{extent}">\n<CellData>\n'.encode()
        )
        for name, array in arrays.items():
            numbers = np.ascontiguousarray(array, dtype="<f4")
            file.write(
                f'<DataArray type="Float32" Name={quoteattr(name)} format="binary">'.encode()
            )
            # The length in bytes comes first, and both are encoded as one.
            data = struct.pack("<Q", numbers.nbytes) + numbers.tobytes()
            file.write(base64.b64encode(data))
            file.write(b"</DataArray>\n")
        file.write(b"</CellData>\n</Piece>\n</ImageData>\n</VTKFile>\n")
