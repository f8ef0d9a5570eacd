"""A corpus of bytes in a folder: documents by kind, as ids, with whole documents held out.

`make_byte_corpus.py` writes it; `make_ngram_table.py`, `train_entropy_model.py` and
`train_latent.py` read it.
"""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from hotgrid.blt import byte_ids, ids_to_bytes

# Shares of a training batch, as far as the corpus has the kind.
MIX = {"prose": 0.55, "code": 0.25, "markup": 0.10, "other": 0.05, "binary": 0.05}
BOS = 1


class ByteCorpus:
    """The documents of a folder: `{train,valid}-KIND.npy` holds [BOS, bytes + 4, EOS] ..."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.card = json.loads((folder / "corpus.json").read_text())
        self.kinds = [kind for kind in MIX if (folder / f"train-{kind}.npy").is_file()]

    def ids(self, part: str, kind: str) -> np.ndarray:
        """The ids of one kind, mapped into memory."""
        return np.load(self.folder / f"{part}-{kind}.npy", mmap_mode="r")

    def documents(self, part: str, kind: str) -> list[bytes]:
        """The documents of one kind."""
        ids = np.asarray(self.ids(part, kind))
        begins = [*np.flatnonzero(ids == BOS).tolist(), len(ids)]
        rows = (ids[begin:end].astype(np.int64) for begin, end in pairwise(begins))
        return [ids_to_bytes(torch.from_numpy(row)) for row in rows]


class Rows:
    """Batches by position: rows of `length` + 1 ids from random places, in the mix.

    A batch depends on the seed and its number alone, so a run resumes exactly.
    """

    def __init__(
        self, corpus: ByteCorpus, length: int, size: int, seed: int = 0, part: str = "train"
    ) -> None:
        self.length, self.size, self.seed = length, size, seed
        self._ids = [corpus.ids(part, kind) for kind in corpus.kinds]
        shares = np.array([MIX[kind] for kind in corpus.kinds])
        self._shares = shares / shares.sum()

    def batch(self, index: int, rank: int = 0, ranks: int = 1) -> torch.Tensor:
        """The rows of a rank."""
        random = np.random.default_rng([self.seed, index])
        kinds = random.choice(len(self._ids), self.size, p=self._shares)
        places = random.random(self.size)
        rows = np.empty((self.size, self.length + 1), dtype=np.int64)
        for row, (kind, place) in enumerate(zip(kinds, places, strict=True)):
            ids = self._ids[kind]
            at = int(place * max(1, len(ids) - self.length))
            some = ids[at : at + self.length + 1]
            rows[row, : len(some)] = some
            rows[row, len(some) :] = BOS
        return torch.from_numpy(rows[rank::ranks])


class HeldOut:
    """Rows of the held-out documents of one kind, in sequence, each beginning with BOS."""

    def __init__(
        self, corpus: ByteCorpus, kind: str, length: int, size: int, most: int
    ) -> None:
        rows: list[torch.Tensor] = []
        for document in corpus.documents("valid", kind):
            if len(rows) * length >= most:
                break
            for at in range(0, len(document), length):
                row = byte_ids(document[at : at + length], bos=True)
                padded = torch.full((length + 1,), -100)
                padded[: len(row)] = row
                rows.append(padded)
        self._rows, self._size = torch.stack(rows), size

    def __len__(self) -> int:
        return (len(self._rows) + self._size - 1) // self._size

    def batch(self, index: int, rank: int = 0, ranks: int = 1) -> torch.Tensor:
        """The rows of a rank."""
        return self._rows[index * self._size : (index + 1) * self._size][rank::ranks]
