"""Bytes of leaves, read from the files of a corpus as they are asked for."""

import json
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from hotgrid.blt._ingest._corpus import Corpus
from hotgrid.blt._ingest._outputs._names import LIST
from hotgrid.errors import DamagedError

_SHOWN = 400
_DIGITS = 32


class DocumentBytes:
    """The documents of a corpus, by number.

    Args:
        corpus: The corpus.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._list = corpus.folder / LIST
        with self._list.open("rb") as file:
            sizes = [len(line) for line in file]
        self._lines = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self._sizes = lru_cache(maxsize=64)(self._read_sizes)

    def row(self, number: int) -> dict[str, Any]:
        """The entry of a document in the list of documents."""
        with self._list.open("rb") as file:
            file.seek(int(self._lines[number]))
            return json.loads(file.readline())

    def read(self, number: int, begin: int, end: int) -> bytes:
        """Some bytes of a document.

        Raises:
            DamagedError: Its file is damaged.
        """
        shards = self._corpus.manifest["shards"]
        name = self.row(number)["file"] if not shards else ""
        at = 0
        for shard in shards:
            if shard["begin"] <= number < shard["end"]:
                name = shard["file"]
                at = int(self._sizes(name)[: number - shard["begin"]].sum())
        try:
            with safe_open(self._corpus.folder / name, "np") as file:
                return file.get_slice("bytes")[at + begin : at + end].tobytes()
        except (SafetensorError, OSError) as problem:
            raise DamagedError(f"`{name}` cannot be read: {problem}") from problem

    def _read_sizes(self, name: str) -> NDArray[np.int64]:
        with safe_open(self._corpus.folder / name, "np") as file:
            return file.get_tensor("document_bytes")


def shown(data: bytes) -> str:
    """The beginning of some bytes as text; of what is not text, in hexadecimal digits."""
    cut = data[:_SHOWN]
    try:
        text = cut.decode()
    except UnicodeDecodeError as problem:
        # The last character may be cut.
        whole = len(data) == len(cut) or problem.start < len(cut) - 3
        text = "" if whole else cut[: problem.start].decode()
    if not text or any(each < " " and each not in "\t\n\r\f" for each in text):
        return cut[:_DIGITS].hex(" ") + (" ..." if len(data) > _DIGITS else "")
    return text if len(data) == len(cut) else f"{text}..."
