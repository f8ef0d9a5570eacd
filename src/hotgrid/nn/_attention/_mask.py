"""`Mask`: which keys a query sees, as data; dense or in blocks where it is needed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hotgrid.errors import ArgumentError

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

_MOST_KEPT = 4


@dataclass(frozen=True, eq=False)
class Mask:
    """Which keys a query sees: all rules hold together.

    Make one for a forward pass and give it to every layer: what is computed from it is
    kept.

    Args:
        causal: Keys up to its own position.
        window: How many of the last keys, itself included; without `causal` as many on the
            other side, too. None for all.
        documents: The document of each position, of shape `(b, s)`; a query sees keys of
            its own. For several texts packed into a row.

    Raises:
        ArgumentError: The window is below 1, or `documents` is not a matrix.
    """

    causal: bool = True
    window: int | None = None
    documents: Tensor | None = None
    _kept: dict[tuple[Any, ...], Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.window is not None and (type(self.window) is not int or self.window < 1):
            raise ArgumentError(f"`window` must be at least 1 key, got {self.window!r}")
        given = self.documents
        if given is not None and (not isinstance(given, Tensor) or given.ndim != 2):
            shape = list(given.shape) if isinstance(given, Tensor) else type(given).__name__
            raise ArgumentError(
                f"`documents` must be a tensor of the shape (batch, positions), got {shape}"
            )

    def part(self, first: int, end: int) -> "Mask":
        """The mask of some keys; itself where it depends on distances alone."""
        if self.documents is None:
            return self
        return Mask(self.causal, self.window, self.documents[:, first:end])

    def dense(
        self, queries: int, keys: int, offset: int | Tensor, device: torch.device
    ) -> Tensor:
        """True where a query sees a key; of shape (t, s), or (b, 1, t, s) with documents.

        The first query is at position `offset` among the keys.
        """

        def compute() -> Tensor:
            query = torch.arange(queries, device=device)[:, None] + offset
            key = torch.arange(keys, device=device)
            seen = _sees(query, key, self.causal, self.window)
            if self.documents is not None:
                of_keys = self.documents[:, None, None, :keys]
                of_queries = self.documents[:, query[:, 0]][:, None, :, None]
                seen = seen & (of_queries == of_keys)
            return seen

        if isinstance(offset, Tensor):
            return compute()
        return self._keep(("dense", queries, keys, offset, device), compute)

    def blocks(self, queries: int, keys: int, offset: int, device: torch.device) -> "BlockMask":
        """The same for `flex_attention`."""
        from torch.nn.attention.flex_attention import create_block_mask

        # Not `self`, so that compiled code depends on no more than it reads.
        causal, window, documents = self.causal, self.window, self.documents

        def seen(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            at = query + offset
            inside = _sees(at, key, causal, window)
            return (
                inside
                if documents is None
                else inside & (documents[batch, at] == documents[batch, key])
            )

        batch = None if documents is None else len(documents)
        return self._keep(
            ("blocks", queries, keys, offset, device),
            lambda: create_block_mask(seen, batch, None, queries, keys, device=str(device)),
        )

    def _keep(self, key: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        # Inside a compiled graph the mask is fused; a kept tensor would leave the graph.
        if torch.compiler.is_compiling():
            return compute()
        found = self._kept.get(key)
        if found is None:
            found = compute()
            # Offsets of a cache grow and grow. Other threads may be here, too.
            for old in list(self._kept)[: 1 - _MOST_KEPT]:
                self._kept.pop(old, None)
            self._kept[key] = found
        return found


def _sees(query: Tensor, key: Tensor, causal: bool, window: int | None) -> Tensor:
    """Whether positions of queries see positions of keys, documents aside."""
    seen = key <= query if causal else torch.ones_like(key <= query)
    if window is not None:
        seen = seen & (query - key < window)
        if not causal:
            seen = seen & (key - query < window)
    return seen
