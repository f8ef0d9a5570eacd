"""`Encoder`: views to bytes, entropies and patches."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotgrid.blt._entropy._byte_model import ByteModel
from hotgrid.blt._entropy._files import load_entropy_model, model_file
from hotgrid.blt._entropy._model import EntropyModel
from hotgrid.blt._entropy._ngram_table import is_ngram_table, load_ngram_table
from hotgrid.blt._entropy._window import WindowCache
from hotgrid.blt._layers._device import usable_device
from hotgrid.blt._layers._ids import BOS, byte_ids
from hotgrid.blt._segment._at_most import AtMost
from hotgrid.blt._segment._entropy import EntropySegmenter
from hotgrid.blt._segment._registry import segmenter
from hotgrid.blt._segment._segmenter import Segmenter, patch_lengths
from hotgrid.errors import ArgumentError

from ._modalities._modality import View
from ._settings import IngestSettings

_AT_ONCE = 1 << 28
"""Embeddings of bytes up to this size come with the entropies; others in a second pass."""


@dataclass(frozen=True)
class Encoded:
    """A document of n bytes in p patches.

    Attributes:
        data: The bytes of its views, one after another.
        entropies: The entropy of each byte in nats, float32 or float16. Views are predicted
            separately.
        lengths: The lengths of patches, in bytes.
        patch_entropies: The mean over the bytes of each patch.
        prominence: The largest norm in each patch; None if the model has no embeddings.
        embeddings: The mean over the bytes of each patch; None if the model has none.
    """

    data: NDArray[np.uint8]
    entropies: NDArray[np.floating]
    lengths: NDArray[np.int32]
    patch_entropies: NDArray[np.float32]
    prominence: NDArray[np.float32] | None = None
    embeddings: NDArray[np.float32] | None = None


def load_model(path: str | None, device: str = "cpu", *, compiled: bool = False) -> ByteModel:
    """The model `nano`, or what is in a file; by default the n-gram table of hotgrid.

    Raises:
        ArgumentError: There is no such model, or it is a table, which runs on the CPU only.
    """
    if path is None or is_ngram_table(model_file(path)):
        if compiled or not device.startswith("cpu"):
            what = "compiling" if compiled else f"`device` {device}"
            raise ArgumentError(
                f"{what} is for an entropy model, and the model is an n-gram table; choose "
                "one, such as nano (--model nano), or leave it out"
            )
        return load_ngram_table(path)
    return load_entropy_model(path, device=usable_device(device), compiled=compiled)


class Encoder:
    """Cuts views into patches with a model and a segmenter.

    Args:
        settings: Which ones.

    Raises:
        ArgumentError: There is no such model, or its thresholds are missing.
    """

    def __init__(self, settings: IngestSettings) -> None:
        self.model = load_model(settings.model, settings.device, compiled=settings.compiled)
        self._segmenter: Segmenter = segmenter(
            settings.segmenter,
            model=self.model,
            threshold=settings.threshold,
            size=settings.size,
        )
        self._most, self._media = settings.most, settings.media
        self._kept = np.dtype("float16" if settings.entropies == "float16" else "float32")

    def encode(self, views: Sequence[View]) -> Encoded:
        """Encode the views of a document; the context of one does not reach into the next."""
        return _joined([self._encode(each) for each in views if each.data])

    def _encode(self, view: View) -> Encoded:
        data = view.data
        model = self.model
        if isinstance(model, EntropyModel) and 4 * model.config.size * len(data) <= _AT_ONCE:
            signals = model.signals([data], embeddings=True)[0]
            lengths = self._lengths(view, signals.entropies)
            over = signals.over(lengths)
            more = (over.entropies, over.prominence, over.embeddings)
            entropies = signals.entropies
        else:
            entropies = model.entropies(data)
            lengths = self._lengths(view, entropies)
            more = (_means(entropies, lengths), None, None)
            if isinstance(model, EntropyModel):
                more = (more[0], *_embedded(model, data, lengths))
        means, prominence, embeddings = more
        return Encoded(
            np.frombuffer(data, np.uint8),
            _array(entropies).astype(self._kept, copy=False),
            lengths.cpu().numpy().astype(np.int32),
            _array(means),
            None if prominence is None else _array(prominence),
            None if embeddings is None else _array(embeddings),
        )

    def _lengths(self, view: View, entropies: Tensor) -> Tensor:
        rule = self._segmenter
        if view.framed and self._media == "pieces":
            starts = torch.zeros(len(view.data), dtype=torch.bool)
            starts[:1] = True
        elif isinstance(rule, EntropySegmenter):
            starts = rule.starts_of(entropies)
        else:
            starts = rule.starts(view.data)
        places = [each.start for each in view.pieces if each.start < len(view.data)]
        starts[torch.tensor(places, dtype=torch.int64, device=starts.device)] = True
        if self._most is not None:
            starts = AtMost(_Given(starts), self._most).starts(view.data)
        return patch_lengths(starts)


@dataclass(frozen=True)
class _Given(Segmenter):
    """A segmenter whose starts are known."""

    known: Tensor

    def starts(self, data: bytes) -> Tensor:
        return self.known


def _joined(parts: Sequence[Encoded]) -> Encoded:
    """Views one after another."""

    def both(known: Sequence[NDArray[np.float32] | None]) -> NDArray[np.float32] | None:
        found = [each for each in known if each is not None]
        return np.concatenate(found) if found else None

    return Encoded(
        np.concatenate([each.data for each in parts]),
        np.concatenate([each.entropies for each in parts]),
        np.concatenate([each.lengths for each in parts]),
        np.concatenate([each.patch_entropies for each in parts]),
        both([each.prominence for each in parts]),
        both([each.embeddings for each in parts]),
    )


def _array(values: Tensor) -> NDArray[np.float32]:
    return values.detach().float().cpu().numpy()


def _means(values: Tensor, lengths: Tensor) -> Tensor:
    sizes = lengths.to(values.device)
    numbers = torch.repeat_interleave(sizes)
    sums = torch.zeros(len(sizes), dtype=torch.float64, device=values.device)
    sums.index_add_(0, numbers, values.double())
    return (sums / sizes).float()


@torch.no_grad()
def _embedded(model: EntropyModel, data: bytes, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The prominence and the embeddings of patches, without keeping those of bytes."""
    device = model.embed.weight.device
    numbers = torch.repeat_interleave(lengths.to(device))
    chunk = model._chunk(device.type == "cuda")
    cache = WindowCache(model, 1, chunk)
    cache.forward(torch.tensor([[BOS]], device=device))
    sums = torch.zeros(len(lengths), model.config.size, device=device)
    largest = torch.zeros(len(lengths), device=device)
    at = 0
    for ids in byte_ids(data).split(chunk):
        states = cache.forward(ids[None].to(device)).embeddings[0].float()
        inside = numbers[at : at + len(ids)]
        sums.index_add_(0, inside, states)
        largest.scatter_reduce_(0, inside, states.norm(dim=-1), "amax")
        at += len(ids)
    return largest, sums / lengths.to(sums)[:, None]
