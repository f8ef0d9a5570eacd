"""What the record of a run says of its inputs, so that resuming cannot lose one."""

import hashlib
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from hotgrid.errors import ArgumentError

from ._inputs._units import HUB

_MOST_TEXTS = 1000


def recorded_inputs(paths: Sequence[str], texts: Sequence[str]) -> dict[str, list[str]]:
    """The paths, and hashes of the texts unless there are very many."""
    found = {"paths": [_plain(each) for each in paths]}
    if len(texts) <= _MOST_TEXTS:
        found["texts"] = [_digest(each) for each in texts]
    return found


def expect_all_inputs(folder: Path, inputs: Mapping[str, Sequence[str]]) -> None:
    """Refuse to resume a corpus without one of its inputs: its documents would be removed.

    Raises:
        ArgumentError: The corpus in the folder has an input that is not among these.
    """
    try:
        earlier = tomllib.loads((folder / "run.toml").read_text("utf-8"))["options"]
        gone = [each for each in earlier["paths"] if each not in inputs["paths"]]
        before = set(earlier.get("texts", ()))
        texts = before - set(inputs.get("texts", before))
    except (OSError, ValueError, KeyError, TypeError):
        return  # the folder says what is wrong with it
    if gone or texts:
        what = f"`{gone[0]}`" if gone else "other texts"
        raise ArgumentError(
            f"`{folder}` was made of {what} too, whose documents would be removed; name all "
            "inputs again beside new ones, or do not resume, which moves the corpus aside"
        )


def _plain(path: str) -> str:
    same = path if path.startswith(HUB) else os.path.normpath(path)
    return same.encode("utf-8", "backslashreplace").decode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
