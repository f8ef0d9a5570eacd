"""`Signals`: what a model says about each byte of a document, and about its patches."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hotgrid.contracts import assert_shape
from hotgrid.errors import ArgumentError

_LEAST = 1e-6


@dataclass(frozen=True)
class Signals:
    """The outputs of an entropy model for each byte of one document of t bytes.

    Attributes:
        uncertainty: The entropy in nats of the next byte, before the first byte and after
            each one; t + 1 values.
        prominence: The norm of the embedding of each byte.
        embeddings: The residual stream at each byte before the last norm, which would
            discard its magnitude; None if not asked for.
        logits: The logits of the next byte, t + 1 rows; None if not asked for.
    """

    uncertainty: Tensor
    prominence: Tensor
    embeddings: Tensor | None = None
    logits: Tensor | None = None

    @property
    def entropies(self) -> Tensor:
        """The entropy in nats of each byte as predicted from the bytes before it."""
        return self.uncertainty[:-1]

    @property
    def coherence(self) -> Tensor:
        """The square of the prominence over the entropy after each byte."""
        return self.prominence.square() / (self.uncertainty[1:] + _LEAST)

    def over(self, lengths: Tensor) -> "PatchSignals":
        """Return the signals of patches: mean entropy and embedding, largest prominence.

        Raises:
            ContractError: `lengths` is not a vector.
            ArgumentError: Lengths are below 1 or do not add up to the number of bytes.
        """
        assert_shape("p", lengths)
        count = len(self.prominence)
        # Both at once: each question to a GPU waits for all that it does.
        total, wrong = torch.stack([lengths.sum(), (lengths < 1).sum()]).tolist()
        if total != count or wrong:
            raise ArgumentError(
                f"`lengths` add up to {total}; expected lengths from 1 that add up to the "
                f"{count} bytes"
            )
        on_device = lengths.to(self.prominence.device)
        numbers = torch.repeat_interleave(on_device, output_size=count)
        sizes = lengths.to(self.prominence)

        def mean(x: Tensor) -> Tensor:
            total = x.new_zeros(len(lengths), *x.shape[1:]).index_add_(0, numbers, x)
            return total / sizes.view(-1, *[1] * (x.ndim - 1))

        largest = self.prominence.new_zeros(len(lengths))
        largest.scatter_reduce_(0, numbers, self.prominence, "amax", include_self=False)
        embeddings = None if self.embeddings is None else mean(self.embeddings)
        return PatchSignals(lengths, mean(self.entropies), largest, embeddings)


@dataclass(frozen=True)
class PatchSignals:
    """The signals of each patch of a document.

    Attributes:
        lengths: In bytes.
        entropies: The mean over the bytes, in nats.
        prominence: The largest of the bytes.
        embeddings: The mean over the bytes; None if bytes have none.
    """

    lengths: Tensor
    entropies: Tensor
    prominence: Tensor
    embeddings: Tensor | None = None
