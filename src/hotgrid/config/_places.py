"""Where caches are: `none`, `local`, `project`, `global` or a path."""

import os
from pathlib import Path
from typing import Literal, TypeAlias, cast

from hotgrid.errors import ArgumentError, ConfigError

from ._rules import File, RefusalError, WordOrFile, working_folder

FILE_NAME = "hotgrid.toml"
_CACHE_NAME = ".hotgrid"

PlaceWord = Literal["none", "local", "project", "global"]
CachePlace: TypeAlias = PlaceWord | File
"""Where a cache is: a word, or a path."""


def cache_folder(place: CachePlace, name: str) -> Path:
    """Return the folder of one cache. It is not created.

    - `local`: `.hotgrid/<name>` in the working folder.
    - `project`: `.hotgrid/<name>` in the nearest folder, from the working folder
      upward, that holds a `pyproject.toml` or a `hotgrid.toml`; without one, the
      global place.
    - `global`: `hotgrid/<name>` in `$XDG_CACHE_HOME`, by default `~/.cache`.
    - `{file = "path"}`: that very path; `name` is not appended.

    Args:
        place: A place as the settings hold it, such as `current().autotune.cache`.
        name: Which cache, such as `autotune`: one part of a path.

    Raises:
        ArgumentError: `place` is `none` (check before), is not a place, or `name`
            is not one part of a path.
        ConfigError: There is no home folder or no working folder to start from.

    Example:
        >>> cache_folder(File(Path("/data/tuned")), "autotune").as_posix()
        '/data/tuned'
    """
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise ArgumentError(
            f"`name` must be one part of a path, such as `autotune`; got {name!r}"
        )
    try:
        place = cast(CachePlace, WordOrFile(PlaceWord).accept(place))
    except RefusalError as refusal:
        raise ArgumentError(f"`place` {refusal}") from None
    match place:
        case File(path):
            return path
        case "none":
            raise ArgumentError("`place` is none: there is no cache; check for that first")
        case "local":
            return working_folder() / _CACHE_NAME / name
        case "project":
            project = _project_folder()
            return project / _CACHE_NAME / name if project else _global_folder() / name
        case "global":
            return _global_folder() / name


def _project_folder() -> Path | None:
    here = working_folder()
    for folder in (here, *here.parents):
        if any((folder / mark).is_file() for mark in ("pyproject.toml", FILE_NAME)):
            return folder
    return None


def _global_folder() -> Path:
    # The XDG specification: a relative path counts as not set.
    root = os.environ.get("XDG_CACHE_HOME", "")
    if Path(root).is_absolute():
        return Path(root) / "hotgrid"
    try:
        return Path.home() / ".cache" / "hotgrid"
    except RuntimeError:
        raise ConfigError(
            "no home folder is known, so there is no global cache; set XDG_CACHE_HOME "
            "to a folder, or choose another cache place"
        ) from None
