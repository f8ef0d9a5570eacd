"""Where files of ranks are: a path, a folder, tiktoken's cache, our cache, the network."""

import base64
import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from hotgrid.errors import ArgumentError, DamagedError, MissingPartError, StoreError
from hotgrid.files import whole_file

from ._byte_letters import letters, to_bytes

_SITE = "https://openaipublic.blob.core.windows.net"
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class RankFile:
    """A published file of ranks: its name, where it comes from, and what it must hold."""

    name: str
    url: str
    sha256: str

    @property
    def cache_name(self) -> str:
        """Its name in tiktoken's cache: the sha1 of where it comes from."""
        import hashlib

        return hashlib.sha1(self.url.encode(), usedforsecurity=False).hexdigest()


def _published(name: str, sha256: str) -> RankFile:
    return RankFile(f"{name}.tiktoken", f"{_SITE}/encodings/{name}.tiktoken", sha256)


_FILES = MappingProxyType(
    {
        "r50k_base": _published(
            "r50k_base", "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"
        ),
        "p50k_base": _published(
            "p50k_base", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"
        ),
        "cl100k_base": _published(
            "cl100k_base", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
        ),
        "o200k_base": _published(
            "o200k_base", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
        ),
    }
)


# The same ranks as r50k_base, in the form they were first published in.
_GPT2_MERGES = RankFile(
    "vocab.bpe",
    f"{_SITE}/gpt-2/encodings/main/vocab.bpe",
    "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
)


def read_vocabulary(name: str, place: Path | None = None) -> bytes:
    """The bytes of a file of ranks, with the right sha256.

    Args:
        name: Which one, such as `cl100k_base`.
        place: The file, or a folder that has it; then no other place is asked.

    Raises:
        DamagedError: A file that was found is not this one.
        MissingPartError: It was not found and cannot be downloaded.
    """
    file = _FILES[name]
    if (data := _found(file, place)) is not None:
        return data
    if name == "r50k_base" and (data := _found(_GPT2_MERGES, place)) is not None:
        return _ranks_of(data)
    if place is not None:
        raise MissingPartError(f"there is no `{file.name}` at `{place}`")
    return _fetched(file)


def _found(file: RankFile, place: Path | None) -> bytes | None:
    # One place after another: the last one needs the settings.
    for path in _in_folder(place, file) if place is not None else _places(file):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return _checked(path.read_bytes(), file, path)
    return None


def _in_folder(place: Path, file: RankFile) -> Iterator[Path]:
    if place.is_dir():
        yield place / file.name
        yield place / file.cache_name
    else:
        yield place


def _places(file: RankFile) -> Iterator[Path]:
    if folder := os.environ.get("HOTGRID_VOCAB_DIR"):
        yield from _in_folder(Path(folder), file)
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            if os.environ[variable]:
                yield Path(os.environ[variable]) / file.cache_name
            break
    else:
        import tempfile

        yield Path(tempfile.gettempdir()) / "data-gym-cache" / file.cache_name
    yield _cache() / file.name


def _cache() -> Path:
    from hotgrid.config import cache_folder

    return cache_folder("global", "vocabularies")


def _checked(data: bytes, file: RankFile, source: Path | str) -> bytes:
    import hashlib

    found = hashlib.sha256(data).hexdigest()
    if found == file.sha256:
        return data
    raise DamagedError(
        f"`{source}` is not {file.name}: its sha256 is {found}, expected {file.sha256}. "
        "Delete it or put the right file there; it comes from " + file.url
    )


def _ranks_of(merges: bytes) -> bytes:
    """A file of ranks from GPT-2's list of merges: bytes by their letters, then merges."""
    lines = merges.decode().splitlines()[1:]
    tokens = [*sorted(letters()), *(line.replace(" ", "") for line in lines)]
    return b"".join(
        base64.b64encode(to_bytes(token)) + f" {rank}\n".encode()
        for rank, token in enumerate(tokens)
    )


def _fetched(file: RankFile) -> bytes:
    import urllib.error
    import urllib.request

    try:
        # The address is a constant above, over https.
        with urllib.request.urlopen(file.url, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310
            data = answer.read()
    except (urllib.error.URLError, OSError) as problem:
        places = "\n".join(f"  {path}" for path in _places(file))
        raise MissingPartError(
            f"{file.name} is not on this machine and cannot be fetched ({problem}).\n"
            f"Looked for:\n{places}\n"
            f"Get {file.url} where there is a network and put it into a folder that "
            "HOTGRID_VOCAB_DIR names."
        ) from None
    _checked(data, file, file.url)
    # Without a cache folder it is downloaded again the next time.
    kept = whole_file(_cache() / file.name)
    with contextlib.suppress(ArgumentError, StoreError), kept as aside:
        aside.write_bytes(data)
    return data
