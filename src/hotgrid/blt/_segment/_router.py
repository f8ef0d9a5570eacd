"""`Router`: boundaries that are learned, where neighbouring states differ (H-Net)."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hotgrid.blt._entropy._model import EntropyModel
from hotgrid.blt._entropy._window import WindowCache
from hotgrid.blt._layers._ids import BOS, byte_ids
from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError

from ._segmenter import CausalSegmenter, SegmentStream


class Router(nn.Module):
    """The probability that a patch begins with a byte, from its state and the one before.

    It is (1 - cos(q x_t, k x_(t-1))) / 2, with linear maps q and k that begin as identities.

    Args:
        size: The size of states.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.q = nn.Linear(size, size, bias=False)
        self.k = nn.Linear(size, size, bias=False)
        for each in (self.q, self.k):
            nn.init.eye_(each.weight)

    @checked(x="b t size", before="b 1 size", bind="self.size", returns="b t")
    def forward(self, x: Tensor, before: Tensor | None = None) -> Tensor:
        """Return probabilities; without a state before, the first is 1."""
        left = x[:, :-1] if before is None else torch.cat([before, x[:, :-1]], 1)
        right = x[:, 1:] if before is None else x
        p = (1 - F.cosine_similarity(self.q(right), self.k(left), dim=-1)) / 2
        return p if before is not None else F.pad(p, (1, 0), value=1.0)

    @checked(p="b t")
    def ratio_loss(self, p: Tensor, size: float) -> Tensor:
        """Return the loss that pulls the mean length of patches to `size`; 1 is its minimum.

        Raises:
            ArgumentError: The size is not above 1.
        """
        if not size > 1:
            raise ArgumentError(f"`size` is {size}; expected a mean length above 1 byte")
        chosen, mean = (p >= 0.5).to(p.dtype).mean(), p.mean()
        other = (size - 1) * chosen * mean + (1 - chosen) * (1 - mean)
        return other * size / (size - 1)


@dataclass(frozen=True)
class Routed(CausalSegmenter):
    """A patch begins where a router says so, from the embeddings of an entropy model.

    Whether a byte begins a patch is known when it has been read, not before.

    Args:
        model: Gives the embedding of each byte.
        router: A router of the same size.
        threshold: The least probability.

    Raises:
        ArgumentError: The sizes differ.
    """

    model: EntropyModel
    router: Router
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if self.model.config.size != self.router.size:
            raise ArgumentError(
                f"the router is for states of {self.router.size}, and the model has "
                f"{self.model.config.size}"
            )

    def stream(self) -> SegmentStream:
        """Return a stream for bytes that come in parts."""
        return _Stream(self)


class _Stream(SegmentStream):
    def __init__(self, routed: Routed) -> None:
        model = routed.model
        self._routed, self._chunk = routed, model._chunk(model.embed.weight.is_cuda)
        self._cache = WindowCache(model, 1, self._chunk)
        self._begun = False
        with torch.no_grad():
            self._before = self._states(torch.tensor([BOS]))

    @torch.no_grad()
    def push(self, data: bytes) -> Tensor:
        found = [torch.empty(0, dtype=torch.bool, device=self._before.device)]
        for ids in byte_ids(data).split(self._chunk) if data else ():
            states = self._states(ids)
            p = self._routed.router(states, self._before)[0]
            found.append(p >= self._routed.threshold)
            self._before = states[:, -1:]
        starts = torch.cat(found)
        if not self._begun and data:
            starts[0] = self._begun = True
        return starts

    def _states(self, ids: Tensor) -> Tensor:
        return self._cache.forward(ids[None].to(self._routed.model.embed.weight.device))[1]
