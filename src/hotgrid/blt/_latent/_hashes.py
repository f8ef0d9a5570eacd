"""`HashedNgrams`: embeddings of the last bytes, found by a hash."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError

PRIMES = (
    1_000_000_007, 5_915_587_277, 1_500_450_271, 3_267_000_013, 5_754_853_343, 4_093_082_899,
    9_576_890_767, 3_628_273_133, 2_860_486_313, 5_463_458_053, 3_367_900_313,
)  # fmt: skip
"""The base of the polynomial of each hash function, as in the published models."""


class HashedNgrams(nn.Module):
    """The sum of the embeddings of the n-grams that end with each id.

    An n-gram has the row `sum(id_k * prime ** k) mod rows` of its table, with 64-bit
    arithmetic that wraps around; before the beginning there are zeros. All tables are one.

    Args:
        size: Channels of an embedding.
        lengths: Lengths of n-grams.
        rows: Rows of each table.
        functions: Hash functions for each length.

    Raises:
        ArgumentError: There are more functions than primes.
    """

    def __init__(self, size: int, lengths: tuple[int, ...], rows: int, functions: int) -> None:
        super().__init__()
        if functions > len(PRIMES):
            raise ArgumentError(f"`functions` is {functions}; there are {len(PRIMES)} primes")
        self.lengths, self.rows, self.functions = lengths, rows, functions
        self.table = nn.Embedding(rows * len(lengths) * functions, size)

    @checked(ids="b t", returns="b t n")
    def numbers(self, ids: Tensor) -> Tensor:
        """Return the rows of each id's n-grams in the whole table."""
        found = []
        for prime in PRIMES[: self.functions]:
            for length in self.lengths:
                total = torch.zeros_like(ids)
                for k in range(length):
                    back = length - 1 - k
                    moved = F.pad(ids, (back, 0))[:, : ids.shape[1]]
                    total = total + moved * _wrapped(prime**k)
                found.append(total % self.rows + self.rows * len(found))
        return torch.stack(found, -1)

    @checked(ids="b t", returns="b t size")
    def forward(self, ids: Tensor) -> Tensor:
        """Return the sums of embeddings."""
        # One after another: all of them together would be several times the states.
        total = None
        for numbers in self.numbers(ids).unbind(-1):
            each = self.table(numbers)
            total = each if total is None else total + each
        if total is None:
            return self.table.weight.new_zeros(*ids.shape, self.table.embedding_dim)
        return total


def _wrapped(number: int) -> int:
    """A number as a signed one of 64 bits."""
    return (number + 2**63) % 2**64 - 2**63
