"""The classic patterns, kept as RLE in one file beside the code."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from hotgrid.errors import ArgumentError, near

from ._pattern import Pattern
from ._plaintext import read_cells
from ._rle import read_rle


def pattern(name: str) -> Pattern:
    """A classic pattern by its name.

    Example:
        >>> pattern("glider").cells.sum().item()
        5

    Raises:
        ArgumentError: There is none of this name.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"a pattern is named by a text, such as `glider`, got {name!r}")
    known = _library()
    key = name.strip().lower().replace("_", " ").replace("-", " ")
    if key not in known:
        raise ArgumentError(
            f"there is no pattern `{name}`; `pattern_names()` lists them, and files end in "
            f"`.rle` or `.cells`{near(key, known)}"
        )
    return read_rle(known[key])


def find_pattern(given: str | Path | Pattern) -> Pattern:
    """A pattern: itself, by its name, or from a file.

    Raises:
        ArgumentError: There is none of this name, or the file cannot be read.
    """
    if isinstance(given, Pattern):
        return given
    if not isinstance(given, str | Path):
        raise ArgumentError(
            "`pattern` must be a name, a file that ends in `.rle` or `.cells`, or a Pattern, "
            f"got {type(given).__name__}; `Pattern(cells)` makes one of cells"
        )
    suffix = Path(given).suffix
    if suffix == ".cells":
        return read_cells(Path(given))
    if suffix == ".rle" or isinstance(given, Path):
        return read_rle(Path(given))
    return pattern(given)


def pattern_names() -> list[str]:
    """The names of the classic patterns.

    Example:
        >>> "glider" in pattern_names()
        True
    """
    return list(_library())


@cache
def _library() -> Mapping[str, str]:
    """The text of every pattern by name, as the file has them: each ends with `!`."""
    text = files(__package__ or "").joinpath("patterns.rle").read_text(encoding="utf-8")
    parts = [part.strip() + "!" for part in text.split("!\n") if part.strip()]
    return MappingProxyType({read_rle(part).name: part for part in parts})
