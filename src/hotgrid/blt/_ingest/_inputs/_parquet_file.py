"""How parquet files are opened, and how many row groups they have."""

from pathlib import Path
from typing import Any

from hotgrid.errors import MissingPartError


def row_groups(file: Path) -> int:
    """How many row groups there are; 1 if that cannot be read."""
    try:
        with opened(file) as found:
            return found.num_row_groups
    except (MissingPartError, OSError, ValueError):
        return 1  # reading it will say what is wrong


def opened(file: Path) -> Any:
    """The file, as pyarrow reads it.

    Raises:
        MissingPartError: pyarrow is not installed.
    """
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingPartError(
            "parquet files need pyarrow: pip install 'hotgrid[parquet]'"
        ) from None
    return parquet.ParquetFile(file, memory_map=False, pre_buffer=False)
