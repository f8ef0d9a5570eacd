"""`EntropyModel`: a small transformer over bytes, and the signals it gives."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from hotgrid.blt._layers._block import Block, entropy_of, start_weights
from hotgrid.blt._layers._ids import BOS, byte_ids
from hotgrid.contracts import checked
from hotgrid.errors import ArgumentError
from hotgrid.nn import Mask, RMSNorm, Rotary

from ._byte_model import ByteModel, EntropyStream
from ._config import EntropyConfig
from ._signals import Signals
from ._window import EntropyOutput, WindowCache

# Shorter sequences are attended to with a dense mask: see `hotgrid.nn.attention`.
_CHUNK_CUDA, _CHUNK_CPU = 4096, 2048
_BATCH_CUDA, _BATCH_CPU = 1 << 17, 1 << 12


class EntropyModel(nn.Module, ByteModel):
    """Predicts the next byte; the entropy of the prediction says where patches begin.

    The arithmetic is that of facebook/blt-entropy: ids are bytes + 4, rotary positions turn
    interleaved pairs, each byte sees a window of bytes, and entropies are in nats.

    Args:
        config: The sizes.

    Attributes:
        compiled: Whether layers are compiled for `signals`, which takes some ten seconds once:
            for much data. Results differ by rounding.

    Example:
        >>> model = EntropyModel(EntropyConfig(size=32, layers=2, heads=2, hidden=64))
        >>> model.signals([b"some bytes"])[0].entropies.shape
        torch.Size([10])
    """

    def __init__(self, config: EntropyConfig) -> None:
        super().__init__()
        self.config, self.compiled = config, False
        self.thresholds: dict[str, dict[str, float]] = {}
        self.embed = nn.Embedding(config.vocabulary, config.size)
        rotary = Rotary(
            config.size // config.heads, config.length, base=config.base, interleaved=True
        )
        self.layers = nn.ModuleList(
            Block(config.size, config.heads, config.hidden, rotary=rotary, eps=config.eps)
            for _ in range(config.layers)
        )
        self.norm = RMSNorm(config.size, eps=config.eps)
        self.head = nn.Linear(config.size, config.vocabulary, bias=False)
        start_weights(self)

    @checked(ids="b t", documents="b t", returns=("b t v", "b t size"))
    def forward(self, ids: Tensor, documents: Tensor | None = None) -> EntropyOutput:
        """Return logits and pre-norm embeddings of sequences of at most `config.length` ids.

        Args:
            ids: See `byte_ids`.
            documents: The document of each position, see `documents_of`; a byte sees its
                own. By default a row is one.
        """
        mask = Mask(window=self.config.window, documents=documents)
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, mask)
        return EntropyOutput(self.head(self.norm(x)), x)

    @torch.no_grad()
    def signals(
        self,
        documents: Sequence[bytes],
        *,
        embeddings: bool = False,
        logits: bool = False,
        chunk: int | None = None,
        batch: int | None = None,
    ) -> list[Signals]:
        """Return the signals of documents of any length.

        Documents of similar length share a batch. Long ones go through in chunks; keys and
        values of the last window stay, so that the result is that of one pass, up to
        rounding.

        Args:
            documents: Each is predicted from its own beginning.
            embeddings: Whether to keep the embeddings, which need 4 * size bytes for a byte.
            logits: Whether to keep the logits.
            chunk: Bytes of a document in one pass; by default 4096 on CUDA, 2048 elsewhere.
            batch: The most bytes of all documents in one pass; by default 131,072 on CUDA,
                4096 elsewhere.

        Raises:
            ArgumentError: `documents` are not bytes, `chunk` or `batch` is below 1, or a
                chunk and a window are longer than `config.length`.
        """
        if isinstance(documents, str | bytes) or not all(
            isinstance(each, bytes | bytearray) for each in documents
        ):
            raise ArgumentError(
                "`documents` must be a list of bytes, such as [b'...']; encode texts with "
                "`.encode()`"
            )
        on_cuda = self.embed.weight.is_cuda
        chunk = self._chunk(on_cuda) if chunk is None else chunk
        batch = (_BATCH_CUDA if on_cuda else _BATCH_CPU) if batch is None else batch
        for name, value in (("chunk", chunk), ("batch", batch)):
            if value < 1:
                raise ArgumentError(f"`{name}` must be at least 1 byte, got {value}")
        found: dict[int, Signals] = {}
        for group in _groups([len(each) for each in documents], chunk, batch):
            rows = self._rows([documents[i] for i in group], chunk, embeddings, logits)
            found.update(zip(group, rows, strict=True))
        return [found[i] for i in range(len(documents))]

    def entropies(self, data: bytes) -> Tensor:
        """Return the entropy in nats of each byte, predicted from those before it."""
        return self.signals([data])[0].entropies

    def stream(self) -> EntropyStream:
        """Return a stream of entropies for bytes that come in parts."""
        return _ModelStream(self)

    def _chunk(self, on_cuda: bool) -> int:
        most = self.config.length - self.config.window + 1
        return min(_CHUNK_CUDA if on_cuda else _CHUNK_CPU, most)

    def _rows(
        self, documents: list[bytes], chunk: int, embeddings: bool, logits: bool
    ) -> list[Signals]:
        sizes = [len(each) for each in documents]
        longest = max(sizes)
        ids = torch.full((len(documents), longest + 1), BOS)
        for row, each in enumerate(documents):
            ids[row, 1 : len(each) + 1] = byte_ids(each)
        ids = ids.to(self.embed.weight.device)
        cache = WindowCache(self, len(documents), min(chunk, longest + 1))
        parts: list[tuple[Tensor, ...]] = []
        for some in ids.split(chunk, 1):
            out = cache.forward(some)
            states = out.embeddings.float()
            part = (entropy_of(out.logits), states.norm(dim=-1))
            part += (states if embeddings else part[0], out.logits if logits else part[0])
            parts.append(part)
        whole = [torch.cat(each, 1) for each in zip(*parts, strict=True)]
        return [
            Signals(
                whole[0][row, : n + 1],
                whole[1][row, 1 : n + 1],
                whole[2][row, 1 : n + 1] if embeddings else None,
                whole[3][row, : n + 1] if logits else None,
            )
            for row, n in enumerate(sizes)
        ]


class _ModelStream(EntropyStream):
    """Entropies of bytes that come in parts."""

    def __init__(self, model: EntropyModel) -> None:
        self._chunk = model._chunk(model.embed.weight.is_cuda)
        self._cache = WindowCache(model, 1, self._chunk)
        self._device = model.embed.weight.device
        # What the bytes so far say about the next one.
        self._next = self._uncertainty(torch.tensor([BOS]))

    def push(self, data: bytes) -> Tensor:
        parts = [self._next, *map(self._uncertainty, byte_ids(data).split(self._chunk))]
        whole = torch.cat(parts)[: len(data) + 1]
        self._next = whole[-1:]
        return whole[:-1]

    @torch.no_grad()
    def _uncertainty(self, ids: Tensor) -> Tensor:
        if not len(ids):
            return torch.empty(0, device=self._device)
        return entropy_of(self._cache.forward(ids[None].to(self._device)).logits)[0]


def _groups(sizes: list[int], chunk: int, batch: int) -> Iterator[list[int]]:
    """Documents that share a batch: neighbours in length, within the bytes of one pass."""
    group: list[int] = []
    for i in sorted(range(len(sizes)), key=lambda i: sizes[i]):
        if group and (len(group) + 1) * min(sizes[i] + 1, chunk) > batch:
            yield group
            group = []
        group.append(i)
    if group:
        yield group
