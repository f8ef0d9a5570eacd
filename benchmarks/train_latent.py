"""Train a tiny byte-latent transformer beside a byte transformer of equal FLOPs.

    python benchmarks/train_latent.py CORPUS --out out/latent --device cuda
    python benchmarks/train_latent.py CORPUS --out out/try --steps 5 --length 256 --batch 2

CORPUS is a folder of `make_byte_corpus.py`. Both see the same bytes in the same order. Patches
are cut by the n-gram table that comes with hotgrid. The byte transformer is as wide as the
latent layers and as deep as brings its FLOPs per byte nearest. Compare the curves with
`hotgrid train compare OUT/latent OUT/bytes`.
"""

import json
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from byte_corpus import ByteCorpus, Rows
from options import parser
from torch import Tensor, nn

from hotgrid import blt, train

BOS, EOS, IGNORED = 1, 2, -100
AHEAD = 8


class PatchedRows:
    """Rows of a corpus with the lengths of their patches.

    Batches are made ahead by threads, and kept for the second model.
    """

    def __init__(self, rows: Rows, segmenter: blt.Segmenter) -> None:
        self._rows, self._segmenter = rows, segmenter
        self._threads = ThreadPoolExecutor(4)
        self._made: dict[int, Future[tuple[Tensor, Tensor]]] = {}

    def batch(self, index: int, rank: int = 0, ranks: int = 1) -> tuple[Tensor, Tensor]:
        """The rows, and lengths filled with zeros."""
        for at in range(index, index + AHEAD):
            if at not in self._made:
                self._made[at] = self._threads.submit(self._patched, at)
        return self._made[index].result()

    def _patched(self, index: int) -> tuple[Tensor, Tensor]:
        ids = self._rows.batch(index, 0, 1)
        ids[:, 0] = BOS
        lengths = [self._lengths(row[:-1]) for row in ids]
        return ids, nn.utils.rnn.pad_sequence(lengths, batch_first=True)

    def _lengths(self, ids: Tensor) -> Tensor:
        special = ids < 4
        data = bytes(torch.where(special, 10, ids - 4).tolist())
        starts = self._segmenter.starts(data) | special
        starts[1:] |= special[:-1]
        return blt.patch_lengths(starts)


class Held:
    """A number of batches, for evaluation."""

    def __init__(self, source: Any, count: int) -> None:
        self._source, self._count = source, count

    def __len__(self) -> int:
        return self._count

    def batch(self, index: int, rank: int = 0, ranks: int = 1) -> Any:
        """The rows of a rank."""
        return self._source.batch(index, rank, ranks)


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> dict[str, Any]:
    ids, lengths = batch
    inputs, targets = ids[:, :-1], ids[:, 1:]
    targets = targets.masked_fill(targets == BOS, IGNORED)
    documents = blt.documents_of(inputs)
    if isinstance(model, blt.EntropyModel):
        logits = model(inputs, documents).logits
    else:
        logits = model(inputs, lengths, documents)
    found = F.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED
    )
    counted = targets != IGNORED
    return {"loss": found, "count": counted.sum(), "bytes": (targets >= 4).sum()}


def flops(model: nn.Module, batch: tuple[Tensor, Tensor]) -> float:
    return train.flops_per_item(loss, model, batch)


def byte_transformer(
    latent: nn.Module, config: blt.LatentConfig, batch: tuple[Tensor, Tensor]
) -> tuple[blt.EntropyModel, dict[str, float]]:
    """The byte transformer whose FLOPs per byte are nearest, and those of both."""
    wanted = flops(latent, batch)

    def made(layers: int) -> blt.EntropyModel:
        return blt.EntropyModel(
            blt.EntropyConfig(
                size=config.latent,
                layers=layers,
                heads=config.latent_heads,
                hidden=config.latent_hidden,
                window=config.window or 512,
            )
        )

    one, two = (flops(made(layers), batch) for layers in (1, 2))
    layers = max(1, round((wanted - one) / (two - one)) + 1)
    model = made(layers)
    return model, {"latent": wanted, "bytes": flops(model, batch), "layers": layers}


def main() -> None:
    made = parser(__doc__)
    made.add_argument("corpus", type=Path)
    made.add_argument("--out", type=Path, required=True)
    made.add_argument("--steps", type=int, default=4000)
    made.add_argument("--batch", type=int, default=32)
    made.add_argument("--length", type=int, default=4096)
    made.add_argument("--rate", type=float, default=1e-3)
    made.add_argument("--patch", type=float, default=4.5)
    made.add_argument("--only", choices=("latent", "bytes"), help="train this one alone")
    options = made.parse_args()
    corpus = ByteCorpus(options.corpus)
    segmenter = blt.EntropyThreshold(blt.load_ngram_table(), size=options.patch)
    rows = PatchedRows(Rows(corpus, options.length, options.batch), segmenter)
    other = PatchedRows(
        Rows(corpus, options.length, options.batch, seed=1, part="valid"), segmenter
    )
    config = blt.LATENT_SIZES["tiny"]
    torch.manual_seed(0)
    latent = blt.LatentTransformer(config)
    sample = PatchedRows(Rows(corpus, 1024, 1), segmenter).batch(0)
    plain, found = byte_transformer(latent, config, sample)
    print(json.dumps({"FLOPs of a byte, forward and backward": found}))
    rate = train.Warmup(steps=max(1, options.steps // 20)) * train.CosineDecay(
        steps=options.steps, end=0.1
    )
    optimizer = train.AdamW(rate=options.rate * rate, betas=(0.9, 0.95), decay=0.1, clip=1.0)
    for name, model in (("latent", latent), ("bytes", plain)):
        if options.only not in (None, name):
            continue
        outcome = train.Trainer(
            model.to(options.device),
            loss,
            rows,
            lambda module: train.groups(module, {}, rest=optimizer),
            steps=options.steps,
            folder=options.out / name,
            precision="bfloat16" if options.device == "cuda" else "float32",
            metrics=(train.BitsPerByte(), train.Throughput()),
            evaluation=train.Evaluation(
                Held(other, 8),
                every=max(1, options.steps // 20),
                metrics=(train.Loss(), train.BitsPerByte()),
            ),
            log_every=min(20, options.steps),
        ).run()
        print(name, json.dumps(outcome.values))


if __name__ == "__main__":
    main()
