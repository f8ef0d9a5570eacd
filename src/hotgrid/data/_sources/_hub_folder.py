"""Data sets of Hugging Face on disk: a clone of the repository, or `save_to_disk`."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotgrid.data._plan import ColumnType, Samples, Source, source
from hotgrid.errors import ArgumentError, DamagedError
from hotgrid.files import read_regular, regular_stat

from ._arrow import ArrowFiles, Rows

_LARGEST = 1 << 26
_NUMBERED = re.compile(r"-\d+-of-\d+.*")


@source("hub_folder")
@dataclass(frozen=True)
class HubFolder(Source):
    """A split of a Hugging Face data set on disk. Needs `pip install 'hotgrid[parquet]'`.

    It reads what `save_to_disk` has written (`state.json` names the Arrow files), and
    repositories with parquet files whose name begins with the split or that are in a folder
    of its name: `data/train-00000-of-00002.parquet`. Where a repository has several data sets,
    each with such a split in a folder of its own, `root` is one of these folders. The names of
    the labels are in the `facts` of the opened source, by column.

    Args:
        root: The folder of the data set.
        split: Which part.
    """

    root: str
    split: str = "train"

    def columns(self) -> dict[str, ColumnType]:
        """Read the schema of the first file; return the columns and their types."""
        return ArrowFiles((str(self._files()[0]),)).columns()

    def __str__(self) -> str:
        return f"{self.kind} {self.root} {self.split}"

    def open(self) -> Samples:
        """Open the files.

        Raises:
            ArgumentError: There is no such split, or there are several.
            DamagedError: A file is damaged.
        """
        return _Split(self._files())

    def _files(self) -> list[Path]:
        root = Path(self.root)
        if not root.is_dir():
            raise ArgumentError(f"`root` `{self.root}` is not a folder")
        saved = root / self.split if (root / self.split / "state.json").exists() else root
        if (saved / "state.json").exists():
            return self._saved(saved)
        found = [p for p in sorted(root.rglob("*.parquet")) if _of_split(p, root, self.split)]
        if not found:
            names = sorted({_split_of(p, root) for p in root.rglob("*.parquet")})
            there = sorted(p.parent.name for p in root.glob("*/state.json"))
            raise ArgumentError(
                f"`{self.root}` has no split `{self.split}`; it has "
                f"{', '.join([*names, *there]) or 'no parquet file and no state.json'}"
            )
        sets = sorted({_set_of(path, root, self.split) for path in found})
        if len(sets) > 1:
            raise ArgumentError(
                f"`{self.root}` has the split `{self.split}` of several data sets, in the "
                f"folders {', '.join(sets)}; choose one, such as `{root / sets[-1]}`, as `root`"
            )
        for path in found:
            regular_stat(path)
        return found

    def _saved(self, folder: Path) -> list[Path]:
        try:
            state = json.loads(read_regular(folder / "state.json", _LARGEST))
            names = [each["filename"] for each in state["_data_files"]]
        except (ValueError, KeyError, TypeError) as problem:
            raise DamagedError(
                f"`{folder / 'state.json'}` is not of `save_to_disk`: {problem}"
            ) from None
        for name in names:
            if not isinstance(name, str) or Path(name).name != name:
                raise DamagedError(
                    f"`{folder / 'state.json'}` names `{name}`, not a file in it"
                )
            regular_stat(folder / name)
        if not names:
            raise ArgumentError(f"`{folder}` has no data file")
        return [folder / name for name in names]


class _Split(Rows):
    def __init__(self, files: Sequence[Path]) -> None:
        super().__init__(files, groups=8)
        self._labels: dict[str, Any] = {}
        said = self.metadata.get(b"huggingface")
        info = files[0].parent / "dataset_info.json"
        try:
            if said is not None:
                features = json.loads(said)["info"]["features"]
            elif info.exists():
                features = json.loads(read_regular(info, _LARGEST))["features"]
            else:
                features = {}
            for name, each in features.items():
                if isinstance(each, dict) and "names" in each:
                    self._labels[name] = list(each["names"])
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise DamagedError(
                f"`{files[0]}` has features that cannot be read: {problem}"
            ) from None

    @property
    def facts(self) -> dict[str, Any]:
        return (
            {"classes": next(iter(self._labels.values())), "labels": self._labels}
            if (self._labels)
            else {}
        )


def _split_of(path: Path, root: Path) -> str:
    return _beginning(path) if path.parent in (root, root / "data") else path.parent.name


def _of_split(path: Path, root: Path, split: str) -> bool:
    return split == _beginning(path) or split in path.relative_to(root).parts[:-1]


def _set_of(path: Path, root: Path, split: str) -> str:
    """The folder of the data set that has a file of a split."""
    parts = path.relative_to(root).parts[:-1]
    return "/".join(parts[: parts.index(split)] if split in parts else parts) or "."


def _beginning(path: Path) -> str:
    """The split that a file is named for: `train.100` of `train.100-00000-of-00002.parquet`."""
    name = path.name
    return _NUMBERED.sub("", name) if _NUMBERED.search(name) else re.split("[-.]", name)[0]
