"""Bytes as token ids, in the numbering of the published byte-latent models."""

import numpy as np
import torch
from torch import Tensor

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError

BOE, BOS, EOS, DELIMITER = 0, 1, 2, 3
"""Begin of example, begin and end of a sequence, and the delimiter of BPE tokens."""

OFFSET = 4
"""Byte b has the id b + 4."""

VOCABULARY = 256 + OFFSET


def byte_ids(data: bytes, *, bos: bool = False, eos: bool = False) -> Tensor:
    """Return the ids of bytes as int64, with beginning- and end-of-sequence ids if asked.

    Example:
        >>> byte_ids(b"Hi", bos=True)
        tensor([  1,  76, 109])
    """
    ids = np.empty(bos + len(data) + eos, dtype=np.int64)
    ids[bos : bos + len(data)] = np.frombuffer(data, dtype=np.uint8)
    ids += OFFSET
    if bos:
        ids[0] = BOS
    if eos:
        ids[-1] = EOS
    return torch.from_numpy(ids)


@checked(ids="t")
def ids_to_bytes(ids: Tensor) -> bytes:
    """Return the bytes of ids; special ids are left out.

    Example:
        >>> ids_to_bytes(torch.tensor([1, 76, 109, 2]))
        b'Hi'

    Raises:
        ArgumentError: An id is not one of the vocabulary.
    """
    found = ids.detach().cpu().numpy()
    if found.size and (found.min() < 0 or found.max() >= VOCABULARY):
        raise ArgumentError(
            f"ids go from {found.min()} to {found.max()}; expected 0 to {VOCABULARY - 1}"
        )
    return (found[found >= OFFSET] - OFFSET).astype(np.uint8).tobytes()


@checked(ids="b t", returns="b t")
def documents_of(ids: Tensor) -> Tensor:
    """Return the number of the document of each position, for the mask of packed rows.

    A document starts at a beginning-of-sequence id, or after an end-of-sequence id.

    Example:
        >>> documents_of(torch.tensor([[1, 76, 2, 1, 109, 1, 76]]))
        tensor([[1, 1, 1, 2, 2, 3, 3]])
    """
    begins = ids == BOS
    begins[:, 1:] |= ids[:, :-1] == EOS
    return begins.cumsum(1)
