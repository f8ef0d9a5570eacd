"""Heads whose logits are soft-capped, and their loss without all logits at once."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError

IGNORED = -100


def softcap(x: Tensor, cap: float | None) -> Tensor:
    """Return `cap * tanh(x / cap)`: close to x near 0, never beyond the cap; x for None.

    Example:
        >>> softcap(torch.tensor([0.1, 1000.0]), 15.0)
        tensor([ 0.1000, 15.0000])
    """
    return x if cap is None else cap * torch.tanh(x / cap)


class Head(nn.Module):
    """Logits over a vocabulary, in float32, soft-capped.

    Args:
        size: The size of the last dimension of its input.
        vocabulary: The number of logits.
        cap: The bound of the logits; None for none.
        bias: Whether the linear map has one.
        device: The device of the parameters.
        dtype: Their dtype.
    """

    def __init__(
        self,
        size: int,
        vocabulary: int,
        *,
        cap: float | None = 15.0,
        bias: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if cap is not None and not cap > 0:
            raise ArgumentError(f"`cap` must be above 0, or None for no cap, got {cap}")
        self.size, self.vocabulary, self.cap = size, vocabulary, cap
        self.linear = nn.Linear(size, vocabulary, bias, device, dtype)

    @checked(x="... size", bind=["self.size", "self.vocabulary"], returns="... vocabulary")
    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        return softcap(_wide(self.linear(x)), self.cap)

    @checked(x="b t size", targets="b t", bind="self.size")
    def loss(self, x: Tensor, targets: Tensor, *, chunk: int = 4096) -> Tensor:
        """Return the mean cross-entropy, as of `forward`, in less memory.

        Logits are computed for some tokens at a time and once more in the backward pass,
        so that `chunk * vocabulary` of them exist at once. That is a third more work for
        the head.

        Args:
            x: Inputs of the head.
            targets: The right class of each; -100 where it does not count.
            chunk: How many tokens at a time.

        Raises:
            ArgumentError: `chunk` is below 1.
        """
        if chunk < 1:
            raise ArgumentError(f"`chunk` must be at least 1 token, got {chunk}")
        rows, wanted = x.flatten(0, 1), targets.flatten()
        total = rows.new_zeros((), dtype=torch.promote_types(x.dtype, torch.float32))
        for some, classes in zip(rows.split(chunk), wanted.split(chunk), strict=True):
            total = total + checkpoint(self._summed, some, classes, use_reentrant=False)
        return total / (wanted != IGNORED).sum()

    def _summed(self, rows: Tensor, classes: Tensor) -> Tensor:
        logits = softcap(_wide(self.linear(rows)), self.cap)
        return F.cross_entropy(logits, classes, ignore_index=IGNORED, reduction="sum")

    def extra_repr(self) -> str:
        """Return the cap."""
        return f"cap={self.cap}"


def _wide(x: Tensor) -> Tensor:
    """Float32, or float64 where it is that."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
