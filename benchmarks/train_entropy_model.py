"""Train an entropy model on a corpus of bytes, calibrate its thresholds and write its file.

    python benchmarks/train_entropy_model.py CORPUS --out out/nano --device cuda
    python benchmarks/train_entropy_model.py CORPUS --out out/try --steps 20 --length 256

CORPUS is a folder of `make_byte_corpus.py`. `--resume` goes on with a run that was stopped. At
the end the averaged weights go through the held-out documents of each kind: bits per byte,
beside those of xz on the same bytes. `entropy_model.safetensors` in the folder of the run has
them, the thresholds for patches of 3 to 8 bytes and the sources of the corpus as metadata.
Exits with 1 when prose or code is above the limit for release (1.80 and 1.30).
"""

import copy
import json
import lzma
import math
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from byte_corpus import MIX, ByteCorpus, HeldOut, Rows
from options import parser
from torch import Tensor, nn

from hotgrid import blt, train

RATES = {"nano": 3e-3, "small": 2e-3, "base": 1e-3, "blt-entropy": 4e-4}
LIMITS = {"prose": 1.80, "code": 1.30}
BOS, IGNORED = 1, -100


def loss(model: nn.Module, ids: Tensor) -> dict[str, Any]:
    """The mean nats of the next byte; what follows the end of a document does not count."""
    inputs, targets = ids[:, :-1].clamp(min=BOS), ids[:, 1:]
    targets = targets.masked_fill(targets == BOS, IGNORED)
    logits = model(inputs, blt.documents_of(inputs)).logits
    found = F.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED
    )
    counted = targets != IGNORED
    return {"loss": found, "count": counted.sum(), "bytes": (targets >= 4).sum()}


def bits_per_byte(model: nn.Module, source: HeldOut, device: str) -> float:
    nats = size = 0.0
    for index in range(len(source)):
        with torch.no_grad(), torch.autocast(device, torch.bfloat16, device == "cuda"):
            found = loss(model, source.batch(index).to(device))
        nats += float(found["loss"]) * float(found["count"])
        size += float(found["bytes"])
    return nats / math.log(2) / size


def measured(
    model: nn.Module, corpus: ByteCorpus, options: Any
) -> tuple[dict[str, float], dict[str, float]]:
    """Bits per byte of each kind: of the model, and of xz."""
    ours, xz = {}, {}
    for kind in corpus.kinds:
        source = HeldOut(corpus, kind, options.length, options.batch, options.held_bytes)
        ours[kind] = round(bits_per_byte(model, source, options.device), 4)
        whole = b"".join(corpus.documents("valid", kind))[: options.held_bytes]
        xz[kind] = round(8 * len(lzma.compress(whole, preset=9)) / len(whole), 4)
    return ours, xz


def mixed(corpus: ByteCorpus, most: int) -> list[bytes]:
    """Beginnings of held-out documents of all kinds, in the shares of training."""
    total = sum(MIX[kind] for kind in corpus.kinds)
    found: list[bytes] = []
    for kind in corpus.kinds:
        left = int(most * MIX[kind] / total)
        for each in corpus.documents("valid", kind):
            found.append(each[: min(left, 20_000)])
            left -= len(found[-1])
            if left <= 0:
                break
    return found


def main() -> int:
    made = parser(__doc__)
    made.add_argument("corpus", type=Path)
    made.add_argument("--out", type=Path, required=True)
    made.add_argument("--size", choices=list(blt.ENTROPY_SIZES), default="nano")
    made.add_argument("--steps", type=int, default=4000)
    made.add_argument("--batch", type=int, default=64)
    made.add_argument("--length", type=int, default=4096)
    made.add_argument("--rate", type=float)
    made.add_argument("--held-bytes", type=int, default=1_000_000)
    made.add_argument("--compiled", action="store_true")
    made.add_argument("--resume", action="store_true")
    options = made.parse_args()
    corpus = ByteCorpus(options.corpus)
    torch.manual_seed(0)
    model = blt.EntropyModel(blt.ENTROPY_SIZES[options.size]).to(options.device)
    peak = options.rate or RATES[options.size]
    warmup, steps = min(200, max(1, options.steps // 10)), options.steps
    rate = train.Warmup(steps=warmup) * train.CosineDecay(steps=steps, end=0.1)
    held = HeldOut(
        corpus, corpus.kinds[0], options.length, options.batch, min(200_000, options.held_bytes)
    )
    # Over few steps an average would still be near the beginning.
    average = 0.997 if steps >= 1000 else None
    trainer = train.Trainer(
        model,
        loss,
        Rows(corpus, options.length, options.batch),
        lambda module: train.groups(
            module,
            {},
            rest=train.AdamW(rate=peak * rate, betas=(0.9, 0.95), decay=0.1, clip=1.0),
        ),
        steps=steps,
        folder=options.out,
        precision="bfloat16" if options.device == "cuda" else "float32",
        compiled=options.compiled,
        average=average,
        metrics=(train.BitsPerByte(), train.Throughput()),
        evaluation=train.Evaluation(
            held, every=max(1, steps // 20), metrics=(train.Loss(), train.BitsPerByte())
        ),
        saving=train.Saving(every=max(1, steps // 8)),
        log_every=min(20, steps),
        asked={"corpus": json.dumps(corpus.card["sha256"], sort_keys=True)},
    )
    trainer.run(resume="auto" if options.resume else False)
    with trainer.averaged() if average else nullcontext():
        model.eval()
        ours, xz = measured(model, corpus, options)
        model.thresholds = blt.calibrate_thresholds(model, mixed(corpus, options.held_bytes))
        card = {
            "size": options.size,
            "parameters": sum(each.numel() for each in model.parameters()),
            "bytes seen": steps * options.batch * options.length,
            "bits per byte, held out": ours,
            "bits per byte of xz": xz,
            "sources": corpus.card["sources"],
        }
        place = options.out / "entropy_model.safetensors"
        half = copy.deepcopy(model).to(torch.bfloat16)
        half.thresholds = model.thresholds
        blt.save_entropy_model(half, place, card)
    print(json.dumps({**card, "thresholds": model.thresholds}, indent=1))
    print(f"{place}: {place.stat().st_size:,} bytes")
    above = {kind: ours[kind] for kind, limit in LIMITS.items() if ours.get(kind, 9) > limit}
    if above:
        print(f"above the limits for release {LIMITS}: {above}", file=sys.stderr)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
