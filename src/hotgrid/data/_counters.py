"""Counters of what a loader has read and written."""

from dataclasses import dataclass


@dataclass
class Counters:
    """Counts of what a loader has read and yielded.

    Attributes:
        files: Files whose first document was read.
        documents: Documents that were read.
        bytes: Their size as UTF-8.
        tokens: Tokens that were made of them.
        rows: Rows that were packed.
        packed: Tokens in those rows, without the ones that start a document.
        dropped: Tokens that were cut off to fill a row.
    """

    files: int = 0
    documents: int = 0
    bytes: int = 0
    tokens: int = 0
    rows: int = 0
    packed: int = 0
    dropped: int = 0

    @property
    def loss(self) -> float:
        """The share of tokens that packing has lost, from 0 to 1.

        Example:
            >>> Counters(packed=75, dropped=25).loss
            0.25
        """
        return self.dropped / max(1, self.packed + self.dropped)
