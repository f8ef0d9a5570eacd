"""Count n-grams of a corpus and write the table of entropies that comes with hotgrid.

    python benchmarks/make_ngram_table.py CORPUS [--out FILE]

CORPUS is a folder of `make_byte_corpus.py`. Prints and stores what was measured on the held-out
documents: bits per byte of the counts beside those of xz, and how far the entropies of the
table are from those of the counts.
"""

import json
import lzma
from pathlib import Path

import numpy as np
from byte_corpus import MIX, ByteCorpus
from options import parser

from hotgrid import blt

SHIPPED = Path(blt.__file__).parent / "_entropy" / "ngram_table.safetensors"


def some(documents: list[bytes], most: int) -> list[bytes]:
    """Documents up to a number of bytes, spread over all of them."""
    order = np.random.default_rng(0).permutation(len(documents))
    found, size = [], 0
    for i in order:
        if size >= most:
            break
        found.append(documents[i][: most - size])
        size += len(found[-1])
    return found


def main() -> None:
    options = parser(__doc__, ["cpu"])
    options.add_argument("corpus", type=Path)
    options.add_argument("--out", type=Path, default=SHIPPED)
    options.add_argument("--order", type=int, default=5)
    options.add_argument("--slots", type=int, nargs="+", default=[17, 18, 19])
    options.add_argument("--megabytes", type=float, default=50.0)
    chosen = options.parse_args()
    corpus = ByteCorpus(chosen.corpus)
    total = sum(MIX[kind] for kind in corpus.kinds)
    documents = []
    for kind in corpus.kinds:
        most = int(chosen.megabytes * 1e6 * MIX[kind] / total)
        documents += some(corpus.documents("train", kind), most)
    held = {kind: some(corpus.documents("valid", kind), 600_000) for kind in corpus.kinds}
    counts = blt.NgramCounts(documents, chosen.order)
    table = counts.table(tuple(chosen.slots))
    mix = [text for kind in held for text in some(held[kind], int(2e5 * MIX[kind]))]
    measured = {"bits per byte": {}, "xz": {}, "nats apart": {}}
    for kind, texts in held.items():
        whole = b"".join(texts)
        measured["bits per byte"][kind] = round(counts.bits_per_byte(texts), 3)
        measured["xz"][kind] = round(8 * len(lzma.compress(whole, preset=9)) / len(whole), 3)
        apart = [
            np.abs(table.entropies(text).numpy() - counts.entropies(text)) for text in texts
        ]
        measured["nats apart"][kind] = round(float(np.concatenate(apart).mean()), 3)
    card = {
        "trained on": {"bytes": counts.bytes, "sources": corpus.card["sources"]},
        "order": counts.order,
        "held out": measured,
        "filled": [round(float((each > 0).mean()), 3) for each in table.hashed],
    }
    table.thresholds = blt.calibrate_thresholds(table, mix)
    table.card = card
    table.save(chosen.out)
    shown = {**card, "trained on": counts.bytes, "thresholds": table.thresholds}
    print(json.dumps(shown, indent=1))
    print(f"{chosen.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
