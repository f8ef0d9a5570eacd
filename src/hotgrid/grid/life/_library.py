"""The classic patterns, kept as RLE in one file beside the code."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from hotgrid.errors import ArgumentError
from hotgrid.grid._checks import near

from ._pattern import Pattern
from ._rle import read_rle


def pattern(name: str) -> Pattern:
    """A classic pattern by its name.

    Example:
        >>> pattern("glider").cells.sum().item()
        5

    Raises:
        ArgumentError: There is none of this name.
    """
    known = _library()
    key = name.strip().lower().replace("_", " ").replace("-", " ")
    if key not in known:
        raise ArgumentError(
            f"there is no pattern `{name}`{near(key, known)}; `pattern_names()` lists them, "
            "and `read_rle` reads others from files"
        )
    return read_rle(known[key])


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
