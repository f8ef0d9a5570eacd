"""`LatentTransformer`: local encoder, transformer over patches, local decoder."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from hotgrid.blt._layers._block import Block, start_weights
from hotgrid.blt._layers._ids import BOS, byte_ids
from hotgrid.blt._segment._segmenter import Segmenter
from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError
from hotgrid.nn import Mask, RMSNorm, Rotary

from ._config import LatentConfig
from ._cross import CrossAttention
from ._hashes import HashedNgrams
from ._patch_index import PatchIndex, patch_index

_PATCHES = 128


def _blocks(
    count: int, size: int, heads: int, hidden: int, length: int, config: LatentConfig
) -> nn.ModuleList:
    rotary = Rotary(size // heads, length, base=config.base, interleaved=True)
    return nn.ModuleList(
        Block(size, heads, hidden, rotary=rotary, eps=config.eps) for _ in range(count)
    )


class LocalEncoder(nn.Module):
    """Bytes and their n-grams to states of bytes, and to vectors of patches."""

    def __init__(self, config: LatentConfig) -> None:
        super().__init__()
        size, heads = config.local, config.local_heads
        self.vectors = config.vectors
        self.embed = nn.Embedding(config.vocabulary, size)
        self.ngrams = HashedNgrams(
            size, config.ngrams, config.ngram_rows, config.ngram_functions
        )
        self.layers = _blocks(
            config.encoder_layers, size, heads, config.local_hidden, config.local_length, config
        )
        self.project = nn.Linear(size, size * config.vectors, bias=False)
        self.cross = CrossAttention(size, heads, eps=config.eps)

    @checked(ids="b t", returns=("b t size", "b p k size"))
    def forward(self, ids: Tensor, mask: Mask, index: PatchIndex) -> tuple[Tensor, Tensor]:
        """Return states of bytes and vectors of patches."""
        x = self.embed(ids) + self.ngrams(ids)
        for layer in self.layers:
            x = layer(x, mask)
        vectors = self.project(_highest(x, index)).unflatten(-1, (self.vectors, -1))
        return x, vectors + self.cross.pool(vectors, x, index)


class LatentLayers(nn.Module):
    """The transformer over patches."""

    def __init__(self, config: LatentConfig) -> None:
        super().__init__()
        given = config.local * config.vectors
        self.project = (
            nn.Linear(given, config.latent, bias=False) if given != config.latent else None
        )
        self.layers = _blocks(
            config.latent_layers,
            config.latent,
            config.latent_heads,
            config.latent_hidden,
            config.latent_length,
            config,
        )

    @checked(x="b p given", returns="b p latent")
    def forward(self, x: Tensor, mask: Mask) -> Tensor:
        """Return states of patches."""
        x = x if self.project is None else self.project(x)
        for layer in self.layers:
            x = layer(x, mask)
        return x


class LocalDecoder(nn.Module):
    """States of bytes and of patches to those that predict the next byte."""

    def __init__(self, config: LatentConfig) -> None:
        super().__init__()
        size, heads = config.local, config.local_heads
        self.vectors = config.vectors
        self.project = nn.Linear(config.latent, size * config.vectors, bias=False)
        self.cross = nn.ModuleList(
            CrossAttention(size, heads, eps=config.eps) for _ in range(config.decoder_layers)
        )
        self.layers = _blocks(
            config.decoder_layers, size, heads, config.local_hidden, config.local_length, config
        )
        self.norm = RMSNorm(size, eps=config.eps)

    @checked(x="b t size", patches="b p latent", returns="b t size")
    def forward(self, x: Tensor, patches: Tensor, mask: Mask, index: PatchIndex) -> Tensor:
        """Return states of bytes."""
        vectors = self.project(patches).unflatten(-1, (self.vectors, -1))
        for cross, layer in zip(self.cross, self.layers, strict=True):
            x = x + cast("CrossAttention", cross).spread(x, vectors, index)
            x = layer(x, mask)
        return self.norm(x)


class LatentTransformer(nn.Module):
    """A byte-latent transformer: it predicts bytes, and most of its work is done per patch.

    Args:
        config: The sizes.

    Example:
        >>> config = LatentConfig(
        ...     local=16, local_heads=2, local_hidden=32, decoder_layers=1, latent=32,
        ...     latent_heads=2, latent_hidden=32, latent_layers=1, ngram_rows=64,
        ... )
        >>> ids, lengths = patched([b"some bytes"], Static(4))
        >>> LatentTransformer(config)(ids, lengths).shape
        torch.Size([1, 11, 260])
    """

    def __init__(self, config: LatentConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = LocalEncoder(config)
        self.latent = LatentLayers(config)
        self.decoder = LocalDecoder(config)
        self.head = nn.Linear(config.local, config.vocabulary, bias=False)
        start_weights(self)

    @checked(ids="b t", lengths="b p", documents="b t", returns="b t v")
    def forward(self, ids: Tensor, lengths: Tensor, documents: Tensor | None = None) -> Tensor:
        """Return the logits of the next byte at each position.

        Args:
            ids: Ids of bytes, after the beginning-of-sequence token; see `patched`.
            lengths: Lengths of patches; the first is 1, zeros on the right fill rows. They sum
                to the ids of a row, or to one more, which says whether the next byte begins
                a patch. Otherwise the last byte reads the last patch but one.
            documents: The document of each position, see `documents_of`. Patches must not
                cross their borders.

        Raises:
            ArgumentError: A first length is not 1.
        """
        config = self.config
        if lengths.is_cuda:
            lengths = padded_lengths(lengths, config.latent_length)
        index = patch_index(lengths, ids.shape[1])
        mask = Mask(window=config.window, documents=documents)
        x, vectors = self.encoder(ids, mask, index)
        of_patches = None if documents is None else _first(documents, lengths)
        patches = self.latent(vectors.flatten(2), Mask(documents=of_patches))
        return self.head(self.decoder(x, patches, mask, index))


def padded_lengths(lengths: Tensor, most: int) -> Tensor:
    """Return lengths with zeros on the right, up to a multiple of 128, but not beyond `most`.

    On CUDA, attention is compiled for each number of patches, which differs from batch to
    batch.
    """
    count = lengths.shape[1]
    return nn.functional.pad(lengths, (0, max(0, min(-count % _PATCHES, most - count))))


def patched(documents: Sequence[bytes], segmenter: Segmenter) -> tuple[Tensor, Tensor]:
    """Return ids and patch lengths of documents, as `LatentTransformer` takes them.

    Each row starts with the beginning-of-sequence token, a patch of its own. Shorter rows
    are padded, ids with that token and lengths with 0.

    Raises:
        ArgumentError: There are no documents.
    """
    if not documents:
        raise ArgumentError("`documents` is empty; expected at least one")
    one = torch.ones(1, dtype=torch.int64)
    lengths = [torch.cat([one, segmenter.lengths(each).cpu()]) for each in documents]
    ids = [byte_ids(each, bos=True) for each in documents]
    pad = nn.utils.rnn.pad_sequence
    return pad(ids, batch_first=True, padding_value=BOS), pad(lengths, batch_first=True)


def _highest(x: Tensor, index: PatchIndex) -> Tensor:
    """The largest of each element over the bytes of a patch."""
    found = x.new_zeros(len(x), index.patches + 1, x.shape[-1])
    where = index.own[..., None].expand_as(x)
    return found.scatter_reduce(1, where, x, "amax", include_self=False)[:, :-1]


def _first(documents: Tensor, lengths: Tensor) -> Tensor:
    """The document of the first byte of each patch."""
    begins = lengths.cumsum(1) - lengths
    return documents.gather(1, begins.clamp(max=documents.shape[1] - 1))
