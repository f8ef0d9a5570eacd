"""`hotgrid ingest verify`: whether a corpus is as it was written."""

from json import dumps
from pathlib import Path

from hotgrid.cli._terminal import Terminal
from hotgrid.errors import DamagedError


def verify(folder: Path, /, *, json: bool = False) -> int:
    """Check every file of a corpus against its checksums.

    Args:
        folder: The corpus.
        json: Print one JSON object instead.
    """
    from hotgrid.blt import Corpus

    console = Terminal(highlight=False)
    try:
        corpus = Corpus(folder)
        damage = list(corpus.damage())
        count = len(corpus)
    except DamagedError as problem:
        damage, count = [str(problem)], 0
    if json:
        console.out(dumps({"documents": count, "damage": damage}, indent=2), highlight=False)
    else:
        for line in damage:
            console.print(line, soft_wrap=True, markup=False)
        if not damage:
            console.print(f"{count:,} documents, all as they were written")
    return 1 if damage else 0
