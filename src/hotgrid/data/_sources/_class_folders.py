"""A folder for every class, and files in it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotgrid.data._plan import ColumnType, Samples, Source, source
from hotgrid.errors import ArgumentError
from hotgrid.files import regular_stat

from ._files import read_whole

_LARGEST = 1 << 30


@source("class_folders")
@dataclass(frozen=True)
class ClassFolders(Source):
    """Files in folders that are named for their class: `root/cat/01.jpg`.

    The classes are the folders directly below `root`, sorted; files may be deeper. Columns:
    `data`, the bytes of the file; `path`, below the root; `label`, the number of the class;
    `class_name`.

    Args:
        root: The folder of the folders.
        suffixes: Which files are samples; others are left out.
        links: Follow links to files. They are refused otherwise.

    Example:
        >>> Path("photos/cat").mkdir(parents=True)
        >>> _ = Path("photos/cat/1.png").write_bytes(b"...")
        >>> ClassFolders("photos").open().read(0, ["path", "label"])
        {'path': 'cat/1.png', 'label': 0}
    """

    root: str
    suffixes: tuple[str, ...] = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")
    links: bool = False

    def columns(self) -> dict[str, ColumnType]:
        """Return the columns and their types."""
        kinds = {"data": "bytes", "path": "text", "label": "int64", "class_name": "text"}
        return {name: ColumnType(kind) for name, kind in kinds.items()}

    def open(self) -> Samples:
        """List the files.

        Raises:
            ArgumentError: There is no such folder, or no file in it.
            DamagedError: A file is a link or not a regular file.
        """
        return _Listed(self)


class _Listed(Samples):
    def __init__(self, given: ClassFolders) -> None:
        self._root = Path(given.root)
        self._links = given.links
        if not self._root.is_dir():
            raise ArgumentError(f"`root` `{given.root}` is not a folder")
        with os.scandir(self._root) as entries:
            folders = sorted(each.name for each in entries if each.is_dir())
        self._classes: list[str] = []
        self._paths: list[str] = []
        labels: list[int] = []
        suffixes = tuple(each.lower() for each in given.suffixes)
        for name in folders:
            found = sorted(self._below(name, suffixes))
            if found:
                labels += [len(self._classes)] * len(found)
                self._classes.append(name)
                self._paths += found
        self._labels = np.array(labels, np.int64)
        if not self._paths:
            raise ArgumentError(
                f"`root` `{given.root}` has no folder with files that end in "
                f"{', '.join(given.suffixes)}; expected {given.root}/CLASS/FILE"
            )

    def _below(self, folder: str, suffixes: tuple[str, ...]) -> list[str]:
        found = []
        with os.scandir(self._root / folder) as entries:
            inside = list(entries)
        for each in inside:
            inner = f"{folder}/{each.name}"
            if each.is_dir(follow_symlinks=False):
                found += self._below(inner, suffixes)
            elif each.name.lower().endswith(suffixes):
                if not each.is_file(follow_symlinks=False):
                    regular_stat(self._root / inner, links=self._links)
                found.append(inner)
        return found

    def __len__(self) -> int:
        return len(self._paths)

    def read(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        path = self._paths[index]
        label = int(self._labels[index])
        found: dict[str, Any] = {"path": path, "label": label}
        found["class_name"] = self._classes[label]
        if "data" in columns:
            place = self._root / path
            found["data"] = read_whole(place.resolve() if self._links else place, _LARGEST)
        return {name: found[name] for name in columns}

    def values(self, column: str) -> list[Any]:
        return self._labels.tolist() if column == "label" else super().values(column)

    def place(self, index: int) -> str:
        return str(self._root / self._paths[index])

    @property
    def facts(self) -> dict[str, Any]:
        return {"classes": self._classes}
