"""`hotgrid ingest histogram`: the entropies of a corpus."""

from json import dumps
from pathlib import Path

from hotgrid.cli._terminal import Terminal

_WIDTH = 50


def histogram(folder: Path, /, *, bins: int = 25, json: bool = False) -> None:
    """Count the entropies of a corpus.

    Args:
        folder: The corpus.
        bins: How many bins; by default 25.
        json: Print one JSON object in the schema of BLT-Burn instead.
    """
    from hotgrid.blt import Corpus

    found = Corpus(folder).histogram(bins)
    console = Terminal(highlight=False)
    if json:
        console.out(dumps(found, indent=2), highlight=False)
        return
    edges, counts = found["histogram"]["bin_edges"], found["histogram"]["counts"]
    most = max(counts) or 1
    for edge, count in zip(edges, counts, strict=False):
        bar = "#" * round(_WIDTH * count / most)
        console.print(f"{edge:6.2f}  {count:14,}  {bar}", soft_wrap=True)
    numbers = found["statistics"] | found["percentiles"]
    named = ("mean", "std", "p50", "p90", "p99")
    line = ", ".join(f"{name} {numbers[name]:.3f}" for name in named)
    console.print(f"{numbers['total_tokens']:,} bytes; nats: {line}", soft_wrap=True)
