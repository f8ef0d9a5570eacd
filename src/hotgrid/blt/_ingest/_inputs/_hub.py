"""Data sets of the Hugging Face hub: `hf://datasets/OWNER/NAME[@REVISION][/PATH]`."""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from hotgrid.errors import ArgumentError, DamagedError, MissingPartError

_NAME = r"[A-Za-z0-9][\w.-]*"
_FORM = re.compile(rf"hf://datasets/({_NAME}/{_NAME})(?:@([\w.-]+))?(?:/(.*))?")
_DATA = (".parquet", ".jsonl", ".ndjson", ".jsonl.gz", ".txt", ".md", ".zip", ".tar", ".tar.gz")


@dataclass(frozen=True)
class Reference:
    """A parsed reference."""

    repository: str
    revision: str | None
    path: str


def read_reference(text: str) -> Reference:
    """The parts of a reference.

    Raises:
        DamagedError: It has another form.
    """
    found = _FORM.fullmatch(text)
    if not found or ".." in (found[3] or "").split("/"):
        raise DamagedError(
            f"`{text[:200]}` is not a valid reference; expected "
            "hf://datasets/OWNER/NAME@REVISION/PATH (@REVISION is optional)"
        )
    return Reference(found[1], found[2], found[3] or "")


@lru_cache(maxsize=4096)
def fetch(text: str) -> Path:
    """The file that a reference names, from the cache or, once, from the hub.

    The cache is that of huggingface_hub: `HF_HOME`, which stays from run to run. Files in it
    are used without asking the hub again.

    Raises:
        DamagedError: It does not exist, or the hub cannot be reached.
        MissingPartError: huggingface_hub is not installed.
    """
    hub = _hub()
    reference = read_reference(text)
    asked = {
        "repo_id": reference.repository,
        "filename": reference.path,
        "repo_type": "dataset",
        "revision": reference.revision,
    }
    try:
        return Path(hub.hf_hub_download(**asked, local_files_only=True))
    except hub.errors.LocalEntryNotFoundError:
        pass
    except (ValueError, OSError) as problem:
        raise DamagedError(f"`{text}` cannot be fetched: {problem}") from None
    try:
        return Path(hub.hf_hub_download(**asked))
    except (hub.errors.HfHubHTTPError, hub.errors.EntryNotFoundError) as problem:
        raise DamagedError(f"`{text}` is missing: {_first_line(problem)}") from None
    except (ValueError, OSError) as problem:
        raise DamagedError(f"`{text}` cannot be fetched: {_first_line(problem)}") from None


def files_of(text: str) -> list[tuple[str, Path]]:
    """The names and files of a data set, or of a folder in it, fetched once.

    Raises:
        ArgumentError: There is none, or it has no files that are read.
        MissingPartError: huggingface_hub is not installed.
    """
    hub = _hub()
    reference = read_reference(text)
    try:
        names = hub.list_repo_files(
            reference.repository, repo_type="dataset", revision=reference.revision
        )
    except (hub.errors.HfHubHTTPError, OSError, ValueError) as problem:
        raise ArgumentError(f"`{text}` cannot be listed: {_first_line(problem)}") from None
    folder = reference.path.rstrip("/")
    inside = [
        each
        for each in sorted(names)
        if not folder or each == folder or each.startswith(folder + "/")
    ]
    wanted = inside if inside == [folder] else [e for e in inside if e.endswith(_DATA)]
    if not wanted:
        raise ArgumentError(f"`{text}` has no data files ({', '.join(_DATA)})")
    at = f"@{reference.revision}" if reference.revision else ""
    beginning = f"hf://datasets/{reference.repository}{at}"
    # The cache holds links to files by content.
    return [(f"{beginning}/{each}", fetch(f"{beginning}/{each}").resolve()) for each in wanted]


def _first_line(problem: BaseException) -> str:
    return str(problem).strip().split("\n", 1)[0][:300] or type(problem).__name__


def _hub() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.errors
    except ImportError:
        raise MissingPartError(
            "hf:// references need huggingface_hub: pip install 'hotgrid[hub]'"
        ) from None
    return huggingface_hub
